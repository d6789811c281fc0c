-- What spec/bench_spec.lua measures: routes that behave, and servers that do not, each on a port of
-- its own.
local photon = require "photon"
local uv = require "luv"

local app = photon.app()

app:static("/", "hello\n")
app:get("/slow", function()
  photon.sleep(0.2)
  return "slow\n"
end)
-- What was asked for last, for the spec to see.
local last
app:any("/note", function(req)
  last = { method = req.method, body = req:body(), name = req.headers["x-name"], accept = req.headers.accept,
    host = req.headers.host, length = req.headers["content-length"], agent = req.headers["user-agent"] }
  return "noted"
end)
app:get("/last", function() return last end)
app:get("/gone", function() return photon.problem(410, "gone") end)
app:sse("/five", function(stream)
  for i = 1, 5 do stream:send { n = i } end
end)
app:post("/answer", function(req)
  local words = req:body()
  return photon.stream(function(stream)
    for word in words:gmatch "%S+" do stream:send(word) end
  end)
end)
local opened = 0
app:sse("/open", function(stream)
  stream:comment "hello"
  stream:send "one"
  photon.sleep(0) -- it has left then
  opened = opened + 1
  photon.sleep(3600)
end)
app:get("/opened", function() return tostring(opened) end)

local HEAD = "HTTP/1.1 200 OK\r\n"
local STREAM = HEAD .. "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
local PLAIN_STREAM = HEAD .. "Content-Type: text/event-stream; charset=utf-8\r\n\r\n"

local function chunk(text)
  return ("%x\r\n%s\r\n"):format(#text, text)
end

-- Each is given the client and the number of the request on this connection, from 1 on, and returns
-- what is sent, and "close", "reset" or nothing: the connection stays.
local ways = {}

function ways.truncated_body() return HEAD .. "Content-Length: 100\r\n\r\nhalf", "close" end
function ways.truncated_chunk() return STREAM .. chunk "data: a\n\n" .. "20\r\ndata: b", "close" end
function ways.no_last_chunk() return STREAM .. chunk "data: a\n\n" .. chunk "data: b\n\n", "close" end
function ways.within_event() return STREAM .. chunk "data: a\n\n" .. chunk "data: b\n" .. "0\r\n\r\n" end
function ways.empty() return "", "close" end
function ways.reset() return "", "reset" end
function ways.reset_stream() return STREAM .. chunk "data: a\n\n", "reset" end
function ways.bad_chunk() return STREAM .. chunk "data: a\n\n" .. "oops\r\n" end
function ways.bad_head() return "220 mail.example ESMTP\r\n" end
function ways.extra() return HEAD .. "Content-Length: 2\r\n\r\nok and more" end
function ways.mute() return "" end
function ways.stall() return STREAM .. chunk "data: a\n\n" end
function ways.until_close() return PLAIN_STREAM .. "data: a\n\ndata: b\r\rid: 1\n\n:c\n\n", "close" end
function ways.one_each() return HEAD .. "Connection: close\r\nContent-Length: 2\r\n\r\nok", "close" end
function ways.unavailable() return "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy" end
function ways.stream_refused() return "HTTP/1.1 204 No Content\r\nContent-Type: text/event-stream\r\n\r\n" end
function ways.huge_event() return STREAM .. chunk("data: " .. ("x"):rep(2 ^ 21) .. "\n\n") end
function ways.pieces(client)
  local text = STREAM .. chunk "event: e\ndata: a\ndata: b\n\n" .. chunk "data: " .. chunk "c\r\n" .. chunk "\r\n"
    .. "0\r\n\r\n"
  for i = 1, #text do
    client:write(text:sub(i, i))
    photon.sleep(0.001)
  end
  return ""
end
-- A stream first, then something else.
function ways.turncoat(_, number)
  if number == 1 then return STREAM .. chunk "data: a\n\n" .. "0\r\n\r\n" end
  return HEAD .. "Content-Length: 2\r\n\r\nok"
end

local ports, counts = {}, {}

local function answer(client, way, number)
  local text, ending = ways[way](client, number)
  counts[way] = counts[way] + 1
  client:write(text, function()
    if client:is_closing() then return end
    if ending == "reset" then
      client:close_reset()
    elseif ending == "close" then
      client:shutdown(function() if not client:is_closing() then client:close() end end)
    end
  end)
end

local function accept(server, way)
  local client, received, number = uv.new_tcp(), "", 0
  server:accept(client)
  client:nodelay(true)
  client:read_start(function(err, data)
    if err or not data then
      if not client:is_closing() then client:close() end
      return
    end
    received = received .. data
    if not received:find "\r\n\r\n$" then return end
    received, number = "", number + 1
    answer(client, way, number)
  end)
end

app:on_start(function()
  for way in pairs(ways) do
    local server = uv.new_tcp()
    server:bind("127.0.0.1", 0)
    counts[way] = 0
    server:listen(128, function() accept(server, way) end)
    ports[way] = server:getsockname().port
  end
end)

app:get("/ports", function() return ports end)
app:get("/counts", function() return counts end)

return app

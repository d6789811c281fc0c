-- SIGTERM: what runs is finished, what waits is closed, streams end cleanly, and it never takes longer
-- than the drain time.
local live = require "spec.live"
local replies = require "spec.replies"
local socket = require "spec.socket"

local SOURCE = [[
local photon = require "photon"
local app = photon.app()
app:get("/", function() return "ok" end)
local begun = photon.shared "begun"
-- Goes on when the file is there.
app:get("/held", function(req)
  begun:incr("n", 1, { init = 0 })
  local file
  repeat
    photon.sleep(0.005)
    file = io.open(req.query.till)
  until file
  file:close()
  return "held"
end)
app:get("/never", function()
  begun:incr("n", 1, { init = 0 })
  photon.sleep(3600)
end)
app:get("/begun", function() return tostring(begun:get "n") end)
app:post("/upload", function(req) return tostring(#req:body()) end)
app:sse("/waits", function(stream)
  photon.defer(function() photon.log.info("deferred") end)
  stream:send "first"
  photon.sleep(3600)
end)
app:sse("/closes", function(stream)
  stream:on_close(function()
    photon.sleep(0.2)
    photon.log.info("on_close has run")
  end)
  while stream:send "tick" do photon.sleep(0.05) end
  photon.log.info("send has said closed")
end)
app:sse("/floods", function(stream)
  local line = ("x"):rep(10000)
  while stream:send(line) do end
end)
app:on_stop(function() photon.log.info("on_stop has run") end)
return app
]]

local GET = "GET %s HTTP/1.1\r\nhost: photon.test\r\n\r\n"
local CONNECTION_REFUSED = 111

local server

local function start(flags)
  server = live.start { source = SOURCE, flags = flags }
  return server
end

-- A connection on which `bytes` have been sent.
local function send(bytes)
  local s = server:connect()
  assert.truthy(s:send(bytes))
  return s
end

-- The one reply that has come once the server has closed.
local function last_reply(s, method)
  assert.truthy(s:closes(), "the connection was not closed")
  local list = replies.read(s.received, { method or "GET" }, true)
  assert.equal(1, #list)
  assert.truthy(list[1].is_complete)
  return list[1]
end

-- A request that is answered when `release` was called, and waits already.
local function hold()
  local s = send(GET:format("/held?till=" .. server.folder .. "/go"))
  socket.eventually(function() return server:get("/begun").body == "1" end, "the request is there")
  return s
end

local function release()
  assert(io.open(server.folder .. "/go", "w")):close()
end

-- A request that is never answered, and waits already.
local function wait_for_ever()
  local s = send(GET:format "/never")
  socket.eventually(function() return server:get("/begun").body == "1" end, "the request is there")
  return s
end

-- A connection whose first request has been answered.
local function idle_connection()
  local s = send(GET:format "/")
  assert.truthy(s:receive_until(function(got) return got:find "ok$" end))
  return s
end

local function refuses_connections()
  return socket.eventually(function()
    local s, code = socket.connect(server.port)
    if not s then return code == CONNECTION_REFUSED end
    s:close()
  end, "connections are refused")
end

for _, workers in ipairs { 1, 2 } do
  describe(("draining %d worker%s"):format(workers, workers == 1 and "" or "s"), function()
    local flags = "--workers " .. workers

    after_each(function()
      if server then server:stop() end
      server = nil
    end)

    it("finishes a running request, closes idle connections, and ends with 0", function()
      start(flags)
      local idle = idle_connection()
      local held = hold()
      server:signal "TERM"
      assert.truthy(idle:closes())
      release()
      local reply = last_reply(held)
      assert.equal(200, reply.status)
      assert.equal("close", reply:get "connection")
      assert.equal("held", reply.body)
      assert.equal(0, server:wait())
      assert.truthy(server:has_logged "on_stop has run")
    end)

    it("closes the listener at once", function()
      start(flags)
      local held = hold()
      server:signal "INT"
      assert.truthy(refuses_connections())
      release()
      assert.equal(200, last_reply(held).status)
      assert.equal(0, server:wait())
    end)

    it("answers a request of which half had come", function()
      start(flags)
      local half = send "GET / HTTP/1.1\r\nhost: pho"
      local never = wait_for_ever()
      server:signal "TERM"
      assert.truthy(refuses_connections())
      half:send "ton.test\r\n\r\n"
      local reply = last_reply(half)
      assert.equal(200, reply.status)
      assert.equal("close", reply:get "connection")
      server:signal "TERM"
      assert.equal(0, server:wait())
      never:close()
    end)

    it("answers requests that cross the signal", function()
      start(flags)
      local clients = {}
      for i = 1, 8 do
        clients[i] = idle_connection()
        clients[i].received = ""
      end
      for _, s in ipairs(clients) do s:send(GET:format "/") end
      server:signal "TERM"
      for _, s in ipairs(clients) do assert.equal(200, last_reply(s).status) end
      assert.equal(0, server:wait())
    end)

    it("breaks off at the end of the drain time", function()
      start(flags .. " --drain 0.3")
      local floods = assert(socket.connect(server.port, 4096))
      floods:send(GET:format "/floods")
      assert.truthy(floods:comes "data: ")
      local upload = send "POST /upload HTTP/1.1\r\nhost: photon.test\r\ncontent-length: 100000\r\n\r\nbegin"
      local never = wait_for_ever()
      server:signal "TERM"
      assert.truthy(upload:closes())
      assert.truthy(never:closes())
      assert.equal(0, server:wait())
      floods:close()
    end)

    it("stops at once at the second signal", function()
      start(flags .. " --drain 3600")
      local never = wait_for_ever()
      server:signal "TERM"
      assert.truthy(refuses_connections())
      assert.falsy(never.is_closed)
      server:signal "TERM"
      assert.truthy(never:closes())
      assert.equal("", never.received)
      assert.equal(0, server:wait())
    end)

    it("ends streams cleanly, with a retry, and lets their code clean up", function()
      start(flags .. " --drain 3600")
      local waits = send(GET:format "/waits")
      local closes = send(GET:format "/closes")
      local floods = assert(socket.connect(server.port, 4096))
      floods:send(GET:format "/floods")
      for _, s in ipairs { waits, closes, floods } do assert.truthy(s:comes "data: ") end
      server:signal "TERM"
      for _, s in ipairs { waits, closes } do
        assert.truthy(s:closes())
        assert.truthy(s.received:find "\nretry: %d+\n\n\r\n0\r\n\r\n$", s.received)
      end
      floods:close() -- the server would wait for it
      assert.equal(0, server:wait())
      for _, text in ipairs { "deferred", "on_close has run", "send has said closed", "on_stop has run" } do
        assert.truthy(server:has_logged(text), text .. "\n" .. server:log())
      end
      assert.falsy(server:log():find("traceback", 1, true), server:log())
    end)
  end)
end

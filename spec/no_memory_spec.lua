-- Allocations that fail, in C and in Lua: each costs the request that meets it, which gets an error or
-- is broken off. Nothing ends, hangs, or is left behind.
local build = require "spec.build"
local live = require "spec.live"
local replies = require "spec.replies"
local socket = require "spec.socket"

local APP = [[
local photon = require "photon"
local app = photon.app()
local news = photon.channel("news", { replay = 20 })
local n = 0
app:static("/static", "Hello\n")
app:get("/json/:id", function(req) return { id = req.params.id, list = { 1, 2, 3 } } end)
app:post("/echo", function(req) return req:body() end)
app:sse("/events", function(stream)
  for i = 1, 5 do
    stream:send("tick", i)
    photon.sleep(0.001)
  end
end)
app:get("/tasks", function()
  local tasks = {}
  for i = 1, 5 do tasks[i] = photon.spawn(function() photon.sleep(0.001) return i end) end
  local sum = 0
  for i = 1, 5 do sum = sum + select(2, assert(tasks[i]:join())) end
  return tostring(sum)
end)
app:get("/shared", function()
  photon.shared("counts"):incr("n", 1)
  photon.shared("counts"):set("text", ("x"):rep(500), { ttl = 0.01 })
  return "counted"
end)
app:get("/closing", function(req)
  req:on_close(function() photon.sleep(0) end)
  photon.defer(function() end)
  return "closing"
end)
app:get("/error", function() error { code = 1 } end)
app:post("/news", function() news:publish("news", { text = "good" }) return "told" end)
app:subscribe("/news", { from = "start" }, news)
app:get("/answers/:id", function(req)
  return photon.stream({ resume = photon.channel("answer:" .. req.params.id, { replay = 10 }) }, function(stream)
    for i = 1, 3 do stream:send("token", i) end
  end)
end)
app:get("/middle", function() return "inner" end)
app:metrics("/metrics")
return app
]]

local LARGE = ("0123456789"):rep(3000)

-- Request, and the reply's body where it is known.
local WAYS = {
  { "GET", "/static", "Hello\n" },
  { "GET", "/json/7" },
  { "POST", "/echo", LARGE, body = LARGE },
  { "GET", "/events" },
  { "GET", "/tasks", "15" },
  { "GET", "/shared", "counted" },
  { "GET", "/closing", "closing" },
  { "GET", "/error" },
  { "POST", "/news", "told", body = "" },
  { "GET", "/answers/%d" },
  { "GET", "/none" },
  { "GET", "/metrics" },
}

local function head(method, target, body)
  local length = body and ("content-length: %d\r\n"):format(#body) or ""
  return ("%s %s HTTP/1.1\r\nhost: photon.test\r\n%s\r\n%s"):format(method, target, length, body or "")
end

-- Asks once: "whole", "refused" or "broken". An error when what came is no reply, or nothing comes.
local function ask(server, way, round)
  local method, target = way[1], way[2]:format(round)
  local list = server:exchange(head(method, target, way.body), { method })
  local reply = list[1]
  if not reply then return "broken" end
  assert.same({}, reply.faults)
  if reply.status >= 500 then return "refused" end
  if not reply.is_complete then return "broken" end
  if way[3] and reply.status == 200 then assert.equal(way[3], reply.body) end
  return "whole"
end

-- A subscriber that comes and goes; what it gets is a beginning of a stream, or an error.
local function subscribe(server)
  local s = server:connect()
  s:send(head("GET", "/news"))
  s:receive()
  local reply = replies.read(s.received, { "GET" }, s.is_closed)[1]
  if reply then assert.same({}, reply.faults) end
  s:close()
end

-- What is still open in the server once everybody has gone, as soon as it can be asked.
local function settled(server)
  local text
  socket.eventually(function()
    local list = server:exchange(head("GET", "/metrics"), { "GET" })
    text = list[1] and list[1].status == 200 and list[1].is_complete and list[1].body
    return text and text:find "\nphoton_streams 0\n" and text:find "\nphoton_tasks 0\n"
  end, function() return "nothing is left: " .. tostring(text) end)
end

describe("when one allocation fails in", function()
  for _, rate in ipairs { 60, 200, 1000 } do
    it(rate .. ", nobody else pays", function()
      if not build.is_hostile then return pending "only in a hostile build allocations fail" end
      local server = live.start { source = APP, flags = "--workers 2", env = "PHOTON_FAIL_RATE=" .. rate }
      local counts = { whole = 0, refused = 0, broken = 0 }
      for round = 1, 60 do
        for _, way in ipairs(WAYS) do
          local how = ask(server, way, round)
          counts[how] = counts[how] + 1
        end
        subscribe(server)
        if round % 20 == 0 then server:reload() end
      end
      settled(server)
      assert.truthy(counts.whole > 0 and counts.refused + counts.broken > 0)
      server:signal "TERM"
      assert.equal(0, server:wait(), server:log():sub(-4000))
    end)
  end
end)

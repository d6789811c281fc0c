-- What went wrong with event streams in other servers.
local live = require "spec.live"
local replies = require "spec.replies"
local socket = require "spec.socket"

local SHORT = "PHOTON_HEADER_TIMEOUT=0.4 PHOTON_BODY_TIMEOUT=0.4 PHOTON_IDLE_TIMEOUT=0.4 PHOTON_WRITE_TIMEOUT=0.4"

-- The hasty one has short timeouts, which a slow spec meets, too.
local server, hasty

setup(function()
  server = live.start { app = "spec/reports/streams.lua" }
  hasty = live.start { app = "spec/reports/streams.lua", env = SHORT }
end)
teardown(function()
  server:stop()
  hasty:stop()
end)

local function open(target, receive_buffer, from)
  local s = (from or server):connect(receive_buffer)
  s:send("GET " .. target .. " HTTP/1.1\r\nhost: a\r\n\r\n")
  return s
end

-- A stream of the hasty server that has begun: asked for until it is, as the request may come too late.
local function open_hastily(target, receive_buffer)
  return socket.eventually(function()
    local s = open(target, receive_buffer, hasty)
    if s:comes "\r\n\r\n" and s.received:find "^HTTP/1.1 200" then return s end
    s:close()
  end, "a stream begins")
end

local function state(name)
  return server:get("/state/" .. name).body:match '"value":"?([^"}]*)'
end

-- Asks until a value is there.
local function becomes(name, wanted)
  socket.eventually(function() return state(name) == wanted end, function()
    return ("%s is %s, not %s"):format(name, state(name), wanted)
  end)
end

describe("the head of a stream", function()
  it("does not wait for an event", function()
    local s = open "/silent"
    assert.is_true(s:comes "\r\n\r\n")
    local head = replies.read(s.received, {}, false)[1]
    assert.equal(200, head.status)
    assert.equal("text/event-stream", head:get "content-type")
    assert.equal("no-store, no-transform", head:get "cache-control")
    assert.equal("no", head:get "x-accel-buffering")
    assert.is_nil(head:get "content-length")
    s:close()
  end)
  it("may be another status when it fails before", function()
    local reply = server:get "/fails-first"
    assert.equal(403, reply.status)
    assert.equal("application/problem+json", reply:get "content-type")
  end)
end)

describe("a client that does not read", function()
  it("stops its own producer, and nobody else's", function()
    local stalled = open("/flood/stalled", 4096)
    assert.is_true(stalled:comes "data: 1 ")
    local healthy = open "/flood/healthy"
    local events = 0
    while not healthy.is_closed and events < 20000 do
      assert.truthy(healthy:receive() or healthy.is_closed)
      local _, found = healthy.received:gsub("data: %d+ [^\n]*\n", "")
      events = events + found
      healthy.received = healthy.received:match ".*\n(.*)" or healthy.received
    end
    assert.equal(20000, events)
    assert.truthy(tonumber(state "stalled.sent") < 10000, state "stalled.sent")
    healthy:close()
    stalled:close()
    becomes("stalled.closed", "true")
  end)
  it("is given up after write_timeout", function()
    local stalled = open_hastily("/flood/timed", 4096)
    socket.eventually(function()
      local list = hasty:exchange "GET /state/timed.closed HTTP/1.1\r\nhost: a\r\n\r\n"
      return list[1] and list[1].body == '{"value":true}'
    end, "the stream is given up")
    stalled:close()
  end)
end)

describe("when the client goes", function()
  for _, way in ipairs { "close", "reset" } do
    it("a sleeping handler ends: " .. way, function()
      local s = open "/sleeper"
      assert.is_true(s:comes "\r\n\r\n")
      s[way](s)
      becomes("sleeper.closed", "true")
    end)
  end
  it("pcall does not outlive it", function()
    local s = open "/stubborn"
    becomes("stubborn.began", "true")
    s:close()
    becomes("stubborn.again", "true")
    assert.equal("false", state "stubborn.open")
    assert.equal("closed", state "stubborn.send")
    becomes("stubborn.closed", "true")
  end)
  it("its tasks end too", function()
    local s = open "/worker"
    becomes("worker.began", "true")
    s:close()
    becomes("worker.deferred", "true")
  end)
  it("before any reply, on_close runs", function()
    local s = open "/waiting"
    becomes("waiting.began", "true")
    s:reset()
    becomes("waiting.closed", "true")
  end)
end)

describe("timeouts", function()
  it("do not end a stream that beats", function()
    local s = open_hastily "/beats"
    assert.is_true(s:receive_until(function(received)
      return select(2, received:gsub("\n:", "")) >= 20
    end))
    assert.is_false(s.is_closed)
    local list = replies.read(s.received, {}, false)
    assert.same({}, (replies.events(list[1].body)))
    s:close()
  end)
  it("do not end a silent one", function()
    local s = open_hastily "/late"
    assert.is_true(s:comes "data: late")
    s:close()
  end)
  it("do not end a handler that takes its time", function()
    -- Where the request comes too late, the answer is 408 or none.
    local reply
    socket.eventually(function()
      reply = hasty:exchange("GET /poll HTTP/1.1\r\nhost: a\r\n\r\n")[1]
      return reply and reply.status ~= 408
    end, "an answer")
    assert.equal("polled", reply.body)
  end)
end)

describe("a heartbeat", function()
  it("is never within an event", function()
    local s = open("/large", 4096)
    while s.received:sub(-7) ~= "\r\n0\r\n\r\n" and s:receive() do
      if #s.received < 300000 then socket.sleep(0.005) end -- slow enough for beats to fall due
    end
    local list = replies.read(s.received, {}, s.is_closed)
    assert.same({}, list[1].faults)
    assert.is_true(list[1].is_complete)
    local events = replies.events(list[1].body)
    assert.equal(3, #events)
    for i, event in ipairs(events) do
      assert.equal(tostring(i), event.id)
      assert.is_true(event.data == tostring(i):rep(1048576))
    end
    s:close()
  end)
end)

describe("what a handler returns after its stream", function()
  for _, kind in ipairs { "nothing", "text", "table", "status", "response" } do
    it("does not reach the client: " .. kind, function()
      local request = "GET /returns/" .. kind .. " HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n"
      local list = server:exchange(request, {}, 2)
      assert.equal(2, #list)
      assert.is_nil(list[1]:get "content-length")
      assert.equal("data: one\n\n", list[1].body)
      assert.equal("ok", list[2].body)
    end)
  end
  it("an error ends it so that the client knows", function()
    local list, is_closed = server:exchange "GET /fails HTTP/1.1\r\nhost: a\r\n\r\n"
    assert.equal(200, list[1].status)
    assert.is_false(list[1].is_complete)
    assert.is_true(is_closed)
    assert.is_true(server:has_logged "broken on purpose")
  end)
end)

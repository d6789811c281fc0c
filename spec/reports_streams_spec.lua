-- What went wrong with event streams in other servers.
local live = require "spec.live"
local replies = require "spec.replies"
local socket = require "spec.socket"

local server

setup(function() server = live.start { app = "spec/reports/streams.lua" } end)
teardown(function() server:stop() end)

local function open(target, receive_buffer)
  local s = server:connect(receive_buffer)
  s:send("GET " .. target .. " HTTP/1.1\r\nhost: a\r\n\r\n")
  return s
end

local function has(text)
  return function(received) return received:find(text, 1, true) end
end

local function state(name)
  return server:get("/state/" .. name).body:match '"value":"?([^"}]*)'
end

-- Asks until a value is there; the last one after 5 s.
local function becomes(name, wanted)
  local limit = socket.now() + 5
  while state(name) ~= wanted and socket.now() < limit do socket.sleep(0.01) end
  return state(name)
end

describe("the head of a stream", function()
  it("does not wait for an event", function()
    local s = open "/silent"
    assert.is_true(s:receive_until(has "\r\n\r\n"))
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
    assert.is_true(stalled:receive_until(has "data: 1 "))
    local healthy = open "/flood/healthy"
    local events = 0
    while not healthy.is_closed and events < 20000 do
      healthy:receive(5)
      local _, found = healthy.received:gsub("data: %d+ [^\n]*\n", "")
      events = events + found
      healthy.received = healthy.received:match ".*\n(.*)" or healthy.received
    end
    assert.equal(20000, events)
    assert.truthy(tonumber(state "stalled.sent") < 10000, state "stalled.sent")
    healthy:close()
    stalled:close()
    assert.equal("true", becomes("stalled.closed", "true"))
  end)
  it("is given up after write_timeout", function()
    local stalled = open("/flood/timed", 4096)
    assert.equal("true", becomes("timed.closed", "true"))
    stalled:close()
  end)
end)

describe("when the client goes", function()
  for _, way in ipairs { "close", "reset" } do
    it("a sleeping handler ends: " .. way, function()
      local s = open "/sleeper"
      assert.is_true(s:receive_until(has "\r\n\r\n"))
      s[way](s)
      assert.equal("true", becomes("sleeper.closed", "true"))
    end)
  end
  it("pcall does not outlive it", function()
    local s = open "/stubborn"
    assert.equal("true", becomes("stubborn.began", "true"))
    s:close()
    assert.equal("true", becomes("stubborn.again", "true"))
    assert.equal("false", state "stubborn.open")
    assert.equal("closed", state "stubborn.send")
    assert.equal("true", becomes("stubborn.closed", "true"))
  end)
  it("its tasks end too", function()
    local s = open "/worker"
    assert.equal("true", becomes("worker.began", "true"))
    s:close()
    assert.equal("true", becomes("worker.deferred", "true"))
  end)
  it("before any reply, on_close runs", function()
    local s = open "/waiting"
    assert.equal("true", becomes("waiting.began", "true"))
    s:reset()
    assert.equal("true", becomes("waiting.closed", "true"))
  end)
end)

describe("timeouts", function()
  it("do not end a stream that beats", function()
    local s = open "/beats"
    assert.is_true(s:receive_until(function(received)
      return select(2, received:gsub("\n:", "")) >= 20
    end))
    assert.is_false(s.is_closed)
    local list = replies.read(s.received, {}, false)
    assert.same({}, (replies.events(list[1].body)))
    s:close()
  end)
  it("do not end a silent one", function()
    local s = open "/late"
    assert.is_true(s:receive_until(has "data: late"))
    s:close()
  end)
  it("do not end a handler that takes its time", function()
    assert.equal("polled", server:get("/poll").body)
  end)
end)

describe("a heartbeat", function()
  it("is never within an event", function()
    local s = open("/large", 4096)
    while s.received:sub(-7) ~= "\r\n0\r\n\r\n" and s:receive(5) do
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

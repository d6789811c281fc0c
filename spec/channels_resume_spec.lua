-- photon.stream({ resume = channel }, fn): one production, however many connections see it.
local photon = require "photon"
local test = require "photon.test"

local function datas(events)
  local list = {}
  for i, event in ipairs(events) do list[i] = event.data end
  return list
end

local function numbers(from, to)
  local list = {}
  for i = from, to do list[#list + 1] = tostring(i) end
  return list
end

describe("a stream that can be resumed", function()
  local produce, starts
  local app = photon.app()
  local function answer(req)
    local channel = photon.channel("answer:" .. req.params.id, { replay = 1000 })
    return photon.stream({ resume = channel, heartbeat = 2, headers = { ["x-answer"] = req.params.id } },
      function(stream, request)
        starts = starts + 1
        return produce(stream, request)
      end)
  end
  app:get("/answers/:id", answer)
  app:post("/answers/:id", answer)
  local client = test.app(app)
  before_each(function()
    starts = 0
    test.clock.freeze()
    produce = function(stream)
      for i = 1, 10 do
        stream:send("token", i)
        photon.sleep(1)
      end
    end
  end)

  it("gives the whole answer to one client, then its end", function()
    local s = client:sse "/answers/a"
    assert.equal(200, s.status)
    assert.equal("text/event-stream", s.headers["content-type"])
    assert.equal("a", s.headers["x-answer"])
    test.clock.advance(20)
    assert.same(numbers(1, 10), datas(s:events(10)))
    assert.same({ nil, "closed" }, { s:next() })
    assert.equal(1, starts)
  end)

  it("goes on without its client, and misses nothing when it comes again", function()
    local s = client:sse "/answers/b"
    test.clock.advance(2.5)
    local got = s:events(3)
    assert.same({ "1", "2", "3" }, datas(got))
    s:close()
    test.clock.advance(3)
    s = client:sse("/answers/b", { last_event_id = got[3].id })
    assert.same({ "4", "5", "6" }, datas(s:events(3)))
    test.clock.advance(20)
    assert.same({ "7", "8", "9", "10" }, datas(s:events(4)))
    assert.same({ nil, "closed" }, { s:next() })
    assert.equal(1, starts)
  end)

  it("is the same answer for a second client, from its beginning", function()
    local one = client:sse "/answers/c"
    test.clock.advance(4.5)
    local two = client:sse("/answers/c", { method = "POST" })
    test.clock.advance(20)
    assert.same(numbers(1, 10), datas(one:events(10)))
    assert.same(numbers(1, 10), datas(two:events(10)))
    assert.equal(1, starts)
  end)

  it("answers 204 to whoever has it all", function()
    local s = client:sse "/answers/d"
    test.clock.advance(20)
    local got = s:events(10)
    test.settle()
    assert.equal(204, client:get("/answers/d", { headers = { ["last-event-id"] = got[10].id } }).status)
    assert.same({ "10" }, datas(client:sse("/answers/d", { last_event_id = got[9].id }):events(1)))
    assert.same(numbers(1, 10), datas(client:sse("/answers/d"):events(10)))
    assert.equal(1, starts)
  end)

  it("keeps its client by heartbeats while there is nothing to say", function()
    produce = function(stream)
      photon.sleep(5)
      stream:send "late"
    end
    local s = client:sse "/answers/e"
    test.clock.advance(2.5)
    assert.equal("", s:comment(0.5))
    test.clock.advance(3)
    assert.equal("late", s:next().data)
  end)

  it("does not start for HEAD", function()
    assert.equal(200, client:head("/answers/f").status)
    assert.equal(0, starts)
  end)

  it("answers an error that comes before anything else", function()
    produce = function() error(photon.problem(422, "ask something")) end
    local res = client:get "/answers/g"
    assert.equal(422, res.status)
    assert.equal("ask something", res:json().detail)
    produce = function(stream) stream:send "now" end
    assert.equal("now", client:sse("/answers/g"):next().data)
    assert.equal(2, starts)
  end)

  it("tells of an error that comes later", function()
    produce = function(stream)
      stream:send "one"
      photon.sleep(1)
      error "the model is gone"
    end
    local s = client:sse("/answers/h", { raise = false })
    test.clock.advance(2)
    assert.equal("one", s:next().data)
    local event = s:next()
    assert.equal("photon.error", event.event)
    assert.is_string(event:json().message)
    assert.same({ nil, "closed" }, { s:next() })
    assert.equal(1, starts)
  end)

  it("knows its request after the client has gone", function()
    local seen
    produce = function(stream, req)
      stream:send "one"
      photon.sleep(1)
      seen = { req.method, req.query.q, req.headers["x-y"], req.params.id, req.path }
    end
    client:sse("/answers/i", { query = { q = "why" }, headers = { ["x-y"] = "z" } }):close()
    test.clock.advance(2)
    assert.same({ "GET", "why", "z", "i", "/answers/i" }, seen)
  end)

  it("has what a stream has", function()
    local closed, late = false, nil
    produce = function(stream)
      stream:on_close(function() closed = true end)
      assert.is_true(stream:is_open())
      assert.is_true(stream:event { event = "e", data = { n = 1 } })
      assert.is_true(stream:event { data = "plain" })
      assert.is_true(stream:comment "nothing")
      assert.is_true(stream:flush())
      assert.is_false(pcall(stream.event, stream, { id = "7", data = "x" }))
      assert.is_false(pcall(stream.write, stream, "x"))
      assert.is_false(pcall(stream.send, stream, true))
      stream:close()
      assert.is_false(stream:is_open())
      late = { stream:send "late" }
    end
    local s = client:sse "/answers/j"
    local event = s:next()
    assert.same({ "e", '{"n":1}' }, { event.event, event.data })
    assert.equal("plain", s:next().data)
    assert.same({ nil, "closed" }, { s:next() })
    assert.is_true(closed)
    assert.same({ nil, "closed" }, late)
  end)

  it("wants a channel", function()
    assert.has_error(function() photon.stream({ resume = "news" }, function() end) end)
    assert.has_error(function() photon.app():sse("/", { resume = {} }, function() end) end)
  end)

  it("is exact for clients that come and go at random", function()
    math.randomseed(os.time())
    produce = function(stream)
      for i = 1, 200 do
        stream:send(i)
        photon.sleep(0.1)
      end
    end
    local clients = {}
    for i = 1, 8 do clients[i] = { got = {} } end
    local function read(c)
      while true do
        local event = c.stream:next(0)
        if not event then return end
        c.got[#c.got + 1], c.id = event.data, event.id
      end
    end
    local function step(c)
      if c.stream and math.random() < 0.5 then
        if math.random() < 0.7 then read(c) end
        if math.random() < 0.4 then
          if math.random() < 0.5 then c.stream:drop() else c.stream:close() end
          c.stream = nil
        end
      elseif not c.stream then
        c.stream = client:sse("/answers/k", { last_event_id = c.id })
      end
    end
    for _ = 1, 120 do
      for _, c in ipairs(clients) do step(c) end
      test.clock.advance(math.random() * 0.4)
    end
    test.clock.advance(60)
    for _, c in ipairs(clients) do
      if not c.stream then c.stream = client:sse("/answers/k", { last_event_id = c.id }) end
      if c.stream.status == 200 then read(c) end
      assert.same(numbers(1, 200), c.got)
    end
    assert.equal(1, starts)
  end)
end)

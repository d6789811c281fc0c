-- photon.test: streams that a spec reads while they are made.
local photon = require "photon"
local test = require "photon.test"

describe("an event stream", function()
  local run, closed
  local app = photon.app()
  app:sse("/s", { heartbeat = 2 }, function(stream, req)
    stream:on_close(function() closed = true end)
    return run(stream, req)
  end)
  local client = test.app(app)
  before_each(function() closed = false end)

  it("is there when its head is, without any event", function()
    run = function() photon.sleep(100) end
    local s = client:sse "/s"
    assert.equal(200, s.status)
    assert.equal("text/event-stream", s.headers["Content-Type"])
    local event, why = s:next(0.01)
    assert.is_nil(event)
    assert.equal("timeout", why)
    s:close()
    assert.is_true(closed)
    s:close()
  end)

  it("gives events one by one, and its clean end", function()
    run = function(stream)
      stream:send { n = 1 }
      stream:event { event = "two", data = "x\ny", id = "7", retry = 100 }
      stream:send "three"
    end
    local s = client:sse "/s"
    assert.same({ n = 1 }, s:next():json())
    local two = s:next()
    assert.same({ event = "two", data = "x\ny", id = "7", retry = 100 }, two)
    assert.same({ event = "message", data = "three", id = "7" }, s:next())
    assert.same({ nil, "closed" }, { s:next() })
    assert.is_false(s:is_open())
  end)

  it("gives what a long loop sends, whatever that is, in order", function()
    local kinds = { "plain", "two\nlines", "", 7, { t = true }, ("x"):rep(20000), "\r" }
    run = function(stream)
      for i = 1, 5000 do
        if i % 100 == 0 then
          stream:send("named", kinds[1 + i / 100 % #kinds])
        else
          stream:send(i .. "")
        end
      end
    end
    local shown = { "plain", "two\nlines", "", "7", '{"t":true}', ("x"):rep(20000), "\n" }
    local s = client:sse "/s"
    for i = 1, 5000 do
      local event = s:next()
      if event.event == "named" then
        assert.equal(0, i % 100)
        assert.equal(shown[1 + i / 100 % #kinds], event.data)
      else
        assert.equal(i .. "", event.data)
      end
    end
    assert.same({ nil, "closed" }, { s:next() })
  end)

  it("takes no event in vain", function()
    local results = {}
    run = function(stream)
      local other = { math.huge }
      for i = 1, 300 do
        results[i] = { stream:send "x" }
        results[300 + i] = { stream.send(other, "x") }
      end
      results.nothing = { pcall(stream.send, stream) }
      results.two = { pcall(stream.send, stream, "event", nil) }
      stream:close()
      results.closed = { stream:send "x" }
    end
    local s = client:sse "/s"
    assert.equal(300, #s:events(400))
    for i = 1, 300 do
      assert.same({ true }, results[i])
      assert.same({ nil, "closed" }, results[300 + i])
    end
    assert.matches("a string, a number or a table, not n", results.nothing[2])
    assert.matches("a string, a number or a table, not nil", results.two[2])
    assert.same({ nil, "closed" }, results.closed)
  end)

  it("does not time out because the machine was held up", function()
    run = function(stream)
      photon.sleep(0.02)
      os.execute "sleep 0.3" -- nothing moves meanwhile
      for _ = 1, 3 do photon.sleep(0.001) end
      stream:send "late"
    end
    local s = client:sse "/s"
    assert.equal("late", s:next(0.25).data)
  end)

  it("gives several at once", function()
    run = function(stream)
      for i = 1, 3 do stream:send(i) end
      photon.sleep(100)
    end
    local s = client:sse "/s"
    assert.equal(2, #s:events(2))
    local rest, why = s:events(2, 0.01)
    assert.equal(1, #rest)
    assert.equal("timeout", why)
  end)

  it("is told its last event id", function()
    run = function(stream) stream:send(tostring(stream.last_event_id)) end
    assert.equal("9", client:sse("/s", { last_event_id = "9" }):next().data)
    assert.equal("nil", client:sse("/s"):next().data)
  end)

  it("raises the error that broke it", function()
    run = function(stream)
      stream:send "a"
      photon.sleep(0)
      error "broken here"
    end
    local s = client:sse "/s"
    assert.equal("a", s:next().data)
    assert.error_matches(function() s:next() end, "^broken here\n")
    s = client:sse("/s", { raise = false })
    s:next()
    assert.same({ nil, "broken" }, { s:next() })
  end)

  it("raises an error before the head at once", function()
    run = function() error "too early" end
    assert.error_matches(function() client:sse "/s" end, "too early")
    assert.equal(500, client:sse("/s", { raise = false }).status)
  end)

  it("notices a client that vanishes", function()
    local result
    run = function(stream)
      stream:send "a"
      photon.sleep(60)
      result = { stream:send "b" }
      photon.sleep(0)
    end
    local s = client:sse "/s"
    s:next()
    s:drop()
    test.settle()
    assert.is_true(closed)
    assert.is_nil(result) -- the sleep was cancelled
    assert.same({ nil, "closed" }, { s:next() })
  end)

  it("holds up a producer whose client reads slowly", function()
    local sent = 0
    run = function(stream)
      for _ = 1, 400 do
        if not stream:send(("x"):rep(1000)) then return end
        sent = sent + 1
      end
    end
    test.clock.freeze(1000)
    local s = client:sse("/s", { slow = 0 })
    test.settle()
    assert.truthy(sent < 100, "a stream's buffer is 64 KiB, " .. sent .. " events were sent")
    local before = sent
    s:slow(100000)
    test.clock.advance(2)
    local events = s:events(400, 0)
    assert.truthy(#events > 150 and #events <= 200, #events .. " events of 1 KB in 2 s at 100 KB/s")
    assert.truthy(sent > before)
    s:slow(nil)
    assert.equal(400 - #events, #s:events(400))
    assert.equal(400, sent)
  end)

  it("loses a client that reads nothing for write_timeout", function()
    run = function(stream)
      while stream:send(("x"):rep(10000)) do photon.sleep(0.01) end
    end
    test.clock.freeze(0)
    local s = client:sse "/s"
    s:slow(0)
    test.clock.advance(59)
    assert.is_false(closed)
    test.clock.advance(3)
    assert.is_true(closed)
  end)

  it("has heartbeats, governed by the clock", function()
    run = function() photon.sleep(1000) end
    test.clock.freeze()
    local s = client:sse "/s"
    assert.is_nil(s:comment(0))
    test.clock.advance(2)
    assert.equal("", s:comment(0))
    assert.is_nil(s:comment(0))
    test.clock.advance(4)
    assert.equal("", s:comment(0))
    assert.equal("", s:comment(0))
  end)
end)

describe("a plain stream", function()
  local app = photon.app()
  app:get("/lines", function()
    return photon.stream({ type = "application/x-ndjson" }, function(stream)
      for i = 1, 3 do
        stream:send { i = i }
        photon.sleep(0)
      end
    end)
  end)
  app:get("/bytes", function()
    return photon.stream({ type = "text/plain" }, function(stream)
      stream:write "one "
      photon.sleep(0.001)
      stream:write "two"
    end)
  end)
  local client = test.app(app)

  it("gives lines", function()
    local s = client:stream "/lines"
    assert.equal('{"i":1}', s:line())
    assert.same({ i = 2 }, s:json())
    assert.same({ i = 3 }, s:json())
    assert.same({ nil, "closed" }, { s:json() })
  end)

  it("gives bytes as they come, or all of them", function()
    local s = client:stream "/bytes"
    assert.equal("one ", s:read())
    assert.equal("two", s:read())
    assert.equal("one two", client:stream("/bytes"):all())
    assert.equal("one two", client:get("/bytes").body)
  end)

  it("has no events", function()
    assert.error_matches(function() client:stream("/bytes"):next() end, "client:sse")
    assert.error_matches(function() client:sse("/bytes"):read() end, "client:stream")
  end)
end)

-- Channels, as apps use them: publishing, subscribing, replay, history, their end.
local photon = require "photon"
local test = require "photon.test"

local function datas(events)
  local list = {}
  for i, event in ipairs(events) do list[i] = event.data end
  return list
end

describe("a channel", function()
  local app = photon.app()
  local news = photon.channel("news", { replay = 100 })
  app:subscribe("/news", { heartbeat = 5, retry = 250, headers = { ["x-from"] = "here" } }, news)
  app:subscribe("/from-start", { from = "start" }, news)
  app:subscribe("/from-last", { from = { last = 2 } }, news)
  app:subscribe("/lines", { type = "application/x-ndjson", from = "start" }, news)
  app:post("/news", function(req)
    local id, why = photon.channel("news"):publish("headline", req:json())
    return { id = id, why = why }
  end)
  local client = test.app(app)

  it("carries what is published to whoever subscribes, with ids", function()
    local s = client:sse "/news"
    assert.equal(200, s.status)
    assert.equal("text/event-stream", s.headers["content-type"])
    assert.equal("here", s.headers["x-from"])
    assert.equal("no", s.headers["x-accel-buffering"])
    local id = client:post("/news", { json = { title = "rain" } }):json().id
    local event = s:next()
    assert.equal("headline", event.event)
    assert.same({ title = "rain" }, event:json())
    assert.equal(id, event.id)
    assert.truthy(id:find "^%w+%-%d+$")
    assert.equal(id, news:last_id())
    s:close()
  end)

  it("is the same for whoever names it", function()
    assert.equal(news, photon.channel "news")
    assert.equal("news", photon.channel("news"):name())
    assert.are_not.equal(news, photon.channel "olds")
  end)

  it("knows how many listen", function()
    assert.equal(0, news:subscribers())
    local one, two = client:sse "/news", client:sse "/news"
    assert.equal(2, news:subscribers())
    one:close()
    assert.equal(1, news:subscribers())
    two:close()
    assert.equal(0, news:subscribers())
    assert.equal(0, test.counts().subscribers)
  end)

  it("never enters Lua to deliver", function()
    local s = client:sse "/news"
    local before = test.counts().tasks
    for i = 1, 50 do news:publish(i) end
    local got = datas(s:events(50))
    assert.equal("1", got[1])
    assert.equal("50", got[50])
    assert.equal(before, test.counts().tasks)
    s:close()
  end)

  it("takes strings, numbers and tables, with line breaks", function()
    local s = client:sse "/news"
    news:publish "a\nb\r\nc"
    news:publish(0.1)
    news:publish { list = photon.array {} }
    assert.same({ "a\nb\nc", "0.1", '{"list":[]}' }, datas(s:events(3)))
    s:close()
    assert.has_error(function() news:publish(true) end)
    assert.has_error(function() news:publish("a\nb", "x") end)
    assert.has_error(function() news:publish() end)
  end)

  it("begins where its route says", function()
    for i = 1, 5 do news:publish(i) end
    local s = client:sse "/from-last"
    assert.same({ "4", "5" }, datas(s:events(2)))
    assert.is_nil(s:next(0.01))
    s:close()
    s = client:sse "/from-start"
    local all = s:events(5)
    assert.equal(5, #all)
    s:close()
  end)

  it("resumes exactly, by header and by query", function()
    local first = news:publish "first"
    news:publish "second"
    local s = client:sse("/news", { last_event_id = first })
    assert.same({ "second" }, datas(s:events(1)))
    news:publish "third"
    assert.same({ "third" }, datas(s:events(1)))
    s:close()
    s = client:sse("/from-start", { query = { last_event_id = first } })
    assert.same({ "second", "third" }, datas(s:events(2)))
    s:close()
  end)

  it("tells of a gap when it does not know the id", function()
    local s = client:sse("/news", { last_event_id = "nonsense" })
    local gap = s:next()
    assert.equal("photon.gap", gap.event)
    assert.equal("nonsense", gap:json().requested)
    assert.equal(news:history({ last = 10000 })[1].id, gap:json().oldest)
    assert.equal("", gap.id)
    s:close()
  end)

  it("answers HEAD with the head alone", function()
    local res = client:head "/news"
    assert.equal(200, res.status)
    assert.equal("text/event-stream", res.headers["content-type"])
    assert.equal("here", res.headers["x-from"])
    assert.equal("", res.body)
  end)

  it("speaks NDJSON", function()
    local id = news:publish("kind", { n = 1 })
    local s = client:stream("/lines", { last_event_id = news:history({ last = 2 })[1].id })
    assert.same({ id = id, event = "kind", data = { n = 1 } }, s:json())
    s:close()
  end)

  it("keeps clients by heartbeats, under the frozen clock too", function()
    test.clock.freeze()
    local s = client:sse "/news"
    assert.is_nil(s:comment(0))
    test.clock.advance(5.1)
    assert.equal("", s:comment(0.5))
    s:close()
  end)

  it("says how soon to come back", function()
    local s = client:sse "/news"
    news:publish "x"
    s:next()
    assert.equal(250, s.parser.retry)
    s:close()
  end)

  it("asks no more memory for its history than for what is kept", function()
    local many = photon.channel("many", { replay = 10, backlog = 1024 })
    for i = 1, 100000 do many:publish(tostring(i)) end
    collectgarbage()
    collectgarbage "stop"
    local before = collectgarbage "count"
    local list = many:history { last = 1e15 }
    local grown = collectgarbage "count" - before
    collectgarbage "restart"
    assert.equal("100000", list[#list].data)
    assert.is_true(#list >= 10 and #list < 200)
    assert.is_true(grown < 200, grown .. " kB")
  end)

  it("has a history", function()
    local ids = {}
    for i = 1, 5 do ids[i] = news:publish("n", i) end
    local list = news:history { last = 3 }
    assert.same({ "3", "4", "5" }, datas(list))
    assert.same({ ids[3], ids[4], ids[5] }, { list[1].id, list[2].id, list[3].id })
    assert.equal("n", list[1].event)
    assert.equal(3, list[1]:json())
    assert.same({ "1", "2" }, datas(news:history { last = 2, before = ids[3] }))
    assert.same({}, news:history { last = 0 })
    assert.same({ nil, "the id is not one of this channel" }, { news:history { before = "x-1" } })
    assert.has_error(function() news:history { last = -1 } end)
  end)
end)

describe("what a channel keeps", function()
  local app = photon.app()
  app:subscribe("/:name", { from = "start" }, function(req)
    return photon.channel(req.params.name)
  end)
  local client = test.app(app)

  it("is bounded by age, under the frozen clock", function()
    test.clock.freeze()
    local ch = photon.channel("aged", { replay = 100, replay_age = 10 })
    local first = ch:publish "old"
    test.clock.advance(6)
    ch:publish "young"
    assert.equal(2, #ch:history())
    test.clock.advance(6)
    assert.same({ "young" }, datas(ch:history()))
    local s = client:sse("/aged", { last_event_id = first })
    assert.same({ "young" }, datas(s:events(1)))
    s:close()
  end)

  it("is the larger of replay and backlog", function()
    local few = photon.channel("few", { backlog = 0, replay = 2 })
    for i = 1, 5 do few:publish(i) end
    assert.same({ "4", "5" }, datas(few:history()))
    local many = photon.channel("many", { backlog = "64 KiB" })
    for i = 1, 50 do many:publish(i) end
    assert.equal(50, #many:history())
    local s = client:sse "/few"
    assert.same({ "4", "5" }, datas(s:events(2)))
    s:close()
  end)

  it("tells of a gap when the place has fallen off", function()
    local ch = photon.channel("short", { backlog = 0, replay = 2 })
    local first = ch:publish(1)
    for i = 2, 5 do ch:publish(i) end
    local s = client:sse("/short", { last_event_id = first })
    local gap = s:next()
    assert.equal("photon.gap", gap.event)
    assert.equal(first, gap:json().requested)
    assert.same({ "4", "5" }, datas(s:events(2)))
    s:close()
  end)

  it("goes on by the gap policy or closes, when a reader is slow", function()
    local ch = photon.channel("gappy", { backlog = 0, replay = 4 })
    local s = client:sse("/gappy", { slow = 0 })
    for i = 1, 400 do ch:publish(("%d %s"):format(i, ("x"):rep(5000))) end
    test.settle()
    s:slow(nil)
    local seen, gaps, last = 0, 0, 0
    while last < 400 do
      local event = assert(s:next(2))
      if event.event == "photon.gap" then
        gaps = gaps + 1
      else
        seen, last = seen + 1, tonumber(event.data:match "^%d+")
      end
    end
    assert.truthy(gaps >= 1)
    assert.truthy(seen < 400)
    s:close()
    local strict = photon.channel("strict", { backlog = 0, replay = 4, slow = "close" })
    s = client:sse("/strict", { slow = 0 })
    for i = 1, 400 do strict:publish(("%d %s"):format(i, ("x"):rep(5000))) end
    test.settle()
    s:slow(nil)
    local event, why
    repeat event, why = s:next(2) until not event
    assert.equal("broken", why)
  end)
end)

describe("finish", function()
  local app = photon.app()
  app:subscribe("/:name", { from = "start" }, function(req) return photon.channel(req.params.name) end)
  local client = test.app(app)

  it("gives a last event, then a clean end, then 204", function()
    local ch = photon.channel("done", { replay = 10 })
    local first = ch:publish "one"
    local s = client:sse "/done"
    assert.equal("one", s:next().data)
    local last = ch:finish("bye", "now")
    local event = s:next()
    assert.same({ "bye", "now", last }, { event.event, event.data, event.id })
    assert.same({ nil, "closed" }, { s:next() })
    assert.is_true(ch:is_finished())
    s = client:sse("/done", { last_event_id = first })
    assert.equal("now", s:next().data)
    assert.same({ nil, "closed" }, { s:next() })
    assert.equal(204, client:get("/done", { headers = { ["last-event-id"] = last } }).status)
  end)

  it("ends publishing", function()
    local ch = photon.channel "over"
    ch:finish()
    local id, why = ch:publish "x"
    assert.is_nil(id)
    assert.is_string(why)
    assert.is_nil((ch:finish()))
  end)
end)

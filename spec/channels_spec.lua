-- Channels, as apps use them: publishing, subscribing, replay, history, reading in tasks, presence.
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

describe("admission", function()
  local asked = 0
  local app = photon.app()
  app:use(function(req, inner)
    local res = inner(req)
    res.headers["x-through"] = "yes"
    return res
  end)
  local plain = photon.channel "plain"
  app:subscribe("/plain", plain)
  app:subscribe("/open", { middleware = false }, plain)
  app:subscribe("/rooms/:room", function(req)
    asked = asked + 1
    if req.query.key ~= "k" then error(photon.problem(401, "who are you?")) end
    return photon.channel("room:" .. req.params.room, { replay = 5 }),
      req.query.name and { member = req.query.name, info = { shown = req.query.name:upper() } }
  end)
  app:subscribe("/both", function() return { photon.channel "left", photon.channel "right" } end)
  app:subscribe("/fixed-both", { photon.channel "left", photon.channel "right" })
  app:subscribe("/elsewhere", function() return photon.redirect "/plain" end)
  app:subscribe("/wrong", function() return "text" end)
  app:subscribe("/nothing", function() end)
  app:subscribe("/odd", function() return plain, { name = "x" } end)
  local client = test.app(app)

  it("may refuse", function()
    local res = client:get "/rooms/a"
    assert.equal(401, res.status)
    assert.equal("who are you?", res:json().detail)
  end)

  it("happens once, and then C is alone", function()
    asked = 0
    local s = client:sse("/rooms/a", { query = { key = "k" } })
    assert.equal("yes", s.headers["x-through"])
    assert.equal(1, asked)
    local tasks = test.counts().tasks
    photon.channel("room:a"):publish "hello"
    assert.equal("hello", s:next().data)
    assert.equal(1, asked)
    assert.equal(tasks, test.counts().tasks)
    s:close()
    assert.equal(0, photon.channel("room:a"):subscribers())
  end)

  it("stands behind middleware unless it opts out", function()
    local s = client:sse "/plain"
    assert.equal("yes", s.headers["x-through"])
    s:close()
    s = client:sse "/open"
    assert.is_nil(s.headers["x-through"])
    s:close()
  end)

  it("may join channels, with ids that resume each of them", function()
    local left, right = photon.channel "left", photon.channel "right"
    for _, path in ipairs { "/both", "/fixed-both" } do
      local s = client:sse(path)
      left:publish "l1"
      right:publish "r1"
      local got = s:events(2)
      table.sort(got, function(a, b) return a.data < b.data end)
      assert.same({ "l1", "r1" }, datas(got))
      local id = s.parser.last_id
      s:close()
      left:publish "l2"
      right:publish "r2"
      s = client:sse(path, { last_event_id = id })
      got = datas(s:events(2))
      table.sort(got)
      assert.same({ "l2", "r2" }, got)
      assert.is_nil(s:next(0.01))
      s:close()
    end
  end)

  it("may answer otherwise", function()
    assert.equal(303, client:get("/elsewhere").status)
  end)

  it("must return a channel", function()
    assert.equal(500, client:get("/wrong", { raise = false }).status)
    assert.equal(500, client:get("/nothing", { raise = false }).status)
    assert.equal(500, client:get("/odd", { raise = false }).status)
  end)

  it("may wait for its end", function()
    local closed = false
    local own = photon.app()
    own:subscribe("/", function(req)
      req:on_close(function() closed = true end)
      return photon.channel "watched"
    end)
    local s = test.app(own):sse "/"
    assert.equal(200, s.status)
    assert.is_false(closed)
    s:close()
    assert.is_true(closed)
  end)

  it("answers HEAD after asking", function()
    assert.equal(401, client:head("/rooms/a").status)
    local res = client:head("/rooms/a", { query = { key = "k" } })
    assert.equal(200, res.status)
    assert.equal("text/event-stream", res.headers["content-type"])
  end)
end)

describe("presence", function()
  local app = photon.app()
  app:subscribe("/:room", function(req)
    return photon.channel("room:" .. req.params.room), { member = req.query.name, info = { age = 7 } }
  end)
  local client = test.app(app)
  local function enter(room, name) return client:sse("/" .. room, { query = { name = name } }) end

  it("lists who is there, once each", function()
    local room = photon.channel "room:a"
    assert.same({}, room:members())
    local ann, bob, again = enter("a", "ann"), enter("a", "bob"), enter("a", "ann")
    local nobody = client:sse "/a"
    assert.same({ { id = "ann", info = { age = 7 } }, { id = "bob", info = { age = 7 } } }, room:members())
    again:close()
    assert.equal(2, #room:members())
    ann:close()
    assert.same({ { id = "bob", info = { age = 7 } } }, room:members())
    bob:close()
    nobody:close()
    assert.same({}, room:members())
  end)

  it("tells who comes and goes", function()
    local room, log = photon.channel "room:b", {}
    local joins = room:on_join(function(member, info) log[#log + 1] = "+" .. member .. info.age end)
    room:on_leave(function(member) log[#log + 1] = "-" .. member end)
    local ann, again = enter("b", "ann"), enter("b", "ann")
    local bob = enter("b", "bob")
    ann:close()
    again:close()
    test.settle()
    assert.same({ "+ann7", "+bob7", "-ann" }, log)
    joins:stop()
    local cy = enter("b", "cy")
    test.settle()
    assert.equal(3, #log)
    cy:close()
    bob:close()
    test.settle()
    assert.same({ "-cy", "-bob" }, { log[4], log[5] })
  end)

  it("goes on after an error in such a function", function()
    local room, count = photon.channel "room:c", 0
    room:on_join(function()
      count = count + 1
      error "no"
    end)
    enter("c", "ann")
    enter("c", "bob")
    test.settle()
    assert.equal(2, count)
  end)

  it("can send somebody away", function()
    local room = photon.channel "room:d"
    local ann, again, bob = enter("d", "ann"), enter("d", "ann"), enter("d", "bob")
    assert.equal(2, room:kick "ann")
    assert.same({ nil, "closed" }, { ann:next() })
    assert.same({ nil, "closed" }, { again:next() })
    room:publish "x"
    assert.equal("x", bob:next().data)
    assert.equal(0, room:kick "ann")
  end)
end)

describe("reading in a task", function()
  test.app(photon.app())

  it("waits for what comes", function()
    local ch, got = photon.channel("feed", { replay = 10 }), {}
    ch:publish "before"
    local t = photon.spawn(function()
      for event in ch:events() do got[#got + 1] = event.event .. " " .. event.data end
      return "ended"
    end)
    test.settle()
    ch:publish "one"
    test.settle()
    ch:publish("two", { n = 2 })
    ch:finish("last", "three")
    assert.same({ true, "ended" }, { t:join() })
    assert.same({ "message one", 'two {"n":2}', "last three" }, got)
  end)

  it("begins after an id", function()
    local ch = photon.channel("feed2", { replay = 10 })
    local first = ch:publish(1)
    for i = 2, 40 do ch:publish(i) end
    ch:finish()
    local got = {}
    for event in ch:events(first) do got[#got + 1] = tonumber(event.data) end
    assert.equal(39, #got)
    for i, n in ipairs(got) do assert.equal(i + 1, n) end
  end)

  it("tells of a gap", function()
    local ch = photon.channel("feed3", { backlog = 0, replay = 2 })
    local first = ch:publish(1)
    for i = 2, 5 do ch:publish(i) end
    ch:finish()
    local got = {}
    for event in ch:events(first) do got[#got + 1] = event end
    assert.same({ "photon.gap", "message", "message" }, { got[1].event, got[2].event, got[3].event })
    assert.same({ requested = first, oldest = got[2].id }, got[1]:json())
    got = {}
    for event in ch:events "other-7" do got[#got + 1] = event end
    assert.equal("other-7", got[1]:json().requested)
    assert.equal(3, #got)
  end)

  it("ends by cancellation", function()
    local ch, ended = photon.channel "feed4", nil
    local t = photon.spawn(function()
      local _, err = pcall(function() for _ in ch:events() do end end)
      ended = err
    end)
    test.settle()
    t:cancel()
    t:join()
    assert.equal(photon.cancelled, ended)
    ch:publish "into nothing"
  end)
end)

describe("options", function()
  local app = photon.app { max_channels = 4, max_event = 1000 }
  app:get("/open/:name", function(req) return photon.channel(req.params.name):name() end)
  local client = test.app(app)

  it("that differ within one load are an error with both places", function()
    local kept = photon.channel("x", { replay = 5 })
    assert.equal(kept, photon.channel("x", { replay = 5 }))
    assert.equal(kept, photon.channel "x")
    local ok, message = pcall(photon.channel, "x", { replay = 6 })
    assert.is_false(ok)
    local here = "channels_spec.lua:%d+"
    assert.truthy(message:find(here .. ".*" .. here), message)
  end)

  it("are checked", function()
    for _, wrong in ipairs { { replay = -1 }, { replay = "x" }, { replay = 0.5 }, { replay_age = 0 },
      { backlog = "x" }, { slow = "fast" }, { keep = 1 }, { log = "" }, { log = true } } do
      assert.has_error(function() photon.channel("y", wrong) end)
    end
    local _, message = pcall(photon.channel, "y", { log = 7 })
    assert.truthy(message:find("log is the path of a file", 1, true), message)
  end)

  it("write no log here", function()
    local ch = photon.channel("logged", { log = "/nowhere/at/all.log" })
    assert.truthy(ch:publish "x")
  end)

  it("go with a name", function()
    for _, wrong in ipairs { "", ("x"):rep(129), "a\nb" } do
      assert.has_error(function() photon.channel(wrong) end)
    end
    assert.has_error(function() photon.channel(7) end)
    assert.equal(128, #photon.channel(("x"):rep(128)):name())
  end)

  it("are bounded in number: 503", function()
    local kept = {}
    for i = 1, 4 do
      local ok, ch = pcall(photon.channel, "c" .. i)
      kept[i] = ok and ch or nil
    end
    local res = client:get "/open/more"
    assert.equal(503, res.status)
    assert.equal("5", res.headers["retry-after"])
    for i in pairs(kept) do kept[i] = nil end
    assert.equal(200, client:get("/open/more").status)
  end)

  it("bound an event", function()
    local ch = photon.channel "x"
    assert.is_string((ch:publish(("x"):rep(1000))))
    local id, why = ch:publish(("x"):rep(1001))
    assert.is_nil(id)
    assert.is_string(why)
  end)
end)

describe("app:subscribe refuses", function()
  it("what it cannot serve", function()
    local app = photon.app()
    local ch = photon.channel "z"
    for _, wrong in ipairs { { "/", "text" }, { "/", {} }, { "/", { from = "end" }, ch }, { "/", { slow = "gap" }, ch },
      { "/", { hartbeat = 1 }, ch }, { "/", { retry = "x" }, ch }, { "/", { type = "text/html" }, ch },
      { "/", { headers = { a = "\r\n" } }, ch }, { "/", { from = { last = -1 } }, ch }, { "x", ch } } do
      assert.has_error(function() app:subscribe(unpack(wrong)) end)
    end
  end)
end)

describe("limits on streams", function()
  it("are those of an address, by 429", function()
    local app = photon.app { max_streams_per_ip = 2 }
    app:subscribe("/c", photon.channel "c")
    app:sse("/s", function() photon.sleep(100) end)
    app:subscribe("/l", function() return photon.channel "c" end)
    local client = test.app(app)
    local one = client:sse("/c", { ip = "192.0.2.1" })
    local two = client:sse("/s", { ip = "192.0.2.1" })
    for _, path in ipairs { "/c", "/s", "/l" } do
      local res = client:get(path, { ip = "192.0.2.1" })
      assert.equal(429, res.status)
      assert.equal("5", res.headers["retry-after"])
    end
    assert.equal(200, client:head("/c", { ip = "192.0.2.1" }).status)
    local other = client:sse("/l", { ip = "192.0.2.2" })
    assert.equal(200, other.status)
    one:close()
    local again = client:sse("/l", { ip = "192.0.2.1" })
    assert.equal(200, again.status)
    two:close()
    client:sse("/c", { ip = "2001:db8:1:2::1" })
    client:sse("/c", { ip = "2001:db8:1:2::2" })
    assert.equal(429, client:get("/c", { ip = "2001:db8:1:2::3" }).status)
    assert.equal(200, client:sse("/c", { ip = "2001:db8:1:3::3" }).status)
  end)

  it("look behind trusted proxies", function()
    local app = photon.app { max_streams_per_ip = 1, trusted_proxies = { "10.0.0.0/8" } }
    app:subscribe("/c", photon.channel "c")
    local client = test.app(app)
    local function open(ip)
      return client:sse("/c", { ip = "10.1.1.1", headers = { ["x-forwarded-for"] = ip } })
    end
    assert.equal(200, open("192.0.2.1").status)
    assert.equal(200, open("192.0.2.2").status)
    assert.equal(429, open("192.0.2.2").status)
  end)

  it("are those of the server, by 503", function()
    local app = photon.app { max_streams = 1 }
    app:subscribe("/c", photon.channel "c")
    local client = test.app(app)
    local s = client:sse "/c"
    local res = client:get "/c"
    assert.equal(503, res.status)
    assert.equal("5", res.headers["retry-after"])
    s:close()
  end)
end)

describe("channels of apps under test", function()
  describe("of one", function()
    local app = photon.app()
    app:subscribe("/", { from = "start" }, photon.channel("same", { replay = 3 }))
    local client = test.app(app)
    it("are its own", function()
      photon.channel("same"):publish "one"
      assert.equal("one", client:sse("/"):next().data)
    end)
  end)
  describe("of another", function()
    local app = photon.app()
    app:subscribe("/", { from = "start" }, photon.channel("same", { replay = 4 }))
    local client = test.app(app)
    it("are others", function()
      assert.equal(0, #photon.channel("same"):history())
      assert.is_nil(client:sse("/"):next(0.01))
    end)
  end)
end)

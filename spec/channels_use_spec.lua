-- Channels in tasks and hooks: reading, presence, options.
local photon = require "photon"
local test = require "photon.test"

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

  it("is one task's: a second that waits for the same is told", function()
    local ch, got = photon.channel "feed5", {}
    local read, reader = ch:events()
    local first = photon.spawn(function() got[1] = read(reader).data end)
    test.settle()
    local ok, why = pcall(read, reader)
    assert.is_false(ok)
    assert.truthy(why:find("channels_use_spec.lua:%d+: channel:events of one call is read by one task"), why)
    ch:publish "to the first"
    first:join()
    assert.same({ "to the first" }, got)
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
    local here = "channels_use_spec.lua:%d+"
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

-- Channels of a real server: several workers, clients that vanish, reloads, the end.
local live = require "spec.live"
local reader = require "spec.reader"
local socket = require "spec.socket"
local json = require("photon").json

local SOURCE = [[
local photon = require "photon"
local app = photon.app()
local VERSION = "%s"
local news = photon.channel("news", { replay = %s })
app:subscribe("/news", news)
app:subscribe("/start", { from = "start" }, news)
app:subscribe("/rooms/:room", function(req)
  return photon.channel("room:" .. req.params.room), { member = req.query.name, info = { v = VERSION } }
end)
app:subscribe("/held", function(req)
  req:on_close(function() photon.log.info("held has closed") end)
  return news
end)
app:post("/news", function(req) return { id = news:publish("news", req:body()) } end)
app:post("/burst", function(req)
  for i = 1, tonumber(req.query.n) do news:publish("n" .. i) end
end)
app:post("/finish", function(req) return { id = photon.channel "news":finish("end", "") } end)
app:get("/version", function() return VERSION end)
app:get("/worker", function() return tostring(photon.worker.id) end)
app:get("/members/:room", function(req) return photon.channel("room:" .. req.params.room):members() end)
app:post("/kick/:room/:name", function(req)
  return { n = photon.channel("room:" .. req.params.room):kick(req.params.name) }
end)
local lobby, log = photon.channel "room:lobby", photon.channel("log", { replay = 100 })
lobby:on_join(function(member) log:publish("join", member) end)
lobby:on_leave(function(member) log:publish("leave", member) end)
app:on_start(function() lobby:on_join(function(member) log:publish("started", member .. VERSION) end) end)
app:subscribe("/log", { from = "start" }, log)
app:metrics "/metrics"
return app
]]

local server

local function source(version, replay)
  return SOURCE:format(version, replay or 100000)
end

local function read(path, last_id)
  return reader.open(server, path, last_id)
end

local function publish(text)
  local reply = server:request("POST", "/news", nil, text)
  assert.equal(200, reply.status)
  return reply.body:match '"id":"([^"]+)"'
end

describe("channels with three workers", function()
  before_each(function() server = live.start { source = source "one", flags = "--workers 3" } end)
  after_each(function() server:stop() end)

  it("reach every subscriber from every worker, without Lua", function()
    local readers = {}
    for i = 1, 12 do
      readers[i] = read "/news"
      assert.equal(200, readers[i]:wait_status())
    end
    local before, wanted = server:metric "photon_lua_entries_total", {}
    for i = 1, 20 do wanted[i] = "n" .. i end
    assert.equal(204, server:request("POST", "/burst?n=20").status)
    for _, r in ipairs(readers) do assert.same(wanted, reader.datas(r:wait(20))) end
    assert.equal(1, server:metric "photon_lua_entries_total" - before)
    assert.equal(12, server:metric "photon_channel_subscribers")
    server:becomes("photon_channel_deliveries_total", 240)
    for _, r in ipairs(readers) do r.socket:close() end
    server:becomes("photon_channel_subscribers", 0)
  end)

  it("live across a reload, and hold no old code", function()
    local plain, room = read "/news", read "/rooms/a?name=ann"
    assert.equal(200, plain:wait_status())
    assert.equal(200, room:wait_status())
    local first = publish "before"
    assert.truthy(plain:wait(1))
    server:replace(source("two", 3))
    assert.is_true(server:reload())
    server:becomes("photon_generations", 1)
    local second = publish "after"
    assert.same({ "before", "after" }, reader.datas(plain:wait(2)))
    assert.equal(first:match "^%w+", second:match "^%w+")
    local members = json.decode(server:get("/members/a").body)
    assert.same({ { id = "ann", info = { v = "one" } } }, members)
    local again = read("/news", first)
    assert.same({ "after" }, reader.datas(again:wait(1)))
  end)

  it("keep an old generation only for a subscriber that waits for its end", function()
    local held = read "/held"
    assert.equal(200, held:wait_status())
    server:replace(source "two")
    assert.is_true(server:reload())
    publish "x"
    assert.truthy(held:wait(1))
    assert.equal(2, server:metric "photon_generations")
    held.socket:close()
    assert.truthy(server:has_logged "held has closed")
    server:becomes("photon_generations", 1)
  end)

  it("are not changed by code that fails to load", function()
    server:replace((source("bad", 1):gsub("return app", "error 'no'")))
    assert.is_false((server:reload()))
    for i = 1, 10 do publish(tostring(i)) end
    assert.equal(10, #read("/start"):wait(10))
    server:replace(source("worse"):gsub("return app", 'photon.channel("news", { replay = 7 }) return app'))
    local ok, text = server:reload()
    assert.is_false(ok)
    assert.truthy(text:find "app%.lua:%d+.*app%.lua:%d+", text)
    assert.equal("one", server:get("/version").body)
  end)

  it("end for good", function()
    local one = read "/news"
    assert.equal(200, one:wait_status())
    local id = publish "x"
    local last = server:request("POST", "/finish").body:match '"id":"([^"]+)"'
    assert.same({ "x", "" }, reader.datas(one:wait(2)))
    assert.is_true(one:has_ended())
    assert.same({ "" }, reader.datas(read("/news", id):wait(1)))
    assert.equal(204, read("/news", last):wait_status())
  end)

  it("know who is there, once, in all workers", function()
    local log = read "/log"
    local ann, again, bob = read "/rooms/lobby?name=ann", read "/rooms/lobby?name=ann", read "/rooms/lobby?name=bob"
    for _, r in ipairs { ann, again, bob } do assert.equal(200, r:wait_status()) end
    local function said(events)
      local list = {}
      for i, event in ipairs(events) do list[i] = event.event .. " " .. event.data end
      table.sort(list)
      return list
    end
    assert.same({ "join ann", "join bob", "started annone", "started bobone" }, said(log:wait(4)))
    server:replace(source "two")
    assert.is_true(server:reload())
    ann.socket:close()
    again.socket:reset()
    log:wait(5)
    local cy = read "/rooms/lobby?name=cy"
    assert.equal(200, cy:wait_status())
    log:wait(7)
    assert.equal('{"n":1}', server:request("POST", "/kick/lobby/bob").body)
    assert.is_true(bob:has_ended())
    assert.same({ "join ann", "join bob", "join cy", "leave ann", "leave bob", "started annone", "started bobone",
      "started cytwo" }, said(log:wait(8)))
    local members
    socket.eventually(function()
      members = server:get("/members/lobby").body
      return members:find '"cy"' and not members:find '"bob"' and not members:find '"ann"'
    end, function() return "cy is alone: " .. members end)
  end)

  it("are exact for clients that come and go, whatever happens", function()
    math.randomseed(os.time())
    local total, sent, clients = 400, 0, {}
    local pending = {}
    for i = 1, 4 do pending[i] = server:connect() end
    for i = 1, 60 do clients[i] = { got = {} } end
    local function post(s)
      sent = sent + 1
      local body = tostring(sent)
      s:send(("POST /news HTTP/1.1\r\nhost: photon.test\r\ncontent-length: %d\r\n\r\n%s"):format(#body, body))
    end
    local function take(c)
      c.reader:look()
      for i = c.taken + 1, #c.reader.events do
        local event = c.reader.events[i]
        assert.are_not.equal("photon.gap", event.event)
        c.got[#c.got + 1] = event.data
        if event.id ~= "" then c.id = event.id end
      end
      c.taken = #c.reader.events
    end
    local function come(c) c.reader, c.taken = read("/start", c.id), 0 end
    local round = 0
    while sent < total do
      round = round + 1
      for _, s in ipairs(pending) do
        if sent < total then post(s) end
        s:try_receive()
      end
      for _, c in ipairs(clients) do
        if not c.reader then
          if math.random() < 0.4 then come(c) end
        elseif math.random() < 0.3 then
          take(c)
          if math.random() < 0.5 then
            if math.random() < 0.5 then c.reader.socket:reset() else c.reader.socket:close() end
            c.reader = nil
          end
        end
      end
      if round % 40 == 0 then
        server:replace(source(tostring(round)))
        server:signal "HUP"
      end
    end
    server:becomes("photon_channel_events_total", total)
    local whole = reader.datas(read("/start"):wait(total))
    local is_sent = {}
    for _, n in ipairs(whole) do
      assert.is_nil(is_sent[n])
      is_sent[n] = true
    end
    for _, c in ipairs(clients) do
      if not c.reader then come(c) end
      socket.eventually(function()
        take(c)
        return #c.got >= total
      end, "an event is missing")
      assert.same(whole, c.got)
      c.reader.socket:close()
    end
    for _, s in ipairs(pending) do s:close() end
  end)

  it("say when to come again when the server stops, and end cleanly", function()
    local r = read "/news"
    assert.equal(200, r:wait_status())
    server:signal "TERM"
    assert.is_true(r:has_ended())
    assert.truthy(r.parser.retry)
    assert.equal(0, server:wait())
  end)
end)

-- Durable channels of a real server, killed and started again.
local durable = require "spec.durable"
local live = require "spec.live"
local json = require("photon").json
local replies = require "spec.replies"
local socket = require "spec.socket"

describe("durable channels", function()
  before_each(durable.open)
  after_each(durable.close)

  it("have history, ids and epoch back after a restart, and clients resume", function()
    local server = durable.start()
    local ids = {}
    for i, text in ipairs { "one", "two\nlines", "three" } do ids[i] = durable.id_of(durable.publish(server, text)) end
    local first, second, third = ids[1], ids[2], ids[3]
    local before = durable.all(server)
    server:stop()
    server = durable.start()
    assert.same(before, durable.all(server))
    local epoch, sequence = durable.parts(third)
    assert.equal(epoch .. "-" .. sequence + 1, durable.id_of(durable.publish(server, "four")))
    local s = durable.subscribe(server, first)
    assert.truthy(s:comes "data: four")
    assert.falsy(s.received:find("photon.gap", 1, true))
    assert.falsy(s.received:find("data: one", 1, true))
    assert.truthy(s.received:find("data: two\ndata: lines\nid: " .. second .. "\n", 1, true))
    s:close()
    server:stop()
  end)

  -- What a publisher was told is there after each kill, once, as it was, with the id that it was
  -- told; the row of ids has no hole; a resuming subscriber gets exactly what came after.
  it("keep what was acknowledged when they are killed again and again", function()
    local PUBLISHERS, ROUNDS = 8, 10
    local acknowledged, count, epoch = {}, 0, nil
    local seed = os.time()
    math.randomseed(seed)

    local function begin(server, round)
      local publishers = {}
      for p = 1, PUBLISHERS do
        local one = { socket = server:connect(), texts = {}, requests = {} }
        for i = 1, 400 do
          local text = ("%d/%d/%d %s"):format(round, p, i, ("y"):rep(math.random(0, 2000)))
          one.texts[i] = text
          one.requests[i] = ("POST /news HTTP/1.1\r\nhost: t\r\ncontent-length: %d\r\n\r\n%s"):format(#text, text)
        end
        one.bytes, one.from, one.replies = table.concat(one.requests), 1, replies.reader {}
        publishers[p] = one
      end
      return publishers
    end

    -- What has come from the server to one; whether that was anything.
    local function take(one)
      local piece = one.socket:try_receive()
      if piece then one.replies:feed(piece) end
      return piece
    end

    -- Everybody sends and reads, until there are so many replies.
    local function run(publishers, wanted)
      socket.eventually(function()
        local waits, replied = {}, 0
        for i, one in ipairs(publishers) do
          if one.from <= #one.bytes then one.from = one.from + (one.socket:try_send(one.bytes, one.from) or 0) end
          waits[i] = { socket = one.socket, events = socket.reading }
        end
        socket.poll(waits, 0.002)
        for _, one in ipairs(publishers) do
          take(one)
          replied = replied + #one.replies.list
        end
        return replied >= wanted
      end, wanted .. " replies")
    end

    local function note(publishers)
      for _, one in ipairs(publishers) do
        assert.is_true(socket.eventually(function() return not take(one) and one.socket.is_closed end, "an end"))
        for i, reply in ipairs(one.replies.list) do
          if not reply.is_complete or reply.status ~= 200 then break end
          local id = json.decode(reply.body).id
          assert.is_nil(acknowledged[id], "an id was given twice")
          acknowledged[id], count = one.texts[i], count + 1
        end
        one.socket:close()
      end
    end

    local last_seen
    for round = 1, ROUNDS do
      local server = durable.start()
      local list = durable.all(server).list
      local texts, seen = {}, {}
      for i, event in ipairs(list) do
        local e, sequence = durable.parts(event.id)
        epoch = epoch or e
        assert.equal(epoch, e)
        assert.equal(i, sequence)
        assert.is_nil(seen[event.data], "an event is there twice")
        texts[event.id], seen[event.data] = event.data, true
      end
      for id, text in pairs(acknowledged) do
        if texts[id] ~= text then error(("seed %d, round %d: %s is lost or changed"):format(seed, round, id)) end
      end
      if last_seen then
        local s = durable.subscribe(server, last_seen)
        local _, sequence = durable.parts(last_seen)
        if #list > sequence then
          assert.truthy(s:comes("id: " .. list[#list].id .. "\n"))
          assert.equal(list[sequence + 1].id, s.received:match "\nid: (%S+)")
        end
        assert.falsy(s.received:find("photon.gap", 1, true))
        s:close()
      end
      local reader = durable.subscribe(server)
      local publishers = begin(server, round)
      run(publishers, math.random(20, 600))
      durable.kill(server)
      note(publishers)
      assert.is_true(reader:closes())
      for id in reader.received:gmatch "\nid: (%S+)\n" do last_seen = id end
      reader:close()
    end
    assert.is_true(count >= ROUNDS, "too few were acknowledged: " .. count)
  end)

  it("stay within their bounds", function()
    local server = durable.start { replay = 10, backlog = 65536 }
    for _ = 1, 12 do
      local res = durable.post(server, "/burst?n=200&size=4000")
      assert.equal('{"count":200}', res.body)
      assert.is_true(durable.size(durable.path) + durable.size(durable.path .. "-2") < 4 * 1024 * 1024)
    end
    assert.is_true(durable.size(durable.path) > 0 and durable.size(durable.path .. "-2") > 0, "never turned")
    durable.survives(server, { replay = 10, backlog = 65536 })
  end)

  it("are finished for good", function()
    local server = durable.start()
    durable.publish(server, "one")
    assert.equal(200, durable.post(server, "/finish").status)
    assert.equal(503, durable.publish(server, "late").status)
    server = durable.revive(server)
    local res = durable.publish(server, "later")
    assert.equal(503, res.status)
    assert.truthy(res.body:find("finished", 1, true))
    assert.equal("over", durable.all(server).list[2].data)
    server:stop()
  end)

  it("are opened by handlers too, as a wait", function()
    local server = durable.start()
    local bodies = {}
    for i = 1, 3 do bodies[i] = durable.post(server, "/room/tea", "cup " .. i).body end
    assert.truthy(bodies[3]:find('"n":3', 1, true), bodies[3])
    assert.truthy(durable.read(server.folder .. "/room-tea.log"):find("cup 3", 1, true))
    server:stop()
  end)

  it("have events or none of tasks that were cancelled while they published", function()
    local server = durable.start()
    local id = durable.id_of(durable.post(server, "/cancelled"))
    local before = durable.all(server)
    assert.equal(id, before.last)
    assert.truthy(#before.list <= 101)
    durable.survives(server)
  end)

  it("live on over reloads", function()
    local server = durable.start()
    local first = durable.id_of(durable.publish(server, "one"))
    local s = durable.subscribe(server)
    assert.truthy(s:comes "data: one")
    server:signal "HUP"
    assert.truthy(server:has_logged "reload")
    local epoch = durable.parts(first)
    assert.equal(epoch .. "-2", durable.id_of(durable.publish(server, "two")))
    assert.truthy(s:comes "data: two")
    s:close()
    server:stop()
  end)

  -- An app whose channel has a log or none.
  local function source(log)
    return ([[
local photon = require "photon"
local app = photon.app()
local news = photon.channel("news", { replay = 10, log = %s })
app:post("/news", function(req) return { id = news:publish(req:body()) } end)
app:get("/all", function() return { list = photon.array(news:history()), last = news:last_id() } end)
return app
]]):format(log and ("%q"):format(log) or "nil")
  end

  it("begin at a reload where nothing has been published", function()
    local server = live.start { source = source(), flags = "--workers 2" }
    finally(function() server:stop() end)
    server:replace(source(durable.path))
    assert.is_true(server:reload())
    durable.id_of(durable.publish(server, "to the disk"))
    assert.truthy(durable.read(durable.path):find("to the disk", 1, true))
    server:replace(source())
    assert.is_true(server:reload())
    durable.publish(server, "still so")
    assert.truthy(durable.read(durable.path):find("still so", 1, true))
  end)

  it("are refused by a reload where something has been, which says what to do", function()
    local server = live.start { source = source(), flags = "--workers 2" }
    finally(function() server:stop() end)
    local id = durable.id_of(durable.publish(server, "in memory"))
    server:replace(source(durable.path))
    local ok, text = server:reload()
    assert.is_false(ok)
    assert.truthy(text:find('app.lua:3: photon.channel "news": ', 1, true), text)
    assert.truthy(text:find("the channel lives already, with events that are in no log", 1, true), text)
    assert.truthy(text:find("give the log to a channel of another name, or restart the server", 1, true), text)
    assert.equal(id, durable.all(server).last)
    assert.equal(0, durable.size(durable.path))
  end)
end)

-- Durable channels of a real server: killed while it publishes, with a disk that fills up, with
-- files that were damaged.
local json = require("photon").json
local live = require "spec.live"
local replies = require "spec.replies"
local socket = require "spec.socket"

local SOURCE = [[
local photon = require "photon"
local app = photon.app()
local news = photon.channel("news", { replay = %d, backlog = %d, log = "%s" })
app:subscribe("/news", { from = "start", heartbeat = 0 }, news)
app:post("/news", function(req)
  local id, why = news:publish("news", req:body())
  if not id then return photon.problem(503, why) end
  return { id = id }
end)
app:post("/finish", function() return { id = news:finish("end", "over") } end)
app:post("/burst", function(req)
  local tasks, count, text = {}, 0, ("x"):rep(tonumber(req.query.size))
  for i = 1, tonumber(req.query.n) do
    tasks[i] = photon.spawn(function()
      if news:publish(text) then count = count + 1 end
    end)
  end
  for _, t in ipairs(tasks) do t:join() end
  return { count = count }
end)
app:get("/all", function() return { list = photon.array(news:history { last = 1e6 }), last = news:last_id() } end)
app:post("/room/:name", function(req)
  local room = photon.channel("room:" .. req.params.name, { replay = 10, log = "room-" .. req.params.name .. ".log" })
  return { id = room:publish(req:body()), last = room:last_id(), n = #room:history() }
end)
app:post("/cancelled", function()
  for i = 1, 100 do
    local t = photon.spawn(function() news:publish "from a task that may be cancelled" end)
    if i %% 2 == 0 then photon.sleep(0) end
    if i %% 3 == 0 then photon.sleep(0) end
    t:cancel()
  end
  return { id = news:publish "afterwards" }
end)
return app
]]

local folder, path, servers

local function start(options)
  options = options or {}
  options.source = SOURCE:format(options.replay or 100000, options.backlog or 1048576, path)
  options.flags = options.flags or "--workers 2"
  local server = live.start(options)
  servers[#servers + 1] = server
  return server
end

local function kill(server)
  server:signal "KILL"
  server:wait()
  os.execute("rm -rf '" .. server.folder .. "'")
end

local function post(server, target, body, fields)
  return server:request("POST", target, fields, body or "")
end

local function publish(server, text)
  return post(server, "/news", text)
end

local function id_of(res)
  assert.equal(200, res.status, res.body)
  return json.decode(res.body).id
end

local function all(server)
  local res = server:get "/all"
  assert.equal(200, res.status)
  return json.decode(res.body)
end

local function read(name)
  local file = assert(io.open(name, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

local function write(name, text)
  local file = assert(io.open(name, "wb"))
  file:write(text)
  file:close()
end

local function size(name)
  local file = io.open(name, "rb")
  if not file then return 0 end
  local n = file:seek "end"
  file:close()
  return n
end

-- The file with one byte changed.
local function damage(at)
  local text = read(path)
  write(path, text:sub(1, at) .. string.char(bit.bxor(text:byte(at + 1), 4)) .. text:sub(at + 2))
end

local function parts(id)
  local epoch, sequence = id:match "^(%w+)%-(%d+)$"
  return epoch, tonumber(sequence)
end

-- A subscriber from an id on: a socket whose `received` fills.
local function subscribe(server, id)
  local s = server:connect()
  s:send("GET /news HTTP/1.1\r\nhost: t\r\n" .. (id and "last-event-id: " .. id .. "\r\n" or "") .. "\r\n")
  return s
end

-- Waits for a text from the server.
local function comes(s, text)
  return s:receive_until(function(received) return received:find(text, 1, true) end, 10)
end

describe("durable channels", function()
  before_each(function()
    folder, servers = live.folder(), {}
    path = folder .. "/news.log"
  end)
  after_each(function()
    for _, server in ipairs(servers) do
      if not server.status then kill(server) end
    end
    os.execute("rm -rf '" .. folder .. "'")
  end)

  it("have history, ids and epoch back after a restart, and clients resume", function()
    local server = start()
    local first, second, third = id_of(publish(server, "one")), id_of(publish(server, "two\nlines")),
      id_of(publish(server, "three"))
    local before = all(server)
    server:stop()
    server = start()
    assert.same(before, all(server))
    local epoch, sequence = parts(third)
    assert.equal(epoch .. "-" .. sequence + 1, id_of(publish(server, "four")))
    local s = subscribe(server, first)
    assert.truthy(comes(s, "data: four"))
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
        one.bytes, one.from = table.concat(one.requests), 1
        publishers[p] = one
      end
      return publishers
    end

    -- Everybody sends and reads for so many seconds.
    local function run(publishers, seconds)
      local limit = socket.now() + seconds
      while socket.now() < limit do
        local waits = {}
        for i, one in ipairs(publishers) do
          if one.from <= #one.bytes then one.from = one.from + (one.socket:try_send(one.bytes, one.from) or 0) end
          waits[i] = { socket = one.socket, events = socket.reading }
        end
        socket.poll(waits, 0.002)
        for _, one in ipairs(publishers) do one.socket:try_receive() end
      end
    end

    local function note(publishers)
      for _, one in ipairs(publishers) do
        while one.socket:receive(0.05) do end
        for i, reply in ipairs(replies.read(one.socket.received, {}, true)) do
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
      local server = start()
      local list = all(server).list
      local texts, seen = {}, {}
      for i, event in ipairs(list) do
        local e, sequence = parts(event.id)
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
        local s = subscribe(server, last_seen)
        local _, sequence = parts(last_seen)
        if #list > sequence then
          assert.truthy(comes(s, "id: " .. list[#list].id .. "\n"))
          assert.equal(list[sequence + 1].id, s.received:match "\nid: (%S+)")
        end
        assert.falsy(s.received:find("photon.gap", 1, true))
        s:close()
      end
      local reader = subscribe(server)
      local publishers = begin(server, round)
      run(publishers, 0.05 + math.random() * 0.25)
      reader:try_receive()
      kill(server)
      note(publishers)
      while reader:receive(0.05) do end
      for id in reader.received:gmatch "\nid: (%S+)\n" do last_seen = id end
      reader:close()
    end
    assert.is_true(count > 100, "too few were acknowledged: " .. count)
  end)

  it("are refused to a second process and to a second channel", function()
    local server = start()
    local ok, message = pcall(start)
    assert.is_false(ok)
    assert.truthy(message:find(path .. " is in use by another process", 1, true), message)
    server:stop()
    local source = [[
      local photon = require "photon"
      local app = photon.app()
      local a = photon.channel("a", { log = "%s" })
      local b = photon.channel("b", { log = "%s" })
      return app]]
    ok, message = pcall(live.start, { source = source:format(path, path) })
    assert.is_false(ok)
    assert.truthy(message:find("is the log of channel a already", 1, true), message)
    assert.truthy(message:find("app.lua:4", 1, true), message)
  end)

  it("do not wait while the app loads", function()
    local source = [[
      local photon = require "photon"
      photon.channel("a", { log = "%s" }):publish "x"
      return photon.app()]]
    local ok, message = pcall(live.start, { source = source:format(path) })
    assert.is_false(ok)
    assert.truthy(message:find("app.lua:2: channel:publish cannot wait while the app loads", 1, true), message)
  end)

  it("leave a file alone that is no log", function()
    write(path, "Dear diary,\ntoday I was nearly overwritten.\n")
    local ok, message = pcall(start)
    assert.is_false(ok)
    assert.truthy(message:find("is not a channel's log", 1, true), message)
    assert.equal("Dear diary,\ntoday I was nearly overwritten.\n", read(path))
  end)

  it("refuse when the disk is full, and go on when it is not", function()
    if os.execute "command -v prlimit >/dev/null" ~= 0 then return pending "prlimit is not there" end
    local server = start { before = "ulimit -S -f 40 2>/dev/null; " }
    local s = subscribe(server)
    local good, res = 0
    repeat
      res = publish(server, ("z"):rep(3000))
      if res.status == 200 then good = good + 1 end
    until res.status ~= 200 or good > 100
    assert.equal(503, res.status)
    assert.truthy(res.body:find("cannot be written: File too large", 1, true), res.body)
    assert.is_true(good > 3 and good < 14, good)
    assert.equal(503, publish(server, ("z"):rep(3000)).status)
    assert.truthy(server:has_logged "cannot be written: File too large")
    assert.equal(good, #all(server).list)
    assert.equal(0, os.execute(("prlimit --pid %d --fsize=unlimited:"):format(server.pid)))
    local id = id_of(publish(server, "there is space"))
    local _, sequence = parts(id)
    assert.equal(good + 1, sequence)
    assert.truthy(server:has_logged "can be written again")
    assert.truthy(comes(s, "data: there is space"))
    local _, delivered = s.received:gsub("\nid: ", "")
    assert.equal(good + 1, delivered)
    s:close()
    kill(server)
    server = start()
    assert.equal(good + 1, #all(server).list)
    server:stop()
  end)

  it("refuse on a full file system, and go on when something is deleted", function()
    local mount = folder .. "/disk"
    os.execute("mkdir '" .. mount .. "'")
    if os.execute(("mount -t tmpfs -o size=256k photon '%s' 2>/dev/null"):format(mount)) ~= 0 then
      return pending "file systems cannot be mounted here"
    end
    finally(function() os.execute(("umount -l '%s'"):format(mount)) end)
    path = mount .. "/news.log"
    write(mount .. "/ballast", ("b"):rep(100000))
    local server = start()
    local good, res = 0
    repeat
      res = publish(server, ("z"):rep(3000))
      if res.status == 200 then good = good + 1 end
    until res.status ~= 200 or good > 200
    assert.equal(503, res.status)
    assert.truthy(res.body:find("No space left on device", 1, true), res.body)
    os.remove(mount .. "/ballast")
    assert.equal(200, publish(server, ("z"):rep(3000)).status)
    kill(server)
    server = start()
    assert.equal(good + 1, #all(server).list)
    server:stop()
  end)

  it("stay within their bounds", function()
    local server = start { replay = 10, backlog = 65536 }
    for _ = 1, 12 do
      local res = post(server, "/burst?n=200&size=4000")
      assert.equal('{"count":200}', res.body)
      assert.is_true(size(path) + size(path .. "-2") < 4 * 1024 * 1024)
    end
    assert.is_true(size(path) > 0 and size(path .. "-2") > 0, "never turned")
    local before = all(server)
    kill(server)
    server = start { replay = 10, backlog = 65536 }
    assert.same(before, all(server))
    server:stop()
  end)

  it("keep what stands before a flipped bit, log it, and serve on", function()
    local server = start()
    local ids, ends = {}, {}
    for i = 1, 6 do
      ids[i] = id_of(publish(server, "event " .. i))
      ends[i] = size(path)
    end
    server:stop()
    damage(ends[4] + 20)
    server = start()
    assert.truthy(server:has_logged(("%s: damaged at byte %d"):format(path, ends[4])))
    local list = all(server).list
    assert.equal(4, #list)
    assert.equal("event 4", list[4].data)
    -- Ids of what was lost are never given again.
    local epoch = parts(ids[1])
    local new = id_of(publish(server, "event 5 anew"))
    assert.not_equal(epoch, (parts(new)))
    local s = subscribe(server, ids[6])
    assert.truthy(comes(s, "event 5 anew"))
    assert.truthy(s.received:find('event: photon.gap\ndata: {"requested":"' .. ids[6], 1, true))
    s:close()
    server:stop()
    server = start()
    assert.equal(new, all(server).last)
    server:stop()
  end)

  it("drop a tail that was cut off", function()
    local server = start()
    local first = id_of(publish(server, "event 1"))
    local whole = size(path)
    publish(server, "event 2")
    server:stop()
    write(path, read(path):sub(1, whole + 17))
    server = start()
    assert.truthy(server:has_logged(("%s: cut off at byte %d"):format(path, whole)))
    assert.equal(1, #all(server).list)
    assert.equal(first, all(server).last)
    server:stop()
  end)

  it("set aside a file whose beginning is damaged", function()
    local server = start()
    publish(server, "event 1")
    server:stop()
    damage(3)
    local damaged = read(path)
    server = start()
    assert.truthy(server:has_logged "damaged at byte 0")
    assert.equal(damaged, read(path .. ".damaged"))
    assert.equal(200, publish(server, "anew").status)
    assert.equal(1, #all(server).list)
    server:stop()
  end)

  it("are finished for good", function()
    local server = start()
    publish(server, "one")
    assert.equal(200, post(server, "/finish").status)
    assert.equal(503, publish(server, "late").status)
    kill(server)
    server = start()
    local res = publish(server, "later")
    assert.equal(503, res.status)
    assert.truthy(res.body:find("finished", 1, true))
    assert.equal("over", all(server).list[2].data)
    server:stop()
  end)

  it("are opened by handlers too, as a wait", function()
    local server = start()
    local bodies = {}
    for i = 1, 3 do bodies[i] = post(server, "/room/tea", "cup " .. i).body end
    assert.truthy(bodies[3]:find('"n":3', 1, true), bodies[3])
    assert.truthy(read(server.folder .. "/room-tea.log"):find("cup 3", 1, true))
    server:stop()
  end)

  it("have events or none of tasks that were cancelled while they published", function()
    local server = start()
    local id = id_of(post(server, "/cancelled"))
    local before = all(server)
    assert.equal(id, before.last)
    assert.truthy(#before.list <= 101)
    kill(server)
    server = start()
    assert.same(before, all(server))
    server:stop()
  end)

  it("live on over reloads", function()
    local server = start()
    local first = id_of(publish(server, "one"))
    local s = subscribe(server)
    assert.truthy(comes(s, "data: one"))
    server:signal "HUP"
    assert.truthy(server:has_logged "reload")
    local epoch = parts(first)
    assert.equal(epoch .. "-2", id_of(publish(server, "two")))
    assert.truthy(comes(s, "data: two"))
    s:close()
    server:stop()
  end)
end)

-- Durable channels whose disk is full, whose files are damaged, or are not theirs.
local durable = require "spec.durable"
local live = require "spec.live"

-- How many of 200 events were taken, and the reply to the first that was not.
local function publish_until_refused(server)
  local good, res = 0
  repeat
    res = durable.publish(server, ("z"):rep(3000))
    if res.status == 200 then good = good + 1 end
  until res.status ~= 200 or good > 200
  return good, res
end

describe("durable channels", function()
  before_each(durable.open)
  after_each(durable.close)

  it("are refused to a second process and to a second channel", function()
    local server = durable.start()
    local ok, message = pcall(durable.start)
    assert.is_false(ok)
    assert.truthy(message:find(durable.path .. " is in use by another process", 1, true), message)
    server:stop()
    local source = [[
      local photon = require "photon"
      local app = photon.app()
      local a = photon.channel("a", { log = "%s" })
      local b = photon.channel("b", { log = "%s" })
      return app]]
    ok, message = pcall(live.start, { source = source:format(durable.path, durable.path) })
    assert.is_false(ok)
    assert.truthy(message:find("is the log of channel a already", 1, true), message)
    assert.truthy(message:find("app.lua:4", 1, true), message)
  end)

  it("do not wait while the app loads", function()
    local source = [[
      local photon = require "photon"
      photon.channel("a", { log = "%s" }):publish "x"
      return photon.app()]]
    local ok, message = pcall(live.start, { source = source:format(durable.path) })
    assert.is_false(ok)
    assert.truthy(message:find("app.lua:2: channel:publish cannot wait while the app loads", 1, true), message)
  end)

  it("leave a file alone that is no log", function()
    durable.write(durable.path, "Dear diary,\ntoday I was nearly overwritten.\n")
    local ok, message = pcall(durable.start)
    assert.is_false(ok)
    assert.truthy(message:find("is not a channel's log", 1, true), message)
    assert.equal("Dear diary,\ntoday I was nearly overwritten.\n", durable.read(durable.path))
  end)

  it("refuse while their file is not in its place, for a restart would not find it", function()
    local server = durable.start()
    durable.id_of(durable.publish(server, "one"))
    assert(os.rename(durable.path, durable.path .. ".1"))
    durable.write(durable.path, "")
    for _ = 1, 2 do
      local res = durable.publish(server, "into the wrong file")
      assert.equal(503, res.status)
      assert.truthy(res.body:find("log cannot be written: No such file or directory", 1, true), res.body)
    end
    assert.equal("", durable.read(durable.path))
    assert(os.rename(durable.path .. ".1", durable.path))
    durable.id_of(durable.publish(server, "two"))
    assert.equal(2, #durable.all(server).list)
    durable.survives(server)
  end)

  it("go on with their ids when another program has cut off their file", function()
    local server = durable.start()
    for _ = 1, 3 do durable.id_of(durable.publish(server, "lost")) end
    durable.write(durable.path, "")
    local kept = durable.id_of(durable.publish(server, "kept"))
    assert.truthy(server:has_logged "news.log: cut off by another program")
    server = durable.revive(server)
    local all = durable.all(server)
    assert.equal(kept, all.last)
    assert.same({ { id = kept, event = "news", data = "kept" } }, all.list)
    assert.equal((kept:gsub("4$", "5")), durable.id_of(durable.publish(server, "next")))
    server:stop()
  end)

  it("make their second file anew when it is gone, and leave alone what stands there", function()
    local second = durable.path .. "-2"
    local server = durable.start { replay = 10, backlog = 65536 }
    assert(os.remove(second))
    durable.write(second, "Dear diary,\n")
    local burst = "/burst?n=200&size=4000"
    for _ = 1, 4 do assert.equal('{"count":200}', durable.post(server, burst).body) end
    assert.equal("Dear diary,\n", durable.read(second))
    assert(os.remove(second))
    for _ = 1, 3 do assert.equal('{"count":200}', durable.post(server, burst).body) end
    assert.is_true(durable.size(second) > 0)
    durable.survives(server, { replay = 10, backlog = 65536 })
  end)

  it("refuse when the disk is full, and go on when it is not", function()
    if os.execute "command -v prlimit >/dev/null" ~= 0 then return pending "prlimit is not there" end
    local server = durable.start { before = "ulimit -S -f 40 2>/dev/null; " }
    local s = durable.subscribe(server)
    local good, res = publish_until_refused(server)
    assert.equal(503, res.status)
    assert.truthy(res.body:find("cannot be written: File too large", 1, true), res.body)
    assert.is_true(good > 3 and good < 14, good)
    assert.equal(503, durable.publish(server, ("z"):rep(3000)).status)
    assert.truthy(server:has_logged "cannot be written: File too large")
    assert.equal(good, #durable.all(server).list)
    assert.equal(2, server:metric "photon_channel_log_errors_total")
    assert.equal(0, os.execute(("prlimit --pid %d --fsize=unlimited:"):format(server.pid)))
    local id = durable.id_of(durable.publish(server, "there is space"))
    local _, sequence = durable.parts(id)
    assert.equal(good + 1, sequence)
    assert.truthy(server:has_logged "can be written again")
    assert.truthy(s:comes "data: there is space")
    local _, delivered = s.received:gsub("\nid: ", "")
    assert.equal(good + 1, delivered)
    s:close()
    server = durable.revive(server)
    assert.equal(good + 1, #durable.all(server).list)
    server:stop()
  end)

  it("refuse on a full file system, and go on when something is deleted", function()
    local mount = durable.folder .. "/disk"
    os.execute("mkdir '" .. mount .. "'")
    if os.execute(("mount -t tmpfs -o size=256k photon '%s' 2>/dev/null"):format(mount)) ~= 0 then
      return pending "file systems cannot be mounted here"
    end
    finally(function() os.execute(("umount -l '%s'"):format(mount)) end)
    durable.path = mount .. "/news.log"
    durable.write(mount .. "/ballast", ("b"):rep(100000))
    local server = durable.start()
    local good, res = publish_until_refused(server)
    assert.equal(503, res.status)
    assert.truthy(res.body:find("No space left on device", 1, true), res.body)
    os.remove(mount .. "/ballast")
    assert.equal(200, durable.publish(server, ("z"):rep(3000)).status)
    server = durable.revive(server)
    assert.equal(good + 1, #durable.all(server).list)
    server:stop()
  end)

  it("keep what stands before a flipped bit, log it, and serve on", function()
    local server = durable.start()
    local ids, ends = {}, {}
    for i = 1, 6 do
      ids[i] = durable.id_of(durable.publish(server, "event " .. i))
      ends[i] = durable.size(durable.path)
    end
    server:stop()
    durable.damage(ends[4] + 20)
    server = durable.start()
    assert.truthy(server:has_logged(("%s: damaged at byte %d"):format(durable.path, ends[4])))
    local list = durable.all(server).list
    assert.equal(4, #list)
    assert.equal("event 4", list[4].data)
    -- Ids of what was lost are never given again.
    local epoch = durable.parts(ids[1])
    local new = durable.id_of(durable.publish(server, "event 5 anew"))
    assert.not_equal(epoch, (durable.parts(new)))
    local s = durable.subscribe(server, ids[6])
    assert.truthy(s:comes "event 5 anew")
    assert.truthy(s.received:find('event: photon.gap\ndata: {"requested":"' .. ids[6], 1, true))
    s:close()
    server:stop()
    server = durable.start()
    assert.equal(new, durable.all(server).last)
    server:stop()
  end)

  it("drop a tail that was cut off", function()
    local server = durable.start()
    local first = durable.id_of(durable.publish(server, "event 1"))
    local whole = durable.size(durable.path)
    durable.publish(server, "event 2")
    server:stop()
    durable.write(durable.path, durable.read(durable.path):sub(1, whole + 17))
    server = durable.start()
    assert.truthy(server:has_logged(("%s: cut off at byte %d"):format(durable.path, whole)))
    assert.equal(1, #durable.all(server).list)
    assert.equal(first, durable.all(server).last)
    server:stop()
  end)

  it("set aside a file whose beginning is damaged", function()
    local server = durable.start()
    durable.publish(server, "event 1")
    server:stop()
    durable.damage(3)
    local damaged = durable.read(durable.path)
    server = durable.start()
    assert.truthy(server:has_logged "damaged at byte 0")
    assert.equal(damaged, durable.read(durable.path .. ".damaged"))
    assert.equal(200, durable.publish(server, "anew").status)
    assert.equal(1, #durable.all(server).list)
    server:stop()
  end)
end)

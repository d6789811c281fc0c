-- Answers that can be resumed, of a real server: several workers, clients that vanish, reloads.
local build = require "spec.build"
local live = require "spec.live"
local reader = require "spec.reader"

local SOURCE = [[
local photon = require "photon"
local app = photon.app { lua_budget = 0.5 }
local wanted = photon.shared "wanted"
-- Tokens are made when somebody wants them.
app:post("/want/:id", function(req) wanted:incr(req.params.id, tonumber(req:body())) end)
app:get("/version", function() return "%s" end)
app:get("/answers/:id", function(req)
  local channel = photon.channel("answer:" .. req.params.id, { replay = 10000 })
  return photon.stream({ resume = channel }, function(stream)
    photon.shared("starts"):incr(req.params.id, 1)
    for i = 1, tonumber(req.query.n) do
      while (wanted:get(req.params.id) or 0) < i do photon.sleep(0.001) end
      stream:send("token", i)
    end
  end)
end)
app:get("/starts/:id", function(req) return tostring(photon.shared("starts"):get(req.params.id)) end)
app:get("/hang", function() return ("a"):rep(40):find(("a?"):rep(40) .. ("a"):rep(40)) end)
app:metrics "/metrics"
return app
]]

local server

local function source(version)
  return SOURCE:format(version)
end

local function want(id, count)
  assert.equal(204, server:request("POST", "/want/" .. id, nil, tostring(count)).status)
end

local function read(path, last_id)
  return reader.open(server, path, last_id)
end

describe("an answer that can be resumed, with three workers", function()
  before_each(function() server = live.start { source = source "one", flags = "--workers 3 --drain 3600" } end)
  after_each(function() server:stop() end)

  it("is made once, whoever asks, and whoever goes", function()
    local got, id, is_over = {}, nil, false
    local watcher = read "/answers/a?n=300"
    assert.equal(200, watcher:wait_status())
    local visits, made = 0, 0
    while not is_over do
      visits = visits + 1
      want("a", visits * 5 % 20)
      made = made + visits * 5 % 20
      local r = read("/answers/a?n=300", id)
      if r:wait_status() == 204 then
        is_over = true
      else
        if made <= 300 then r:wait(visits * 5 % 20 - visits % 3) end
        for _, event in ipairs(r.events) do
          assert.equal("token", event.event)
          got[#got + 1], id = event.data, event.id
        end
      end
      if visits % 2 == 0 then r.socket:reset() else r.socket:close() end
    end
    assert.truthy(visits > 20)
    local whole = {}
    for i = 1, 300 do whole[i] = tostring(i) end
    assert.same(whole, got)
    assert.same(whole, reader.datas(watcher:wait(300)))
    assert.is_true(watcher:has_ended())
    assert.equal("1", server:get("/starts/a").body)
  end)

  it("goes on in the old code after a reload, and is there for the new", function()
    local r = read "/answers/b?n=200"
    want("b", 20)
    local events = r:wait(20)
    local id, count = events[#events].id, #events
    r.socket:close()
    server:replace(source "two")
    assert.is_true(server:reload())
    assert.equal("two", server:get("/version").body)
    r = read("/answers/b?n=200", id)
    want("b", 180)
    assert.equal(200 - count, #r:wait(200 - count))
    assert.equal("200", r.events[200 - count].data)
    assert.is_true(r:has_ended())
    assert.equal("1", server:get("/starts/b").body)
    server:becomes("photon_generations", 1)
  end)

  it("does not keep the server from stopping", function()
    local r = read "/answers/c?n=100000"
    want("c", 3)
    assert.truthy(r:wait(3))
    r.socket:close()
    server:signal "TERM"
    assert.equal(0, server:wait())
  end)
end)

describe("an answer whose Lua state is lost", function()
  build.stopping(it, pending)("ends, and says that it failed", function()
    server = live.start { source = source "one" }
    local r = read "/answers/a?n=1000"
    want("a", 2)
    assert.truthy(r:wait(2))
    assert.equal(503, server:get("/hang").status)
    assert.is_true(r:has_ended())
    assert.equal("photon.error", r.events[#r.events].event)
    server:stop()
  end)
end)

describe("an answer for which there is no producer", function()
  it("is an error, and left to the next one who asks", function()
    server = live.start { source = source("one"):gsub("lua_budget = 0.5", "max_tasks = 1") }
    for _ = 1, 2 do assert.equal(500, server:get("/answers/a?n=1").status) end
    server:stop()
  end)
end)

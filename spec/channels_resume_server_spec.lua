-- Answers that can be resumed, of a real server: several workers, clients that vanish, reloads.
local live = require "spec.live"
local reader = require "spec.reader"
local socket = require "spec.socket"

local SOURCE = [[
local photon = require "photon"
local app = photon.app { lua_budget = 0.5 }
app:get("/version", function() return "%s" end)
app:get("/answers/:id", function(req)
  local channel = photon.channel("answer:" .. req.params.id, { replay = 10000 })
  return photon.stream({ resume = channel }, function(stream)
    photon.shared("starts"):incr(req.params.id, 1)
    for i = 1, tonumber(req.query.n) do
      stream:send("token", i)
      photon.sleep(0.005)
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

local function write(text)
  local path = server.folder .. "/app.lua"
  local file = assert(io.open(path .. ".new", "wb"))
  file:write(text)
  file:close()
  assert(os.rename(path .. ".new", path))
end

local function reload()
  local pipe = io.popen(live.command(("reload %s 2>&1; echo exit $?"):format(server.folder)))
  local text = pipe:read "*a"
  pipe:close()
  return text:match "exit (%d+)\n$" == "0", text
end

local function read(path, last_id)
  return reader.open(server, path, last_id)
end

local function metric(name)
  return tonumber(server:get("/metrics").body:match("\n" .. name .. " (%S+)\n"))
end

local function wait_for(fn)
  local limit = socket.now() + 5
  while not fn() do
    if socket.now() > limit then return false end
    socket.sleep(0.01)
  end
  return true
end

describe("an answer that can be resumed, with three workers", function()
  before_each(function() server = live.start { source = source "one", flags = "--workers 3" } end)
  after_each(function() server:stop() end)

  it("is made once, whoever asks, and whoever goes", function()
    local got, id, is_over = {}, nil, false
    local watcher = read "/answers/a?n=300"
    assert.equal(200, watcher:wait_status())
    local limit, visits = socket.now() + 20, 0
    while not is_over and socket.now() < limit do
      visits = visits + 1
      local r = read("/answers/a?n=300", id)
      if r:wait_status() == 204 then
        is_over = true
      else
        r:wait(visits * 3 % 20)
        for _, event in ipairs(r.events) do
          assert.equal("token", event.event)
          got[#got + 1], id = event.data, event.id
        end
      end
      if visits % 2 == 0 then r.socket:reset() else r.socket:close() end
    end
    assert.is_true(is_over)
    assert.truthy(visits > 10)
    local whole = {}
    for i = 1, 300 do whole[i] = tostring(i) end
    assert.same(whole, got)
    assert.same(whole, reader.datas(watcher:wait(300)))
    assert.is_true(watcher:has_ended())
    assert.equal("1", server:get("/starts/a").body)
  end)

  it("goes on in the old code after a reload, and is there for the new", function()
    local r = read "/answers/b?n=200"
    local events = r:wait(20)
    local id, count = events[#events].id, #events
    r.socket:close()
    write(source "two")
    assert.truthy(reload())
    assert.equal("two", server:get("/version").body)
    r = read("/answers/b?n=200", id)
    assert.equal(200 - count, #r:wait(200 - count))
    assert.equal("200", r.events[200 - count].data)
    assert.is_true(r:has_ended())
    assert.equal("1", server:get("/starts/b").body)
    assert.truthy(wait_for(function() return metric "photon_generations" == 1 end))
  end)

  it("does not keep the server from stopping", function()
    local r = read "/answers/c?n=100000"
    assert.truthy(r:wait(3))
    r.socket:close()
    local began = socket.now()
    server:signal "TERM"
    assert.equal(0, server:wait())
    assert.truthy(socket.now() - began < 5)
  end)
end)

describe("an answer whose Lua state is lost", function()
  it("ends, and says that it failed", function()
    server = live.start { source = source "one" }
    local r = read "/answers/a?n=1000"
    assert.truthy(r:wait(2))
    assert.equal(503, server:get("/hang").status)
    assert.is_true(r:has_ended())
    assert.equal("photon.error", r.events[#r.events].event)
    server:stop()
  end)
end)

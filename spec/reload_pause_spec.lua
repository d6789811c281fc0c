-- A reload keeps no worker's loop: code is loaded and closed by other threads, and what must be done
-- on the loop is done in pieces. Threads and order are looked at, never time.
local live = require "spec.live"
local socket = require "spec.socket"

local THREADS = [[
local photon = require "photon"
local app = photon.app()
local function thread()
  local file = assert(io.open "/proc/thread-self/comm")
  local name = file:read "*l"
  file:close()
  return name
end
local loaded_by, state, proxy = thread(), photon.shared "state", newproxy(true)
getmetatable(proxy).__gc = function() state:set("closed by", thread()) end
app:get("/", function() return proxy and loaded_by .. " " .. thread() end)
app:get("/closed", function() return state:get "closed by" or "" end)
return app
]]

local STREAMS = [[
local photon = require "photon"
local app = photon.app()
app:get("/", function() return "NUMBER" end)
app:sse("/goes", { reload = "reconnect" }, function(stream)
  while stream:send "x" do photon.sleep(1000) end
end)
app:metrics "/metrics"
return app
]]

local TASKS = [[
local photon = require "photon"
local app = photon.app()
local state = photon.shared "state"
local function spin(seconds)
  local till = os.clock() + seconds
  while os.clock() < till do end
end
app:on_start(function()
  if state:get "is_started" then -- this is the new code
    photon.sleep(0.001)
    state:set("ended at the timer", state:get "ended" or 0)
    return
  end
  state:set("is_started", true)
  for _ = 1, 40 do
    photon.spawn(function()
      photon.defer(function()
        spin(0.02)
        state:incr "ended"
      end)
      photon.sleep(1000)
    end)
  end
end)
app:get("/ended", function() return tostring(state:get "ended" or 0) end)
app:get("/at_timer", function() return tostring(state:get "ended at the timer") end)
return app
]]

describe("a reload", function()
  local server

  local function start(source, flags)
    server = live.start { source = source, flags = flags }
  end

  after_each(function()
    server:stop()
  end)

  it("loads and closes on other threads than the workers'", function()
    start(THREADS)
    assert.equal("photon-loader photon-1", server:get("/").body)
    assert.is_true(server:reload())
    assert.equal("photon-loader photon-1", server:get("/").body)
    local last
    socket.eventually(function()
      last = server:get("/closed").body
      return last == "photon-reaper"
    end, function() return "closed by " .. last end)
  end)

  it("ends streams in more pieces than one, and each of them", function()
    start(STREAMS)
    local clients = {}
    for i = 1, 300 do
      clients[i] = server:connect()
      clients[i]:send "GET /goes HTTP/1.1\r\nhost: photon.test\r\n\r\n"
    end
    for _, client in ipairs(clients) do assert.truthy(client:comes "data: x") end
    assert.equal(0, server:metric "photon_reload_pause_seconds")
    assert.is_true(server:reload())
    for _, client in ipairs(clients) do assert.truthy(client:comes "\r\n0\r\n\r\n") end
    assert.truthy(server:metric "photon_reload_pause_seconds" > 0)
    server:becomes("photon_streams", 0)
    server:becomes("photon_generations", 1)
    for _, client in ipairs(clients) do client:close() end
  end)

  it("lets the new code run between the tasks of the old that it ends", function()
    start(TASKS)
    assert.is_true(server:reload())
    socket.eventually(function() return server:get("/ended").body == "40" end, "all tasks have ended")
    local at_timer = tonumber(server:get("/at_timer").body)
    assert.truthy(at_timer and at_timer < 40, tostring(at_timer))
  end)
end)

-- The app that spec/soak_spec.lua runs: every kind of stream, channel and wait.
local photon = require "photon"
local uv = require "luv"
local app = photon.app { write_timeout = 2, header_timeout = 2, body_timeout = 2, idle_timeout = 20, lua_budget = 30 }

local state = photon.shared "soak"
local GENERATION = 1 -- the spec writes another at each reload
local SLOW = { "gap", "close", "gap", "gap" }

local function room(number)
  return photon.channel("room:" .. number, {
    replay = 60 + GENERATION % 3 * 20, backlog = 8192, slow = SLOW[tonumber(number)],
  })
end

local log = photon.channel("log", { replay = 150, backlog = 8192, log = "soak.log" })

local function count(name)
  state:incr(name, 1)
end

-- What must run once for each request, however that ends.
local function account(req)
  count "begun"
  req:on_close(function()
    photon.sleep(0)
    count "closed"
  end)
  photon.defer(function() count "deferred" end)
end

app:subscribe("/rooms/:room", { heartbeat = 0.5 }, function(req)
  return room(req.params.room), { member = req.query.name, info = { since = 1 } }
end)
app:subscribe("/start/:room", { heartbeat = 0.5, from = "start" }, function(req) return room(req.params.room) end)
app:subscribe("/log", { heartbeat = 0.5 }, log)
app:subscribe("/both", { heartbeat = 0.5 }, function() return { room(1), room(3), log } end)
app:post("/rooms/:room", function(req) return room(req.params.room):publish("post", req:body()) end)
app:post("/log", function(req) return log:publish("post", req:body()) end)

app:get("/answers/:id", function(req)
  local answer = photon.channel("answer:" .. req.params.id, { replay = 1000, replay_age = 1 })
  return photon.stream({ resume = answer, heartbeat = 0.5 }, function(stream)
    for i = 1, 100 do
      stream:send("token", i)
      photon.sleep(0.01)
    end
  end)
end)

local function child(depth)
  photon.defer(function() count "deferred" end)
  count "begun"
  count "closed"
  if depth > 0 then photon.spawn(child, depth - 1):join() end
  photon.sleep(1000)
end

app:sse("/ticks", { heartbeat = 0.5, buffer = 8192 }, function(stream, req)
  account(req)
  stream:on_close(function() count "stream_closed" end)
  count "streams"
  photon.spawn(child, 2)
  local n, text = 0, ("x"):rep(tonumber(req.query.size) or 10)
  while stream:send("tick", n .. " " .. text) do
    n = n + 1
    if n % 10 == 0 then photon.sleep(0.02) end
  end
end)

app:get("/ndjson", function(req)
  account(req)
  return photon.stream({ type = "application/x-ndjson" }, function(stream)
    local n = 0
    while stream:send { n = n } do
      n = n + 1
      photon.sleep(0.01)
    end
  end)
end)

local waits = {}

function waits.sleep() photon.sleep(0.3) end
function waits.join() photon.spawn(photon.sleep, 0.3):join() end
function waits.timeout() photon.timeout(0.2, child, 1) end
function waits.pcall()
  pcall(photon.sleep, 0.3)
  pcall(photon.sleep, 0.3)
end
function waits.coroutine() coroutine.wrap(function() photon.sleep(0.3) end)() end
function waits.offload() photon.offload("soak_work", "nap") end
function waits.event()
  local next_event, reader = room(1):events()
  next_event(reader)
end
function waits.publish() log:publish("wait", "wait") end
function waits.shared() state:update("updates", function(n) return (n or 0) + 1 end) end
function waits.fail() error(photon.problem(409, "so it is")) end
function waits.await()
  local timer
  local function done()
    if not timer:is_closing() then timer:close() end
  end
  photon.await(function(resume, on_cancel)
    timer = uv.new_timer()
    timer:start(200, 0, function() resume(true) end)
    on_cancel(done)
  end)
  done()
end
function waits.detached()
  photon.spawn({ detached = true }, function()
    count "begun"
    count "closed"
    photon.defer(function() count "deferred" end)
    photon.sleep(0.3)
  end)
  photon.sleep(0.3)
end

app:get("/waits/:name", function(req)
  account(req)
  waits[req.params.name]()
  return "done"
end)
app:post("/upload", function(req)
  account(req)
  return tostring(#req:body())
end)

app:static("/fixed", ("fixed "):rep(1000))
app:get("/state/:name", function(req) return tostring(state:get(req.params.name) or 0) end)
app:post("/state/:name", function(req) state:set(req.params.name, tonumber(req.query.value)) end)
app:get("/generation", function() return tostring(GENERATION) end)
app:metrics "/metrics"

local number, collected = 0, nil
app:every(0.02, function()
  local wanted = state:get "collect"
  if wanted ~= collected then
    collected = wanted
    collectgarbage()
    collectgarbage()
    count("collected." .. wanted)
  end
  if state:get "quiet" == 1 then
    room(1):publish("every", "quiet") -- a request may still wait for an event
    return
  end
  for _ = 1, 3 do
    number = number + 1
    local size = math.random(20) == 1 and 6000 or math.random(200)
    local text = ("%d.%d.%d %s"):format(GENERATION, photon.worker.id, number, ("y"):rep(size))
    room(math.random(4)):publish("every", text)
  end
  log:publish("every", ("%d.%d.%d"):format(GENERATION, photon.worker.id, number))
end)

return app

-- The app that clients of the cancellation specs leave, whatever it is doing. What runs is counted in
-- photon.shared "count".
local photon = require "photon"
local uv = require "luv"
local app = photon.app { write_timeout = 30, lua_budget = 30, header_timeout = 60, body_timeout = 60 }

local counts = photon.shared "count"
local news = photon.channel("news", { replay = 10 })
local log = photon.channel("log", { replay = 10, log = "cancellation.log" })
local big = ("x"):rep(8 * 1024 * 1024) -- more than sockets hold

local function count(name)
  counts:incr(name, 1)
end

-- Waits that end only with their task. Each raises photon.cancelled then.
local waits = {}

function waits.sleep() photon.sleep(1000) end
function waits.join() photon.spawn(photon.sleep, 1000):join() end
function waits.timeout() photon.timeout(1000, photon.sleep, 1000) end
function waits.coroutine() coroutine.wrap(function() coroutine.wrap(photon.sleep)(1000) end)() end
function waits.events()
  local next_event, reader = photon.channel("silent"):events()
  next_event(reader)
end
function waits.publish()
  while true do log:publish "x" end
end
function waits.offload()
  while true do photon.offload("cancellation_work", "nap") end
end
function waits.await()
  local timer = uv.new_timer()
  photon.await(function(resume, on_cancel)
    timer:start(1000000, 0, resume)
    on_cancel(function()
      timer:close()
      count "undone"
    end)
  end)
end

-- A task, its tasks, and theirs, all waiting.
local function descend(depth)
  photon.defer(function() count "deferred" end)
  count "begun_tasks"
  if depth > 0 then
    photon.spawn(descend, depth - 1)
    photon.spawn(descend, depth - 1):join()
  else
    photon.sleep(1000)
  end
  count "survived"
end

local function detach()
  photon.defer(function() count "detached_over" end)
  while counts:get "release" ~= 1 do photon.sleep(0.02) end
  count "detached"
end

local function is_cancelled(fn, ...)
  local ok, err = pcall(fn, ...)
  return not ok and err == photon.cancelled
end

local function begin(req)
  req:on_close(function() count "closed" end)
  req:on_close(function()
    photon.sleep(0.05)
    count "closed_late"
  end)
  req:on_close(function() error "on purpose" end)
  photon.defer(function() count "deferred" end)
  photon.defer(function() error "on purpose" end)
  count "begun_tasks"
  photon.spawn(descend, 2)
  photon.spawn({ detached = true }, detach)
  count "begun"
end

-- Waits, then tries everything that must not go on.
local function outlive(wait)
  if not is_cancelled(wait) then count "survived" end
  if not is_cancelled(photon.sleep, 0) then count "survived" end
  if not is_cancelled(waits.join) then count "survived" end
  photon.spawn(function() count "survived" end)
  photon.after(0, function() count "survived" end)
  photon.sleep(0)
  count "survived"
end

app:get("/plain/:wait", function(req)
  begin(req)
  outlive(waits[req.params.wait])
end)

app:post("/body", function(req)
  begin(req)
  outlive(function() return req:body() end)
end)

app:sse("/stream/:wait", { heartbeat = 0 }, function(stream, req)
  begin(req)
  stream:on_close(function() count "stream_closed" end)
  stream:send "x"
  local ok, err = pcall(outlive, waits[req.params.wait])
  local sent, why = stream:send "y"
  if sent or why ~= "closed" or stream:is_open() or stream:flush() then count "survived" end
  error(ok and "it goes on" or err, 0)
end)

-- The socket is full, so send waits.
local function fill(stream)
  local ok, why = stream:send(big)
  if ok or why ~= "closed" then count "survived" end
  photon.sleep(0)
  count "survived"
end

app:sse("/full", { heartbeat = 0 }, function(stream, req)
  begin(req)
  stream:on_close(function() count "stream_closed" end)
  fill(stream)
end)

-- One task waits for the socket, another flushes.
app:sse("/flush", { heartbeat = 0 }, function(stream, req)
  begin(req)
  stream:on_close(function() count "stream_closed" end)
  photon.spawn(fill, stream)
  while stream:flush() do photon.sleep(0.01) end
end)

app:sse("/detached", { heartbeat = 0, detach = true }, function(stream, req)
  req:on_close(function() count "detached_closed" end)
  photon.spawn(function()
    while counts:get "release" ~= 1 do photon.sleep(0.02) end
    count "detached_child"
  end)
  count "begun_detached"
  while stream:send "x" do photon.sleep(0.005) end
  req:on_close(function() count "closed_after" end) -- it is over already
  detach()
end)

app:subscribe("/subscribe", news)
app:subscribe("/admit", function(req)
  req:on_close(function()
    photon.sleep(0)
    count "admit_closed"
  end)
  return { news, log }, { member = "m" }
end)

app:get("/answers/:id", function(req)
  local answer = photon.channel("answer:" .. req.params.id, { replay = 10, replay_age = 1 })
  return photon.stream({ resume = answer }, function(stream)
    while counts:get "release" ~= 1 do
      stream:send "x"
      photon.sleep(0.01)
    end
    count "answered"
  end)
end)

-- Requests that end by themselves, of which clients send or read a part.
app:post("/echo", function(req)
  req:on_close(function() count "echo_closed" end)
  photon.defer(function() count "echo_deferred" end)
  count "echo_begun"
  local body = req:body()
  if body ~= ("b"):rep(#body) or #body ~= 23 then count "survived" end
  return body
end)
app:get("/hello", function() return "hello" end)
app:static("/static", "hello")
app:sse("/few", { heartbeat = 0 }, function(stream)
  for i = 1, 3 do
    stream:send(i)
    stream:flush()
  end
end)
app:subscribe("/last", { from = { last = 3 } }, news)

app:post("/publish", function() news:publish "x" end)
app:get("/members", function() return tostring(#news:members()) end)
app:get("/count/:name", function(req) return tostring(counts:get(req.params.name) or 0) end)
app:post("/count/:name", function(req) counts:set(req.params.name, tonumber(req.query.value)) end)
app:metrics "/metrics"

local collected
app:every(0.02, function()
  local wanted = counts:get "collect"
  if wanted == collected then return end
  collected = wanted
  collectgarbage()
  collectgarbage()
  count("collected." .. tostring(wanted))
end)

return app

-- The app that the specs of reports about streams read from.
local photon = require "photon"
local app = photon.app { lua_budget = 0.5 }

local state = photon.shared "state"
local count = 20000

app:static("/", "ok")
app:get("/state/:name", function(req)
  local value = state:get(req.params.name)
  if value == nil then return { value = photon.null } end
  return { value = value }
end)

app:sse("/silent", function() photon.sleep(3600) end)

local flood = ("x"):rep(1000)
app:sse("/flood/:name", function(stream, req)
  local name = req.params.name
  stream:on_close(function() state:set(name .. ".closed", true) end)
  for i = 1, count do
    if not stream:send(i .. " " .. flood) then return end
    state:set(name .. ".sent", i)
  end
end)

local function watch(stream, name)
  stream:on_close(function() state:set(name .. ".closed", true) end)
  state:set(name .. ".began", true)
end

app:sse("/sleeper", function(stream)
  watch(stream, "sleeper")
  while true do photon.sleep(3600) end
end)
app:sse("/stubborn", function(stream)
  watch(stream, "stubborn")
  pcall(photon.sleep, 3600)
  state:set("stubborn.open", stream:is_open())
  state:set("stubborn.send", select(2, stream:send "x"))
  local ok, err = pcall(photon.sleep, 3600)
  state:set("stubborn.again", not ok and err == photon.cancelled)
end)
app:sse("/worker", function(stream)
  watch(stream, "worker")
  photon.spawn(function()
    photon.defer(function() state:set("worker.deferred", true) end)
    photon.sleep(3600)
  end)
  photon.sleep(3600)
end)
app:get("/waiting", function(req)
  req:on_close(function() state:set("waiting.closed", true) end)
  state:set("waiting.began", true)
  photon.sleep(3600)
end)

app:sse("/beats", { heartbeat = 0.05 }, function() photon.sleep(3600) end)
app:sse("/late", { heartbeat = 0 }, function(stream)
  photon.sleep(1)
  stream:send "late"
end)
app:get("/poll", function()
  photon.sleep(1)
  return "polled"
end)
app:sse("/large", { heartbeat = 0.02, buffer = 1000 }, function(stream)
  for i = 1, 3 do
    stream:event { id = tostring(i), data = tostring(i):rep(1048576) }
    photon.sleep(0.1)
  end
end)

-- What a handler returns after its stream has begun.
local results = {
  nothing = function() end,
  text = function() return "" end,
  table = function() return { a = 1 } end,
  status = function() return nil, 204 end,
  response = function() return photon.html "<p>no" end,
}
app:sse("/returns/:kind", function(stream, req)
  stream:send "one"
  return results[req.params.kind]()
end)
app:sse("/fails", function(stream)
  stream:send "one"
  photon.sleep(0.001)
  error "broken on purpose"
end)
app:sse("/fails-first", function() error(photon.problem(403, "not for you")) end)

return app

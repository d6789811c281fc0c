-- A server under a crowd of clients of every kind, with reloads, and what must be as before when all
-- have gone.
local clients = require "spec.soak.clients"
local lib = require "spec.lib"
local live = require "spec.live"
local socket = require "spec.socket"

local Soak = {}
Soak.__index = Soak

local APP = "spec/soak/app.lua"

local function write(folder, generation)
  local text = lib.read(APP):gsub("GENERATION = 1 ", "GENERATION = " .. generation .. " ", 1)
  local file = assert(io.open(folder .. "/next.lua", "wb"))
  file:write(text)
  file:close()
  assert(os.rename(folder .. "/next.lua", folder .. "/app.lua"))
end

-- options: workers, env as live.start's.
function Soak.start(options)
  local self = setmetatable({ workers = options.workers, generation = 1, list = {} }, Soak)
  self.seen, self.events, self.gaps, self.forgets = {}, 0, 0, 0.1
  self.server = live.start { source = lib.read(APP), flags = "--workers " .. options.workers, env = options.env }
  self.connect = function(buffer) return self.server:connect(buffer) end
  local module = assert(io.open(self.server.folder .. "/soak_work.lua", "wb"))
  module:write(lib.read "spec/soak/work.lua")
  module:close()
  self:set("quiet", 1)
  self:collect()
  self.tasks = self:metric "tasks"
  return self
end

function Soak:set(name, value)
  assert(self.server:request("POST", ("/state/%s?value=%d"):format(name, value)).status == 204)
end

function Soak:get(name)
  return tonumber(self.server:get("/state/" .. name).body)
end

function Soak:metric(name)
  return self.server:metric("photon_" .. name)
end

-- Waits until fn() has nothing to complain of.
local function wait_while(fn)
  local problem
  socket.eventually(function()
    problem = fn()
    return not problem
  end, function() return problem end)
end

function Soak:add(client)
  client.due = socket.now() + math.random()
  self.list[#self.list + 1] = client
end

-- Some of every kind; `size` of the largest.
function Soak:crowd(size)
  for i = 1, size do
    self:add(clients.reader(self, ("/rooms/%d?name=n%d"):format(i % 4 + 1, i % 7), true))
    if i % 3 == 0 then self:add(clients.reader(self, "/start/" .. i % 4 + 1, true)) end
    if i % 3 == 0 then self:add(clients.reader(self, "/log", true)) end
    if i % 5 == 0 then self:add(clients.reader(self, "/both", true)) end
    if i % 5 == 0 then self:add(clients.reader(self, "/answers/" .. i % 8, true)) end
    if i % 4 == 0 then self:add(clients.reader(self, i % 8 == 0 and "/ticks?size=3000" or "/ticks")) end
    if i % 10 == 0 then self:add(clients.reader(self, "/ndjson")) end
    if i % 2 == 0 then self:add(clients.asker(self)) end
  end
end

function Soak:reload()
  self.generation = self.generation + 1
  write(self.server.folder, self.generation)
  self.server:signal "HUP"
end

-- The crowd for that many seconds, and until somebody has missed an event, however slow the machine is.
function Soak:run(seconds)
  local limit = socket.now() + seconds
  local latest, reloads_at = limit + socket.patience, socket.now() + 0.5
  self:set("quiet", 0)
  while socket.now() < limit or (self.gaps == 0 and socket.now() < latest) do
    clients.turn(self.list, true)
    if socket.now() > reloads_at then
      self:reload()
      reloads_at = socket.now() + 0.3 + math.random()
    end
  end
end

-- Every worker collects its garbage.
function Soak:collect()
  self.collections = (self.collections or 0) + 1
  self:set("collect", self.collections)
  wait_while(function()
    return self:get("collected." .. self.collections) < self.workers and "a worker does not collect its garbage"
  end)
end

local BASE = { connections = 1, streams = 0, channel_subscribers = 0, generations = 1 }

local function find_rest(self)
  for name, wanted in pairs(BASE) do
    local is = self:metric(name)
    if is ~= wanted then return ("%s: %d, not %d"):format(name, is, wanted) end
  end
  local tasks = self:metric "tasks"
  if tasks ~= self.tasks then return ("tasks: %d, not %d"):format(tasks, self.tasks) end
  local begun = self:get "begun"
  for _, name in ipairs { "closed", "deferred" } do
    if self:get(name) ~= begun then return ("%s: %d, not %d"):format(name, self:get(name), begun) end
  end
  if self:get "streams" ~= self:get "stream_closed" then return "stream:on_close ran not once for each stream" end
end

-- Everybody goes; waits until nothing of them is left, and raises what is. Memory then, in kB, with
-- fresh Lua states: what old ones keep for reuse is not the same each time.
function Soak:quiesce()
  self:set("quiet", 1)
  for _, client in ipairs(self.list) do client:stop() end
  while clients.sweep(true) > 0 do socket.sleep(0.02) end
  wait_while(function() return find_rest(self) end)
  self:reload()
  wait_while(function()
    local is = self.server:get("/generation").body
    return is ~= tostring(self.generation) and ("generation %s serves, not %d"):format(is, self.generation)
  end)
  wait_while(function() return find_rest(self) end)
  self:collect()
  local text = assert(io.open("/proc/" .. self.server.pid .. "/smaps_rollup")):read "*a"
  return { rss = tonumber(text:match "Rss:%s+(%d+)"), heap = self:metric "lua_heap_bytes" / 1024 }
end

function Soak:stop()
  for _, client in ipairs(self.list) do client:stop() end
  self.server:stop()
end

return Soak

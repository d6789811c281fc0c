-- What the cancellation specs share: the server, what it has counted, and the ways in which clients
-- leave it.
local lib = require "spec.lib"
local live = require "spec.live"
local socket = require "spec.socket"

local server = {}

local SOURCE = "spec/cancellation/app.lua"

-- `env` as live.start's.
function server.start(env, workers)
  server.workers = workers or 3
  local self = live.start { source = lib.read(SOURCE), flags = "--workers " .. server.workers, env = env }
  local file = assert(io.open(self.folder .. "/cancellation_work.lua", "wb"))
  file:write(lib.read "spec/cancellation/work.lua")
  file:close()
  server.live, server.collections = self, 0
  server.collect()
  server.tasks = self:metric "photon_tasks"
end

function server.stop()
  server.live:stop()
end

function server.count(name)
  return tonumber(server.live:get("/count/" .. name).body)
end

function server.set(name, value)
  assert(server.live:request("POST", ("/count/%s?value=%d"):format(name, value)).status == 204)
end

-- Waits until that has been counted.
function server.wait_count(name, wanted)
  local is
  socket.eventually(function()
    is = server.count(name)
    return is == wanted
  end, function() return ("%s is %d, not %d"):format(name, is, wanted) end)
end

-- Waits until nothing of any client is left; `tasks` that go on by themselves are.
function server.wait_empty(tasks)
  server.live:becomes("photon_connections", 1)
  server.live:becomes("photon_streams", 0)
  server.live:becomes("photon_channel_subscribers", 0)
  server.live:becomes("photon_tasks", server.tasks + (tasks or 0))
end

-- Every worker collects its garbage: the heap of all in bytes.
function server.collect()
  server.collections = server.collections + 1
  server.set("collect", server.collections)
  server.wait_count("collected." .. server.collections, server.workers)
  return server.live:metric "photon_lua_heap_bytes"
end

-- How clients go. Only a half-closed connection is still read: until the server closes it.
server.ways = {}

function server.ways.close(list)
  for _, s in ipairs(list) do s:close() end
end

function server.ways.reset(list)
  for _, s in ipairs(list) do s:reset() end
end

function server.ways.half(list)
  for _, s in ipairs(list) do s:finish() end
  for _, s in ipairs(list) do
    assert(s:closes(), "the server keeps a connection whose client has said its end")
    s:close()
  end
end

-- Waits until a socket has got that many bytes and no more; false when the server closed before.
function server.read(s, count)
  while #s.received < count do
    socket.poll({ { socket = s, events = socket.reading } }, socket.patience)
    if not s:try_receive(count - #s.received) then return false end
  end
  return true
end

return server

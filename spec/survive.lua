-- What the specs of a server that survives share: one server, and ways to go wrong that it is led.
local assert = require "luassert"
local live = require "spec.live"
local socket = require "spec.socket"

local survive = {}

-- The server, or another one where it has ended: a way that ends the process fails its own test only.
function survive.revive(server, source)
  if server and pcall(function() server:connect():close() end) then return server end
  return live.start { source = source }
end

-- Goes a way: { name, handler, status (false: whatever, the connection may break), method =, body =,
-- type = the body's }.
function survive.try(server, way, target)
  local method = way.method or (way.body and "POST") or "GET"
  local reply = server:try(method, target, way.type and { "content-type: " .. way.type }, way.body)
  if way[3] then assert.equal(way[3], reply and reply.status) end
end

-- After a while at the latest it answers: while a crowd of tasks meets the limit of memory, garbage is
-- collected half of the time only.
function survive.answers(server)
  for path, body in pairs { ["/ok"] = "ok", ["/ok/b"] = '{"a":"b"}' } do
    socket.eventually(function()
      local reply = server:try("GET", path)
      return reply and reply.status == 200 and reply.body == body
    end, path .. " is answered")
  end
end

return survive

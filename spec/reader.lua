-- Clients of a real server's event streams, each over a connection of its own.
local replies = require "spec.replies"
local socket = require "spec.socket"
local sse = require "photon.sse"

local Reader = {}
Reader.__index = Reader

-- Asks `server` for the events at `path`, after `last_id`.
function Reader.open(server, path, last_id)
  local self = setmetatable({ path = path, socket = server:connect(), events = {}, fed = 0 }, Reader)
  self.parser = sse.parser(function(event) self.events[#self.events + 1] = event end)
  self.socket:send(("GET %s HTTP/1.1\r\nhost: photon.test\r\n%s\r\n"):format(path,
    last_id and ("last-event-id: %s\r\n"):format(last_id) or ""))
  return self
end

function Reader:look()
  self.socket:try_receive()
  local reply = replies.read(self.socket.received, { "GET" }, self.socket.is_closed)[1]
  if not reply then return end
  self.status, self.is_complete = reply.status, reply.is_complete
  local body = reply.body or ""
  if #body > self.fed then
    self.parser:feed(body:sub(self.fed + 1))
    self.fed = #body
  end
end

-- Waits until there are that many events: they; or nil when there are less.
function Reader:wait(count)
  local limit = socket.now() + 5
  repeat
    self:look()
    if #self.events >= count then return self.events end
    if self.is_complete then return nil end
    self.socket:receive(0.01)
  until socket.now() > limit
  return nil
end

function Reader:wait_status()
  local limit = socket.now() + 5
  repeat
    self:look()
    if self.status then return self.status end
    self.socket:receive(0.01)
  until socket.now() > limit
end

function Reader:has_ended()
  local limit = socket.now() + 5
  repeat
    self:look()
    if self.is_complete then return true end
    self.socket:receive(0.01)
  until socket.now() > limit
  return false
end

-- The data of events, as a list.
function Reader.datas(events)
  local list = {}
  for i, event in ipairs(events) do list[i] = event.data end
  return list
end

return Reader

-- Clients of a real server's event streams, each over a connection of its own.
local replies = require "spec.replies"
local socket = require "spec.socket"
local sse = require "photon.sse"

local Reader = {}
Reader.__index = Reader

-- Asks `server` for the events at `path`, after `last_id`.
function Reader.open(server, path, last_id)
  local self = setmetatable({ path = path, socket = server:connect(), replies = replies.reader {}, events = {},
    taken = 0 }, Reader)
  self.parser = sse.parser(function(event) self.events[#self.events + 1] = event end)
  self.socket:send(("GET %s HTTP/1.1\r\nhost: photon.test\r\n%s\r\n"):format(path,
    last_id and ("last-event-id: %s\r\n"):format(last_id) or ""))
  return self
end

-- Takes what has come.
function Reader:look()
  local s = self.socket
  local piece = s:try_receive()
  if piece then self.replies:feed(piece) end
  if s.is_closed then self.replies:finish() end
  local reply = self.replies.list[1]
  if not reply then return end
  self.status, self.is_complete = reply.status, reply.is_complete
  for i = self.taken + 1, #reply.pieces do self.parser:feed(reply.pieces[i]) end
  self.taken = #reply.pieces
end

-- Looks until done() is true: true; false when the answer has ended before, or patience ends.
local function look_until(self, done)
  local limit = socket.now() + socket.patience
  while true do
    local is_last = socket.now() > limit
    self:look()
    if done() then return true end
    if self.is_complete or self.socket.is_closed or is_last then return false end
    socket.poll({ { socket = self.socket, events = socket.reading } }, limit - socket.now())
  end
end

-- Waits until there are that many events: they; or nil when there are less.
function Reader:wait(count)
  return look_until(self, function() return #self.events >= count end) and self.events or nil
end

function Reader:wait_status()
  look_until(self, function() return self.status end)
  return self.status
end

-- Whether the answer comes to its end.
function Reader:has_ended()
  return look_until(self, function() return self.is_complete end)
end

-- The data of events, as a list.
function Reader.datas(events)
  local list = {}
  for i, event in ipairs(events) do list[i] = event.data end
  return list
end

return Reader

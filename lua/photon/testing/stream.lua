-- stream: a reply that a spec reads while it is made: events, lines or bytes. Waits are of real time,
-- also when the clock is frozen.

local core = require "photon.core"
local reply = require "photon.testing.reply"
local sse = require "photon.sse"
local turns = require "photon.testing.turns"

local M = {}

local Stream = {}
Stream.__index = Stream

local ENDS = { done = "closed", broken = "broken", lost = "closed" }

local Event = {}
Event.__index = Event

-- The data, decoded.
function Event:json()
  local value, wrong = core.json.decode(self.data)
  if wrong then error(("the data is not JSON (%s): %s"):format(wrong, self.data:sub(1, 200)), 2) end
  return value
end

-- Takes what has come. `state` is "open" until the reply has ended and was read to its end.
local function pull(self)
  if self.state ~= "open" then return end
  local bytes, state = core.test_take(self.id)
  self.state = state
  if bytes == "" then return end
  if self.parser then
    self.parser:feed(bytes)
  else
    self.buffer = self.buffer .. bytes
  end
end

-- Waits for what `take` returns; nil and "timeout", "closed" (also by the client), "broken". An error
-- of the handler is raised.
local function wait_for(self, seconds, take)
  if seconds ~= nil and (type(seconds) ~= "number" or seconds ~= seconds or seconds < 0) then
    error("a stream waits for a number of seconds, not " .. tostring(seconds), 3)
  end
  local value, why = turns.wait_for(self.id, seconds or 1, function()
    pull(self)
    local got = take()
    if got ~= nil then return got end
    if self.state ~= "open" then return false, ENDS[self.state] end
  end)
  if value then return value end
  if why then reply.raise_failure(self.request_id, self.options) end
  return nil, why or "timeout"
end

-- The reply whose head has come. `is_events`: it is read as events.
function M.new(client, request_id, status, headers, options, is_events)
  local self = setmetatable({ id = client, request_id = request_id, status = status, headers = headers,
    options = options, state = "open", buffer = "", queue = {}, comments = {} }, Stream)
  if is_events then
    self.parser = sse.parser(function(event) self.queue[#self.queue + 1] = setmetatable(event, Event) end,
      function(text) self.comments[#self.comments + 1] = text end)
  end
  return self
end

local function check_events(self, name)
  if not self.parser then error("stream:" .. name .. " is for client:sse", 3) end
end

-- The next event: { event =, data =, id =, retry = }.
function Stream:next(seconds)
  check_events(self, "next")
  return wait_for(self, seconds, function() return table.remove(self.queue, 1) end)
end

-- The next `count` events, each within `seconds`: a list; when it is shorter, also why.
function Stream:events(count, seconds)
  check_events(self, "events")
  local list = {}
  while #list < count do
    local event, why = self:next(seconds)
    if not event then return list, why end
    list[#list + 1] = event
  end
  return list
end

-- The next comment (a heartbeat is an empty one).
function Stream:comment(seconds)
  check_events(self, "comment")
  return wait_for(self, seconds, function() return table.remove(self.comments, 1) end)
end

local function check_bytes(self, name)
  if self.parser then error("stream:" .. name .. " is for client:stream", 3) end
end

-- The bytes that have come, at least one.
function Stream:read(seconds)
  check_bytes(self, "read")
  return wait_for(self, seconds, function()
    local bytes = self.buffer
    if bytes == "" then return nil end
    self.buffer = ""
    return bytes
  end)
end

-- The next line, without its LF.
function Stream:line(seconds)
  check_bytes(self, "line")
  return wait_for(self, seconds, function()
    local line, rest = self.buffer:match "^([^\n]*)\n(.*)$"
    if line then self.buffer = rest end
    return line
  end)
end

-- The next line, decoded (NDJSON).
function Stream:json(seconds)
  local line, why = self:line(seconds)
  if not line then return nil, why end
  local value, wrong = core.json.decode(line)
  if wrong then error(("the line is not JSON (%s): %s"):format(wrong, line:sub(1, 200)), 2) end
  return value
end

-- Everything until the clean end; nil, "broken" when it has none, nil, "timeout".
function Stream:all(seconds)
  check_bytes(self, "all")
  local value, why = wait_for(self, seconds, function()
    return self.state == "done" and { self.buffer } or nil
  end)
  if not value then return nil, why end
  self.buffer = ""
  return value[1]
end

-- All values of a header field, as a list.
function Stream:values(name)
  return reply.values(self.headers, name)
end

-- From now on the client reads that many bytes a second; 0: none, nil: at once.
function Stream:slow(bytes_per_second)
  core.test_slow(self.id, bytes_per_second or -1)
end

-- The client vanishes. The server notices on a later turn.
function Stream:drop()
  core.test_drop(self.id)
end

-- The client closes, and the server has noticed when this returns. Harmless when repeated.
function Stream:close()
  pull(self)
  core.test_close(self.id)
  if self.state == "open" then self.state = "lost" end
  turns.settle()
end

function Stream:is_open()
  pull(self)
  return self.state == "open"
end

return M

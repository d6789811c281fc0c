-- What a subscriber has seen, over all its connections: whether each event is the next one of its
-- channel, or the one after exactly the gap that was told.
local photon = require "photon"

local json = photon.json

local Cursor = {}
Cursor.__index = Cursor

-- `seen` keeps what each id says: the same for all.
function Cursor.new(seen)
  return setmetatable({ seen = seen, at = {}, allowed = {}, events = 0, gaps = 0, missed = 0 }, Cursor)
end

-- To be called for each connection: what the last one was told does not count any more.
function Cursor:begin()
  self.allowed, self.is_open = {}, false
end

local function check(is_so, format, ...)
  if not is_so then error(format:format(...), 0) end
end

local function parts_of(id)
  local parts = {}
  for epoch, sequence in id:gmatch "([%w]+)%-(%d+)" do parts[epoch] = tonumber(sequence) end
  return parts
end

-- A place that the client stands at: its last event, or the one before the end of a gap.
local function is_ours(self, requested)
  if not self.id or self.id:find(requested, 1, true) then return true end
  for epoch, sequence in pairs(parts_of(requested)) do
    if self.allowed[epoch] ~= sequence + 1 then return false end
  end
  return true
end

local function take_gap(self, event)
  local told = json.decode(event.data)
  check(is_ours(self, told.requested), "told of a gap after %s instead of %s", told.requested, tostring(self.id))
  self.gaps = self.gaps + 1
  if told.oldest == photon.null then
    self.is_open = true
    return
  end
  for epoch, sequence in pairs(parts_of(told.oldest)) do self.allowed[epoch] = sequence end
end

-- Of an id with several parts one moves on by an event.
local function take_part(self, id, epoch, sequence)
  local before, allowed = self.at[epoch], self.allowed[epoch]
  if sequence == before or (allowed and sequence == allowed - 1) then return 0 end
  if allowed then
    check(sequence == allowed, "%s came after a gap that ends at %d", id, allowed)
    self.missed = self.missed + allowed - (before or allowed - 1) - 1
  elseif before then
    check(sequence == before + 1 or (self.is_open and sequence > before), "%s came after %d", id, before)
  else
    check(not self.id or self.is_open, "%s came after %s, without a gap", id, tostring(self.id))
  end
  self.allowed[epoch] = nil
  return 1
end

local function take_text(self, event, count)
  if count > 1 then return end
  local text = self.seen[event.id]
  check(not text or text == event.data, "%s said %.40s to one, %.40s to another", event.id, tostring(text), event.data)
  self.seen[event.id] = event.data
end

-- Raises what is wrong with the event.
function Cursor:take(event)
  if event.event == "photon.gap" then return take_gap(self, event) end
  local parts, moved, count = parts_of(event.id), 0, 0
  for epoch, sequence in pairs(parts) do
    moved, count = moved + take_part(self, event.id, epoch, sequence), count + 1
  end
  check(not self.id or moved == 1 or self.is_open, "%s came after %s", event.id, tostring(self.id))
  if count == 1 then
    self.is_open = false
    self.first = self.first or select(2, next(parts))
  end
  take_text(self, event, count)
  self.at, self.id, self.events = parts, event.id, self.events + 1
end

return Cursor

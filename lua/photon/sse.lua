-- sse: reads an event stream as a browser does (WHATWG HTML, 9.2.6), from bytes that come in pieces
-- of any size.

local find, sub, byte = string.find, string.sub, string.byte
local concat = table.concat

local M = {}

local Parser = {}
Parser.__index = Parser

local BOM = "\239\187\191"
local LF = 10

-- on_event{ event =, data =, id =, retry = } is called for each event; retry only when the event's
-- block had one. on_comment(text), which may be nil, for each comment. The parser's last_id and retry
-- are what a client would come again with.
function M.parser(on_event, on_comment)
  return setmetatable({ on_event = on_event, on_comment = on_comment, rest = "", is_begin = true,
    id = "", last_id = "", kind = "", lines = {} }, Parser)
end

-- An empty line: the block is an event when it had data.
local function dispatch(self)
  local lines, kind, retry = self.lines, self.kind, self.block_retry
  self.last_id = self.id
  self.kind, self.block_retry = "", nil
  if not lines[1] then return end
  self.lines = {}
  self.on_event { event = kind ~= "" and kind or "message", data = concat(lines, "\n"), id = self.id, retry = retry }
end

local fields = {}

function fields.event(self, value)
  self.kind = value
end

function fields.data(self, value)
  self.lines[#self.lines + 1] = value
end

function fields.id(self, value)
  if not find(value, "%z") then self.id = value end
end

function fields.retry(self, value)
  if not find(value, "^%d+$") then return end
  self.retry = tonumber(value)
  self.block_retry = self.retry
end

local function take_line(self, line)
  if line == "" then return dispatch(self) end
  local colon = find(line, ":", 1, true)
  if colon == 1 then
    if self.on_comment then self.on_comment((sub(line, 2):gsub("^ ", ""))) end
    return
  end
  local name, value = line, ""
  if colon then
    name = sub(line, 1, colon - 1)
    value = sub(line, byte(line, colon + 1) == 32 and colon + 2 or colon + 1)
  end
  local field = fields[name]
  if field then field(self, value) end
end

-- One byte order mark at the beginning does not count. Nil while it is not clear whether there is one.
local function skip_mark(self, bytes)
  if not self.is_begin then return bytes end
  if #bytes < #BOM and sub(BOM, 1, #bytes) == bytes then return nil end
  self.is_begin = false
  return sub(bytes, 1, #BOM) == BOM and sub(bytes, #BOM + 1) or bytes
end

-- Takes the next bytes of the stream. A line ends at CR, LF or CRLF, and is taken at its CR: whether
-- an LF follows is not waited for.
function Parser:feed(bytes)
  local text = skip_mark(self, self.rest .. bytes)
  if not text then
    self.rest = self.rest .. bytes
    return
  end
  local at = 1
  while true do
    if self.is_after_cr and at <= #text then
      self.is_after_cr = false
      if byte(text, at) == LF then at = at + 1 end
    end
    local stop = find(text, "[\r\n]", at)
    if not stop then break end
    self.is_after_cr = byte(text, stop) ~= LF
    local line = sub(text, at, stop - 1)
    at = stop + 1
    take_line(self, line)
  end
  self.rest = sub(text, at)
end

-- The events of a whole stream's text; what is not ended by an empty line is none.
function M.parse(text)
  local events = {}
  local parser = M.parser(function(event) events[#events + 1] = event end)
  parser:feed(text)
  return events, parser
end

return M

-- A chunked event stream off the wire as it comes; nothing of it is kept.
local sse = require "photon.sse"

local Feed = {}
Feed.__index = Feed

-- on_event as sse.parser's.
function Feed.new(on_event)
  return setmetatable({ rest = "", parser = sse.parser(on_event) }, Feed)
end

-- Takes bytes: `status` is set with the head, `is_complete` with the last chunk.
function Feed:take(bytes)
  local text, at = self.rest .. bytes, 1
  if not self.status then
    local stop = select(2, text:find("\r\n\r\n", 1, true))
    self.status = stop and tonumber(text:match "^HTTP/1.1 (%d+)")
    self.is_complete = self.status == 204
    self.is_stream = stop and text:sub(1, stop):find("\r\ntransfer-encoding: chunked\r\n", 1, true)
    at = self.status and stop + 1 or 1
  end
  while self.is_stream and not self.is_complete do
    local digits, from = text:match("^(%x+)\r\n()", at)
    local size = digits and tonumber(digits, 16)
    if not size or #text < from + size + 1 then break end
    assert(text:sub(from + size, from + size + 1) == "\r\n", "a chunk is not of its size")
    self.is_complete = size == 0
    if size > 0 then self.parser:feed(text:sub(from, from + size - 1)) end
    at = from + size + 2
  end
  self.rest = text:sub(at)
end

return Feed

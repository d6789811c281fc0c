-- Replies of HTTP/1.1 as a client reads them off the wire, strictly: what is wrong with each is noted.
local replies = {}

local Reply = {}

-- `body` is what has come of it.
local mt = {
  __index = function(self, key)
    if key == "body" then return table.concat(self.pieces) end
    return Reply[key]
  end,
}

-- The values of a header field, joined; nil when it is absent.
function Reply:get(name)
  local values = {}
  for _, field in ipairs(self.fields) do
    if field[1] == name then values[#values + 1] = field[2] end
  end
  return values[1] and table.concat(values, ", ") or nil
end

local function note(reply, format, ...)
  reply.faults[#reply.faults + 1] = format:format(...)
end

local function read_fields(reply, lines)
  for i = 2, #lines do
    local name, value = lines[i]:match "^([!#$%%&'*+.^_`|~%w-]+):(.*)$"
    if not name then
      note(reply, "bad field line %q", lines[i])
    else
      if value:find "[%z\1-\8\10-\31\127]" then note(reply, "control byte in %s", name) end
      reply.fields[#reply.fields + 1] = { name:lower(), value:match "^[ \t]*(.-)[ \t]*$" }
    end
  end
end

local SINGLE = { "content-type", "etag", "last-modified", "location", "date", "server", "content-length",
  "content-range", "retry-after" }

local function check_fields(reply)
  local coding, length = reply:get "transfer-encoding", reply:get "content-length"
  if coding and length then note(reply, "both lengths") end
  if length and not length:find "^%d+$" then note(reply, "content-length %q", length) end
  if (reply.status == 204 or reply.status < 200) and (coding or length) then note(reply, "204 with a length") end
  if reply.status == 405 and not reply:get "allow" then note(reply, "405 without allow") end
  for _, name in ipairs(SINGLE) do
    local count = 0
    for _, field in ipairs(reply.fields) do count = count + (field[1] == name and 1 or 0) end
    if count > 1 then note(reply, "%s is repeated", name) end
  end
  local date = reply:get "date"
  if not date and reply.status < 500 and reply.status >= 200 then note(reply, "no date") end
  if date and not date:find "^%a%a%a, %d%d %a%a%a %d%d%d%d %d%d:%d%d:%d%d GMT$" then note(reply, "date %q", date) end
end

local function parse_head(text)
  local lines = {}
  for line in (text .. "\r\n"):gmatch "(.-)\r\n" do lines[#lines + 1] = line end
  local minor, status, tail = lines[1]:match "^HTTP/1%.([01]) ([1-5]%d%d)(.*)$"
  if not minor or tail:find "^[^ ]" or tail:find "[%z\1-\8\10-\31\127]" then return nil end
  local reply = setmetatable({ version = minor, status = tonumber(status), fields = {}, faults = {}, pieces = {},
    is_complete = false }, mt)
  read_fields(reply, lines)
  check_fields(reply)
  return reply
end

-- A reader takes bytes as they come, each once; `list` has the replies, the last of which may not be
-- complete. What it has not taken yet stands in `text` from `at` on. Each state is a function that takes
-- what it can, and returns false when it can do nothing before more comes.
local Reader = {}
Reader.__index = Reader
local states = {}

-- `methods` are those of the requests, in order (GET where there is none).
function replies.reader(methods)
  return setmetatable({ methods = methods or {}, list = {}, interim = {}, text = "", at = 1,
    state = states.head }, Reader)
end

function Reader:feed(bytes)
  self.text, self.at = self.text:sub(self.at) .. bytes, 1
  while self:state() do end -- luacheck: ignore 542
end

-- The peer has closed.
function Reader:finish()
  local last = self.list[#self.list]
  if last and last.is_until_close then last.is_complete = true end
end

-- What stands after the last reply and is none.
function Reader:remainder()
  return self.state == states.head and self.text:sub(self.at) or ""
end

-- Whether the last reply is complete, and there are `count`.
function Reader:has(count)
  local last = self.list[count]
  return last ~= nil and self.list[#self.list].is_complete
end

local function has(self, count)
  return #self.text - self.at + 1 >= count
end

local function take(self, count)
  local piece = self.text:sub(self.at, self.at + count - 1)
  self.at = self.at + #piece
  return piece
end

local function take_body(self, count)
  local piece = take(self, count)
  if piece == "" then return 0 end
  local pieces = self.list[#self.list].pieces
  pieces[#pieces + 1] = piece
  return #piece
end

local function complete(self)
  self.list[#self.list].is_complete = true
  self.state = states.head
  return true
end

local function begin_body(self, reply)
  local method, length = self.methods[#self.list], tonumber(reply:get "content-length" or "")
  if method == "HEAD" or reply.status == 204 or reply.status == 304 then return complete(self) end
  if (reply:get "transfer-encoding" or ""):find "chunked$" then
    self.state = states.chunk
  elseif length then
    self.state, self.rest = states.body, length
  else
    self.state, reply.is_until_close = states.until_close, true
  end
  return true
end

-- An interim reply goes to the `interim` list of the one after it.
function states.head(self)
  local head_end = self.text:find("\r\n\r\n", self.at, true)
  local reply = head_end and parse_head(self.text:sub(self.at, head_end - 1))
  if not reply then return false end
  self.at = head_end + 4
  if reply.status < 200 and reply.status ~= 101 then
    self.interim[#self.interim + 1] = reply
    return true
  end
  reply.interim, self.interim = self.interim, {}
  self.list[#self.list + 1] = reply
  return begin_body(self, reply)
end

function states.body(self)
  self.rest = self.rest - take_body(self, self.rest)
  return self.rest == 0 and complete(self)
end

function states.until_close(self)
  take_body(self, #self.text)
  return false
end

-- What follows cannot be understood; the reply stays incomplete.
function states.lost(self)
  self.at = #self.text + 1
  return false
end

function states.chunk(self)
  local line_end = self.text:find("\r\n", self.at, true)
  if not line_end then return false end
  local size = tonumber(self.text:sub(self.at, line_end - 1):match "^(%x+)[ \t]*$" or "", 16)
  if not size then note(self.list[#self.list], "bad chunk size") end
  self.at = line_end + 2
  self.state, self.rest = not size and states.lost or size == 0 and states.last_chunk or states.chunk_data, size
  return true
end

function states.chunk_data(self)
  self.rest = self.rest - take_body(self, self.rest)
  if self.rest > 0 or not has(self, 2) then return false end
  if take(self, 2) ~= "\r\n" then note(self.list[#self.list], "chunk is not ended by CRLF") end
  self.state = states.chunk
  return true
end

function states.last_chunk(self)
  if not has(self, 2) then return false end
  if take(self, 2) == "\r\n" then return complete(self) end
  self.state = states.lost
  return true
end

-- Every reply in `text`, and what stands after the last one that could be read.
function replies.read(text, methods, is_closed)
  local reader = replies.reader(methods)
  reader:feed(text)
  if is_closed then reader:finish() end
  return reader.list, reader:remainder()
end

-- The events that an EventSource would dispatch for a stream's text: { type =, data =, id = }, then
-- the last id and the last retry.
function replies.events(text)
  local events, id, retry, data, kind = {}, "", nil, {}, ""
  text = text:gsub("^\239\187\191", ""):gsub("\r\n", "\n"):gsub("\r", "\n")
  local last_id = ""
  for line in text:gmatch "([^\n]*)\n" do
    local name, value = line:match "^([^:]*):? ?(.*)$"
    if line == "" then
      last_id = id
      if data[1] then
        events[#events + 1] = { type = kind ~= "" and kind or "message", data = table.concat(data, "\n"), id = id }
      end
      data, kind = {}, ""
    elseif name == "event" then
      kind = value
    elseif name == "data" then
      data[#data + 1] = value
    elseif name == "id" and not value:find "%z" then
      id = value
    elseif name == "retry" and value:find "^%d+$" then
      retry = tonumber(value)
    end
  end
  return events, last_id, retry
end

return replies

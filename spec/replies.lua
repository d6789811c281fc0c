-- Replies of HTTP/1.1 as a client reads them off the wire, strictly: what is wrong with each is noted.
local replies = {}

local Reply = {}
Reply.__index = Reply

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

-- The chunked body that begins at `at`: its data and where it ends (nil: it is not complete).
local function read_chunks(reply, text, at)
  local pieces = {}
  while true do
    local line_end = text:find("\r\n", at, true)
    if not line_end then break end
    local digits = text:sub(at, line_end - 1):match "^(%x+)[ \t]*$"
    local size = tonumber(digits or "", 16)
    if not size then
      note(reply, "bad chunk size")
      break
    end
    at = line_end + 2
    if size == 0 then
      if text:sub(at, at + 1) == "\r\n" then return table.concat(pieces), at + 2 end
      break
    end
    pieces[#pieces + 1] = text:sub(at, at + size - 1)
    if #text < at + size + 1 then break end
    if text:sub(at + size, at + size + 1) ~= "\r\n" then note(reply, "chunk is not ended by CRLF") end
    at = at + size + 2
  end
  return table.concat(pieces), nil
end

-- Sets the body and whether it is complete; returns where the next reply begins.
local function read_body(reply, text, at, method, is_closed)
  if method == "HEAD" or reply.status == 204 or reply.status == 304 then
    reply.body, reply.is_complete = "", true
    return at
  end
  local length = tonumber(reply:get "content-length" or "")
  if (reply:get "transfer-encoding" or ""):find "chunked$" then
    local body, after = read_chunks(reply, text, at)
    reply.body, reply.is_complete = body, after ~= nil
    return after or #text + 1
  elseif length then
    reply.body = text:sub(at, at + length - 1)
    reply.is_complete = #reply.body == length
    return at + length
  end
  reply.body, reply.is_complete, reply.is_until_close = text:sub(at), is_closed, true
  return #text + 1
end

local function read_head(text, at)
  local head_end = text:find("\r\n\r\n", at, true)
  if not head_end then return nil end
  local lines = {}
  for line in (text:sub(at, head_end - 1) .. "\r\n"):gmatch "(.-)\r\n" do lines[#lines + 1] = line end
  local minor, status, tail = lines[1]:match "^HTTP/1%.([01]) ([1-5]%d%d)(.*)$"
  if not minor or tail:find "^[^ ]" or tail:find "[%z\1-\8\10-\31\127]" then return nil end
  local reply = setmetatable({ version = minor, status = tonumber(status), fields = {}, faults = {} }, Reply)
  read_fields(reply, lines)
  check_fields(reply)
  return reply, head_end + 4
end

-- Every reply in `text`, and what stands after the last one that could be read. `methods` are those
-- of the requests, in order (GET where there is none). An interim reply goes to the `interim` list of
-- the one after it.
function replies.read(text, methods, is_closed)
  local list, at, interim = {}, 1, {}
  while at <= #text do
    local reply, body_at = read_head(text, at)
    if not reply then break end
    if reply.status < 200 and reply.status ~= 101 then
      interim[#interim + 1] = reply
      at = body_at
    else
      reply.interim, interim = interim, {}
      at = read_body(reply, text, body_at, methods[#list + 1], is_closed)
      list[#list + 1] = reply
      if not reply.is_complete then break end
    end
  end
  return list, text:sub(at)
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

-- The reader of HTTP/1.1 requests, driven from specs: bytes in any cut go in, a list of events comes
-- out, in which adjoining pieces of a body are one.
local ffi = require "ffi"
local lib = require "spec.lib"

local reader = {}

-- One declaration at a time: another spec may have made some of them before.
for _, declaration in ipairs {
  "struct slice { const char *ptr; size_t len; };",
  "struct header { struct slice name, value; };",
  "struct headers { struct header *items; uint32_t count, cap; };",
  [[struct limits {
    uint32_t max_header, max_headers, max_target;
    uint64_t max_body;
    uint32_t header_timeout, body_timeout, idle_timeout, write_timeout;
    uint32_t max_connections, max_streams, max_streams_per_ip, max_tasks, max_channels;
    uint64_t shared_memory, lua_memory;
    uint32_t lua_budget, lua_slow, max_generations, drain;
    bool server_header;
  };]],
  [[struct request {
    int method;
    struct slice method_name, target, path, query, host;
    struct headers headers;
    int64_t content_length;
    bool is_http10, keep_alive, expects_continue;
  };]],
  "struct http1_found { struct slice piece; int status; const char *detail; };",
  "void http1_read_init(struct http1_reader *, const struct limits *);",
  [[int http1_read_next(struct http1_reader *, char *, size_t, size_t *, struct request *,
      struct http1_found *);]],
  "void http1_read_set_max_body(struct http1_reader *, uint64_t);",
  "bool http1_read_is_idle(const struct http1_reader *);",
} do
  pcall(ffi.cdef, declaration)
end

local MORE, HEAD, BODY, END = 0, 1, 2, 3
local MAX_HEADERS = 100

local function text(slice)
  return ffi.string(slice.ptr, slice.len)
end

local function copy_head(request)
  local headers = {}
  for i = 0, request.headers.count - 1 do
    local item = request.headers.items[i]
    headers[i + 1] = text(item.name) .. ": " .. text(item.value)
  end
  return {
    event = "head", method = request.method, method_name = text(request.method_name),
    target = text(request.target), path = text(request.path), query = text(request.query),
    host = text(request.host), headers = headers, length = tonumber(request.content_length),
    is_http10 = request.is_http10, keep_alive = request.keep_alive,
    expects_continue = request.expects_continue,
  }
end

-- Makes a reader; `limits` overrides single limits. on_head(head, set_max_body), if given, runs
-- after each head.
function reader.new(limits, on_head)
  local c = lib.load()
  local self = { events = {}, rest = "" }
  local bounds = ffi.new("struct limits", { max_header = 16384, max_headers = MAX_HEADERS,
    max_target = 8192, max_body = 1048576 })
  for name, value in pairs(limits or {}) do bounds[name] = value end
  local memory = ffi.new("uint64_t[256]") -- more than any version of the parser needs
  local state = ffi.cast("struct http1_reader *", memory)
  local items = ffi.new("struct header[?]", MAX_HEADERS + 1)
  local request, found = ffi.new "struct request", ffi.new "struct http1_found"
  local used, buffer, size = ffi.new "size_t[1]", ffi.new "char[1]", 1
  request.headers.items, request.headers.cap = items, MAX_HEADERS + 1
  c.http1_read_init(state, bounds)

  local function set_max_body(n) c.http1_read_set_max_body(state, n) end

  local function add(event)
    local last = self.events[#self.events]
    if event.event == "body" and last and last.event == "body" then
      last.pieces[#last.pieces + 1] = event.pieces[1]
    else
      self.events[#self.events + 1] = event
    end
  end

  local function step(at, len)
    local event = c.http1_read_next(state, at, len, used, request, found)
    if event == HEAD then
      local head = copy_head(request)
      add(head)
      if on_head then on_head(head, set_max_body) end
    elseif event == BODY then
      local piece = found.piece
      assert(piece.len > 0 and piece.ptr >= at and piece.ptr + piece.len <= at + len)
      add { event = "body", pieces = { text(piece) } }
    elseif event == END then
      add { event = "end" }
    elseif event ~= MORE then
      add { event = "error", status = found.status, detail = ffi.string(found.detail) }
      self.failed = true
    end
    return event
  end

  -- Gives it more bytes. After an error nothing more is taken.
  function self.feed(bytes)
    if self.failed then return end
    local all = self.rest .. bytes
    if #all > size then
      size = #all * 2
      buffer = ffi.new("char[?]", size)
    end
    ffi.copy(buffer, all, #all)
    local at, len = buffer, #all
    local event
    repeat
      event = step(at, len)
      assert(used[0] <= len)
      at, len = at + used[0], len - tonumber(used[0])
    until event == MORE or self.failed
    self.rest = ffi.string(at, len)
  end

  function self.is_idle() return c.http1_read_is_idle(state) end

  self.anchor = { bounds, memory, items } -- what C points at must not be collected
  return self
end

-- The events as one text, by which two ways of cutting are compared.
function reader.describe(events)
  local lines = {}
  for i, event in ipairs(events) do
    if event.event == "head" then
      lines[i] = table.concat({ "head", event.method, event.method_name, event.target, event.path,
        event.query, event.host, event.length, tostring(event.is_http10), tostring(event.keep_alive),
        tostring(event.expects_continue), table.concat(event.headers, "\r\n") }, "\n")
    elseif event.event == "body" then
      lines[i] = "body " .. table.concat(event.pieces)
    elseif event.event == "error" then
      lines[i] = ("error %d %s"):format(event.status, event.detail)
    else
      lines[i] = event.event
    end
  end
  return table.concat(lines, "\n")
end

-- Feeds the bytes cut before each of the given positions; returns the events.
function reader.read(bytes, cuts, limits, on_head)
  local one, from = reader.new(limits, on_head), 1
  for _, cut in ipairs(cuts or {}) do
    one.feed(bytes:sub(from, cut - 1))
    from = cut
  end
  one.feed(bytes:sub(from))
  return one.events, one
end

local SHORT = 600

-- As read, in one piece; then byte by byte, and for short ones at every cut, which must yield the
-- same. Returns the events and the reader, or nil and the way of cutting that went another way.
function reader.read_every_way(bytes, limits)
  local events, one = reader.read(bytes, nil, limits)
  local expected, singly = reader.describe(events), {}
  for i = 2, #bytes do singly[#singly + 1] = i end
  local got = reader.describe((reader.read(bytes, singly, limits)))
  if got ~= expected then return nil, "byte by byte:\n" .. got .. "\nnot\n" .. expected end
  for cut = 2, #bytes <= SHORT and #bytes or 0 do
    got = reader.describe((reader.read(bytes, { cut }, limits)))
    if got ~= expected then return nil, ("cut at %d:\n%s\nnot\n%s"):format(cut, got, expected) end
  end
  return events, one
end

-- As read_every_way; an error when the cut makes a difference.
function reader.read_surely(bytes, limits)
  local events, one = reader.read_every_way(bytes, limits)
  if not events then error(one, 2) end
  return events, one
end

-- The events by name, an error by its status: "head body end 400".
function reader.names(events)
  local list = {}
  for i, event in ipairs(events) do
    list[i] = event.event == "error" and event.status or event.event
  end
  return table.concat(list, " ")
end

-- The names of all events that these bytes yield, whatever the cut.
function reader.told(bytes, limits)
  return reader.names((reader.read_surely(bytes, limits)))
end

reader.HOST = "Host: photon.test\r\n"

-- A GET with these field lines (each with its line end) besides Host.
function reader.get(fields, target, version)
  return ("GET %s HTTP/%s\r\n%s%s\r\n"):format(target or "/", version or "1.1", reader.HOST, fields or "")
end

-- A POST with a chunked body, framing included, and what follows.
function reader.chunked(body, rest)
  return "POST / HTTP/1.1\r\n" .. reader.HOST .. "Transfer-Encoding: chunked\r\n\r\n" .. body .. (rest or "")
end

return reader

local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

for _, declaration in ipairs {
  "struct http1_response { int status; bool is_chunked; struct headers headers; };",
  [[struct http1_response_reader {
    struct slice piece;
    const char *detail;
    size_t scanned;
    uint8_t state;
    bool is_head, keep_alive, is_done;
    uint64_t parser[64];
  };]],
  "void http1_read_response_init(struct http1_response_reader *r);",
  "void http1_read_response_begin(struct http1_response_reader *r, bool is_head);",
  [[int http1_read_response_next(struct http1_response_reader *r, char *bytes, size_t len, size_t *used,
      struct http1_response *response);]],
  "int http1_read_response_finish(struct http1_response_reader *r, size_t kept);",
} do
  ffi.cdef(declaration)
end

local c, text = rooms.c, rooms.text
local MORE, HEAD, BODY, END, TRUNCATED, ERROR = 0, 1, 2, 3, 4, 5
local MAX_HEADERS = 8

local Client = {}
Client.__index = Client

local function new_client(method)
  local self = setmetatable({ kept = "", told = {}, body = {} }, Client)
  self.reader = ffi.new "struct http1_response_reader"
  self.items = ffi.new("struct header[?]", MAX_HEADERS)
  self.response = ffi.new "struct http1_response"
  self.response.headers.items, self.response.headers.cap = self.items, MAX_HEADERS
  self.is_head = method == "HEAD"
  c.http1_read_response_init(self.reader)
  c.http1_read_response_begin(self.reader, self.is_head)
  return self
end

function Client:tell(event)
  local r, response = self.reader, self.response
  if event == HEAD then
    local parts = { tostring(response.status) }
    for i = 0, response.headers.count - 1 do
      local item = response.headers.items[i]
      parts[#parts + 1] = text(item.name) .. "=" .. text(item.value)
    end
    self.told[#self.told + 1] = table.concat(parts, " ")
  elseif event == BODY then
    assert.is_true(r.piece.len > 0)
    self.body[#self.body + 1] = text(r.piece)
  elseif event == END or event == TRUNCATED then
    self.told[#self.told + 1] = "body " .. table.concat(self.body)
    self.body = {}
    if event == TRUNCATED then self.told[#self.told + 1] = "truncated" end
    if event == END then self.told[#self.told + 1] = r.keep_alive and "keep" or "close" end
  elseif event == ERROR then
    self.told[#self.told + 1] = "error: " .. ffi.string(r.detail)
  end
end

function Client:feed(piece)
  self.kept = self.kept .. piece
  local bytes, used = rooms.slice(self.kept), ffi.new "size_t[1]"
  local at, event = 0
  repeat
    event = c.http1_read_response_next(self.reader, ffi.cast("char *", bytes.ptr) + at, bytes.len - at, used,
      self.response)
    at = at + tonumber(used[0])
    self:tell(event)
    if event == END then c.http1_read_response_begin(self.reader, self.is_head) end
  until event == MORE or event == ERROR or (event == END and at == #self.kept)
  self.kept = ffi.string(bytes.ptr + at, bytes.len - at)
  return event ~= ERROR
end

-- What is told of a stream in these pieces; `then` the peer closes.
local function read(pieces, method)
  local client = new_client(method)
  for _, piece in ipairs(pieces) do
    if not client:feed(piece) then return client.told end
  end
  client:tell(c.http1_read_response_finish(client.reader, #client.kept))
  return client.told
end

-- In whole, byte by byte, and cut at every place: all must tell the same.
local function check(expected, stream, method)
  local bytes = {}
  for i = 1, #stream do bytes[i] = stream:sub(i, i) end
  assert.same(expected, read({ stream }, method))
  assert.same(expected, read(bytes, method))
  for cut = 1, #stream - 1 do
    assert.same(expected, read({ stream:sub(1, cut), stream:sub(cut + 1) }, method))
  end
end

describe("http1_read_response", function()
  it("reads bodies of announced length, one after the other", function()
    check({ "200 content-length=5", "body hello", "keep", "404 content-length=0", "body ", "keep" },
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n")
  end)

  it("reads chunks, their extensions and trailers", function()
    check({ "200 transfer-encoding=chunked", "body abcdefghij", "keep" },
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n7;x=y\r\ndefghij\r\n0\r\nx-sum: 1\r\n\r\n")
  end)

  it("reads to the end of the connection where there is no length", function()
    check({ "200 a=b", "body all of it", "close" }, "HTTP/1.1 200 OK\r\nA:  b \r\n\r\nall of it")
    check({ "200", "body ", "close" }, "HTTP/1.0 200 OK\r\n\r\n")
  end)

  it("knows responses without a body", function()
    check({ "204", "body ", "keep" }, "HTTP/1.1 204 No Content\r\n\r\n")
    check({ "304 content-length=9", "body ", "keep" }, "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n")
    check({ "200 content-length=9", "body ", "keep" }, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD")
    check({ "200 transfer-encoding=chunked", "body ", "keep" },
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "HEAD")
  end)

  it("passes over interim responses", function()
    check({ "200 content-length=2", "body ok", "keep" },
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
      .. "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
  end)

  it("tells whether the connection may be used again", function()
    local tail = "\r\nContent-Length: 0\r\n\r\n"
    check({ "200 connection=close content-length=0", "body ", "close" }, "HTTP/1.1 200 OK\r\nConnection: close" .. tail)
    check({ "200 connection=keep-alive content-length=0", "body ", "keep" },
      "HTTP/1.0 200 OK\r\nConnection: keep-alive" .. tail)
    check({ "200 x=y content-length=0", "body ", "close" }, "HTTP/1.0 200 OK\r\nX: y" .. tail)
  end)

  it("notices that something is missing", function()
    for _, stream in ipairs { "H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r" } do
      check({ "body ", "truncated" }, stream)
    end
    check({ "200 content-length=5", "body hel", "truncated" }, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
    local head, told = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200 transfer-encoding=chunked"
    for stream, body in pairs { [""] = "", ["3"] = "", ["3\r\nab"] = "ab", ["3\r\nabc"] = "abc",
      ["3\r\nabc\r\n"] = "abc", ["3\r\nabc\r\n0\r\n"] = "abc" } do
      check({ told, "body " .. body, "truncated" }, head .. stream)
    end
    check({}, "")
  end)

  it("refuses bad framing", function()
    local head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for _, body in ipairs { "x\r\n", "3\r\nabcd", "3\r\nabcX", "-1\r\n", "3 \n" } do
      local told = read { head .. body }
      assert.equal("error: the framing of the body is malformed", told[#told], body)
    end
    for _, stream in ipairs { "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n" } do
      check({ "error: the response head is malformed" }, stream)
    end
    check({ "error: what came is not an HTTP/1.1 response" }, "SSH-2.0-x\r\n")
    check({ "error: the server switched the protocol" },
      "HTTP/1.1 101 Yes\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
  end)

  it("limits the head", function()
    local long = "HTTP/1.1 200 OK\r\nx: " .. ("x"):rep(40000)
    assert.same({ "error: the response head is too large" }, read { long })
    assert.same({ "error: the response head is too large" }, read { long .. "\r\n\r\n" })
  end)

  it("leaves out the fields that it has no room for", function()
    local fields = {}
    for i = 1, MAX_HEADERS + 3 do fields[i] = ("f%d: %d\r\n"):format(i, i) end
    local told = read { "HTTP/1.1 200 OK\r\n" .. table.concat(fields) .. "content-length: 1\r\n\r\nx" }
    assert.equal("200 f1=1 f2=2 f3=3 f4=4 f5=5 f6=6 f7=7 f8=8", told[1])
    assert.equal("body x", told[2])
  end)
end)

local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c, slice = rooms.c, rooms.slice
local DATE = "Sun, 06 Nov 1994 08:49:37 GMT"

local function reply(status, length, fields)
  local items = ffi.new("struct header[?]", #fields + 1)
  for i, pair in ipairs(fields) do
    items[i - 1].name, items[i - 1].value = slice(pair[1]), slice(pair[2])
  end
  local r = ffi.new "struct reply"
  r.status, r.content_length = status, length
  r.headers.items, r.headers.count, r.headers.cap = items, #fields, #fields
  return r, items
end

local function head(...)
  local b, r, items = rooms.buf(), reply(...)
  assert(c.http1_write_head(b, r))
  return rooms.text(b), items
end

local function finish(fields)
  local b, f = rooms.buf(), ffi.new("struct http1_finish", {
    close = fields.close, keep_alive = fields.keep_alive, chunked = fields.chunked, server = fields.server,
  })
  if fields.date then f.date = slice(fields.date) end
  assert(c.http1_write_finish(b, f))
  return rooms.text(b)
end

local function chunk_head(len)
  local to = ffi.new "char[20]"
  return ffi.string(to, c.http1_write_chunk_head(to, len))
end

describe("http1_write", function()
  it("writes status, fields and length", function()
    assert.equal("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nx-empty: \r\ncontent-length: 5\r\n",
      (head(200, 5, { { "content-type", "text/plain" }, { "x-empty", "" } })))
    assert.equal("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n", (head(404, 0, {})))
    assert.equal("HTTP/1.1 299 Unknown\r\n", (head(299, -1, {})))
  end)

  it("writes lengths of any size", function()
    for _, text in ipairs { "9", "10", "4294967296", "9223372036854775807" } do
      local length = loadstring("return " .. text .. "LL")()
      assert.equal("HTTP/1.1 200 OK\r\ncontent-length: " .. text .. "\r\n", (head(200, length, {})))
    end
  end)

  it("names no length where none may stand", function()
    for _, status in ipairs { 100, 103, 204, 304 } do
      assert.is_nil(head(status, 0, {}):find "content%-length")
      assert.is_nil(head(status, 7, {}):find "content%-length")
    end
    assert.truthy(head(205, 0, {}):find "content%-length: 0")
    assert.truthy(head(599, 0, {}):find "content%-length: 0")
  end)

  it("repeats fields in their order", function()
    assert.equal("HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n",
      (head(200, -1, { { "set-cookie", "a=1" }, { "set-cookie", "b=2" } })))
  end)

  it("copies what is prerendered", function()
    local r, b = reply(200, 5, { { "ignored", "yes" } }), rooms.buf()
    r.http1 = slice "HTTP/1.1 200 OK\r\netag: x\r\n"
    assert.is_true(c.http1_write_head(b, r))
    assert.is_true(c.http1_write_head(b, r))
    assert.equal(("HTTP/1.1 200 OK\r\netag: x\r\n"):rep(2), rooms.text(b))
  end)

  it("reserves enough for every status and many fields", function()
    for status = 100, 599 do
      local text = head(status, 9223372036854775807LL, { { "a", "b" } })
      assert.truthy(text:find("^HTTP/1%.1 " .. status .. " [%w%- ]+\r\na: b\r\n"))
    end
    local fields, lines = {}, {}
    for i = 1, 300 do
      fields[i] = { "name-" .. i, ("v"):rep(i) }
      lines[i] = ("name-%d: %s\r\n"):format(i, ("v"):rep(i))
    end
    assert.equal("HTTP/1.1 200 OK\r\n" .. table.concat(lines), (head(200, -1, fields)))
  end)

  it("finishes a head", function()
    assert.equal("\r\n", finish {})
    assert.equal("date: " .. DATE .. "\r\n\r\n", finish { date = DATE })
    assert.equal("connection: close\r\n\r\n", finish { close = true })
    assert.equal("connection: keep-alive\r\n\r\n", finish { keep_alive = true })
    assert.equal("connection: close\r\n\r\n", finish { close = true, keep_alive = true })
    assert.equal(
      "date: " .. DATE .. "\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\nserver: photon\r\n\r\n",
      finish { date = DATE, keep_alive = true, chunked = true, server = true })
  end)

  it("writes chunk sizes", function()
    for _, len in ipairs { 0, 1, 9, 10, 15, 16, 255, 256, 4095, 65536, 1048576 } do
      assert.equal(("%x\r\n"):format(len), chunk_head(len))
    end
    assert.equal("ffffffffffffffff\r\n", chunk_head(-1ULL))
  end)

  it("appends nothing when there is no memory", function()
    local r, items = reply(200, 5, { { "a", "b" } })
    local f = ffi.new "struct http1_finish"
    local rendered = ffi.new "struct reply"
    rendered.http1 = slice "HTTP/1.1 200 OK\r\n"
    for _, step in ipairs {
      function(b) return c.http1_write_head(b, r) end,
      function(b) return c.http1_write_head(b, rendered) end,
      function(b) return c.http1_write_finish(b, f) end,
    } do
      assert.equal(1, rooms.fail_each(function()
        local b = rooms.buf()
        local ok = step(b)
        assert.is_true(ok or b.len == 0)
        return ok
      end))
    end
    assert.is_true(items ~= nil)
  end)
end)

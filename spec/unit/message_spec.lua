local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c, slice = rooms.c, rooms.slice
local METHODS = { [0] = "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS" }

local function request(fields)
  local items = ffi.new("struct header[?]", #fields + 1)
  for i, pair in ipairs(fields) do
    items[i - 1].name, items[i - 1].value = slice(pair[1]), slice(pair[2])
  end
  local r = ffi.new "struct request"
  r.method = 7
  r.method_name, r.target = slice "BREW", slice "/pot/1?milk=no"
  r.path, r.query = ffi.new("struct slice", r.target.ptr, 6), ffi.new("struct slice", r.target.ptr + 7, 7)
  r.host = slice "photon.test"
  r.headers.items, r.headers.count, r.headers.cap = items, #fields, #fields + 1
  r.content_length, r.is_http10, r.keep_alive, r.expects_continue = 12, false, true, true
  return r, items
end

describe("message", function()
  it("knows methods, where case matters", function()
    for m, name in pairs(METHODS) do
      assert.equal(m, c.message_method(slice(name)))
      assert.equal(name, rooms.text(c.message_method_name(m)))
    end
    for _, other in ipairs { "get", "Get", "GETS", "GE", "", "TRACE", "CONNECT", "PROPFIND", "OPTION" } do
      assert.equal(7, c.message_method(slice(other)), other)
    end
    assert.equal("", rooms.text(c.message_method_name(7)))
  end)

  it("knows reasons", function()
    local known = {
      [100] = "Continue", [200] = "OK", [204] = "No Content", [304] = "Not Modified", [404] = "Not Found",
      [413] = "Content Too Large", [422] = "Unprocessable Content", [503] = "Service Unavailable",
    }
    for status, reason in pairs(known) do
      assert.equal(reason, ffi.string(c.message_reason(status)))
    end
    for _, status in ipairs { -1, 0, 99, 299, 418, 599, 600, 1000000 } do
      assert.equal("Unknown", ffi.string(c.message_reason(status)), status)
    end
  end)

  it("copies a request in one allocation", function()
    local fields = { { "host", "photon.test" }, { "accept", "*/*" }, { "x-empty", "" } }
    local from, items = request(fields)
    local to, arena = ffi.new "struct request", rooms.arena()
    local before = c.mem_count()
    assert.is_true(c.message_copy_request(to, from, arena))
    assert.equal(1, tonumber(c.mem_count() - before))
    for i = 0, 2 do -- the source may now go
      ffi.fill(ffi.cast("char *", items[i].name.ptr), items[i].name.len, 63)
      ffi.fill(ffi.cast("char *", items[i].value.ptr), items[i].value.len, 63)
    end
    for _, part in ipairs { "method_name", "target", "host" } do
      ffi.fill(ffi.cast("char *", from[part].ptr), from[part].len, 63)
    end
    ffi.fill(items, ffi.sizeof(items), 0)
    local found = {}
    for i = 1, to.headers.count do
      found[i] = { rooms.text(to.headers.items[i - 1].name), rooms.text(to.headers.items[i - 1].value) }
    end
    assert.same(fields, found)
    assert.equal("BREW", rooms.text(to.method_name))
    assert.equal("/pot/1?milk=no", rooms.text(to.target))
    assert.equal("/pot/1", rooms.text(to.path))
    assert.equal("milk=no", rooms.text(to.query))
    assert.equal("photon.test", rooms.text(to.host))
    assert.equal(12, tonumber(to.content_length))
    assert.is_true(to.keep_alive and to.expects_continue and not to.is_http10 and to.method == 7)
    assert.equal(3, to.headers.cap)
  end)

  it("copies an empty request", function()
    local to, arena = ffi.new "struct request", rooms.arena()
    assert.is_true(c.message_copy_request(to, ffi.new "struct request", arena))
    assert.equal(0, to.headers.count)
    assert.is_true(to.query.ptr ~= nil)
  end)

  it("says so when there is no memory", function()
    local from, to, arena = request { { "a", "b" } }, ffi.new "struct request", rooms.arena()
    assert.equal(1, rooms.fail_each(function()
      local ok = c.message_copy_request(to, from, arena)
      assert.is_true(ok or to.headers.items == nil)
      return ok
    end))
  end)
end)

local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c, slice = rooms.c, rooms.slice

local function decode(text, plus)
  local to = ffi.gc(ffi.cast("char *", c.mem_alloc(#text)), c.mem_free)
  local len = tonumber(c.url_decode(to, slice(text), plus or false))
  if len < 0 then return nil end
  return ffi.string(to, len)
end

local function pairs_of(text)
  local rest, name, value = slice(text), ffi.new "struct slice", ffi.new "struct slice"
  local found = {}
  while c.url_next_pair(rest, name, value) do
    found[#found + 1] = rooms.text(name) .. "|" .. rooms.text(value)
  end
  return found
end

describe("url", function()
  it("decodes escapes", function()
    local cases = {
      { "", "" }, { "plain", "plain" }, { "%41", "A" }, { "a%20b", "a b" }, { "%e2%82%AC", "\226\130\172" },
      { "%00", "\0" }, { "%2525", "%25" }, { "%2F%2f", "//" }, { "a+b", "a+b" }, { "%ff", "\255" },
      { "x%41%42y", "xABy" },
    }
    for _, case in ipairs(cases) do
      assert.equal(case[2], decode(case[1]), case[1])
      assert.is_true(c.url_is_escaped_well(slice(case[1])), case[1])
    end
  end)

  it("takes a plus for a space only in queries", function()
    assert.equal("a b c", decode("a+b%20c", true))
    assert.equal("+ ", decode("%2B+", true))
    assert.equal("a+b", decode("a+b", false))
  end)

  it("refuses malformed escapes", function()
    for _, text in ipairs { "%", "%4", "a%", "a%4", "%zz", "%4g", "%g4", "%%41", "%-1", "% 1", "ok%41%", "%u0041" } do
      assert.is_nil(decode(text), text)
      assert.is_nil(decode(text, true), text)
      assert.is_false(c.url_is_escaped_well(slice(text)), text)
    end
  end)

  it("knows each hex digit and nothing else", function()
    for byte = 0, 255 do
      local char = string.char(byte)
      local value = tonumber(char:match "^%x$" or "", 16)
      assert.equal(value and string.char(value * 16 + 1), decode("%" .. char .. "1"), byte)
      assert.equal(value and string.char(16 + value), decode("%1" .. char), byte)
    end
  end)

  it("decodes in place", function()
    local text = slice "a%20b%41%42+c"
    local len = tonumber(c.url_decode(ffi.cast("char *", text.ptr), text, true))
    assert.equal("a bAB c", ffi.string(text.ptr, len))
  end)

  it("gives back every byte that was escaped", function()
    local bytes, escaped = {}, {}
    for byte = 0, 255 do
      bytes[#bytes + 1] = string.char(byte)
      escaped[#escaped + 1] = ("%%%02x"):format(byte)
    end
    assert.equal(table.concat(bytes), decode(table.concat(escaped)))
  end)

  it("takes queries apart", function()
    assert.same({}, pairs_of "")
    assert.same({}, pairs_of "&&&")
    assert.same({ "a|1" }, pairs_of "a=1")
    assert.same({ "a|1", "b|2" }, pairs_of "a=1&b=2")
    assert.same({ "a|", "b|" }, pairs_of "a&b=")
    assert.same({ "|x", "a|b=c", "|" }, pairs_of "&=x&&a=b=c&=&")
    assert.same({ "a%26b|%3D", "c+d|+" }, pairs_of "a%26b=%3D&c+d=+")
    local empty = ffi.new "struct slice"
    assert.is_false(c.url_next_pair(empty, ffi.new "struct slice", ffi.new "struct slice"))
  end)
end)

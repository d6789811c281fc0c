local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c, slice = rooms.c, rooms.slice

describe("headers", function()
  local arena, headers
  before_each(function()
    arena, headers = rooms.arena(), ffi.new "struct headers"
  end)

  local function add(name, value)
    return c.headers_add(headers, arena, slice(name), slice(value))
  end

  it("finds the first of a name and counts all", function()
    add("accept", "a")
    add("cookie", "b")
    add("accept", "c")
    assert.equal("a", rooms.text(c.headers_find(headers, slice "accept").value))
    assert.equal("b", rooms.text(c.headers_find(headers, slice "cookie").value))
    assert.is_true(c.headers_find(headers, slice "accep") == nil)
    assert.is_true(c.headers_find(headers, slice "") == nil)
    assert.equal(2, c.headers_count(headers, slice "accept"))
    assert.equal(0, c.headers_count(headers, slice "host"))
  end)

  it("grows and keeps what it has, in order", function()
    for i = 1, 200 do assert.is_true(add("name-" .. i, "value " .. i)) end
    assert.equal(200, headers.count)
    for i = 1, 200 do
      assert.equal("name-" .. i, rooms.text(headers.items[i - 1].name))
      assert.equal("value " .. i, rooms.text(headers.items[i - 1].value))
    end
  end)

  it("fills an array that the caller has set before it grows", function()
    local items = ffi.new("struct header[2]")
    headers.items, headers.cap = items, 2
    add("a", "1")
    add("b", "2")
    assert.equal("b", rooms.text(items[1].name))
    add("c", "3")
    assert.equal("a", rooms.text(headers.items[0].name))
    assert.equal("c", rooms.text(headers.items[2].name))
  end)

  it("stays as it was when there is no memory", function()
    local failed = rooms.fail_each(function()
      c.arena_reset(arena)
      headers = ffi.new "struct headers"
      for i = 1, 300 do
        if not c.headers_add(headers, arena, slice "n", ffi.new "struct slice") then
          assert.equal(i - 1, headers.count)
          return false
        end
      end
      return true
    end)
    assert.is_true(failed >= 3)
  end)

  it("knows tokens: every byte by itself", function()
    local allowed = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    for byte = 0, 255 do
      local char = string.char(byte)
      local expected = allowed:find(char, 1, true) ~= nil
      assert.equal(expected, c.headers_is_name(slice(char)), byte)
      assert.equal(expected, c.headers_is_name(slice("x" .. char .. "y")), byte)
    end
    assert.is_false(c.headers_is_name(slice ""))
  end)

  it("knows values: every byte by itself", function()
    for byte = 0, 255 do
      local expected = byte == 9 or byte >= 32 and byte ~= 127
      assert.equal(expected, c.headers_is_value(slice("a" .. string.char(byte) .. "b")), byte)
    end
    assert.is_true(c.headers_is_value(slice ""))
  end)

  it("looks for a token in a list", function()
    local cases = {
      { "close", true }, { "Close", true }, { "keep-alive, close", true }, { "keep-alive ,\tclose ", true },
      { ",, close,", true }, { "keep-alive", false }, { "closed", false }, { "not-close", false },
      { "close keep-alive", false }, { "", false }, { ",", false }, { "clos", false }, { "a,b,c,close", true },
    }
    for _, case in ipairs(cases) do
      assert.equal(case[2], c.headers_has_token(slice(case[1]), slice "close"), case[1])
    end
    assert.is_false(c.headers_has_token(ffi.new "struct slice", slice "close"))
  end)
end)

local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c = rooms.c
local HEAD, TAIL = 24, 8

local function inner(p)
  return ffi.string(p.bytes + HEAD, p.len)
end

describe("payload", function()
  it("holds a copy with one reference", function()
    for _, text in ipairs { "", "x", "a\0b", ("long"):rep(10000) } do
      local p = c.payload_new_copy(rooms.slice(text))
      assert.equal(text, inner(p))
      assert.equal(1, p.refs)
      assert.equal(0, p.head_len + p.tail_len)
      c.payload_release(p)
    end
  end)

  it("takes an empty slice without bytes", function()
    local p = c.payload_new_copy(ffi.new "struct slice")
    assert.equal(0, tonumber(p.len))
    c.payload_release(p)
  end)

  it("has room before and after for the most a protocol may put there", function()
    local p = c.payload_new(5)
    ffi.fill(p.bytes, HEAD + 5 + TAIL, 120)
    ffi.copy(p.bytes + HEAD, "inner", 5)
    assert.equal(("x"):rep(HEAD) .. "inner" .. ("x"):rep(TAIL), ffi.string(p.bytes, HEAD + 5 + TAIL))
    c.payload_release(p)
  end)

  it("lives until its last release", function()
    local p = c.payload_new_copy(rooms.slice "shared")
    p.refs = p.refs + 2 -- payload_retain is inline
    c.payload_release(p)
    c.payload_release(p)
    assert.equal(1, p.refs)
    assert.equal("shared", inner(p))
    c.payload_release(p)
    c.payload_release(nil)
  end)

  it("is NULL when there is no memory or the size cannot be", function()
    assert.is_true(c.payload_new(-1ULL) == nil)
    assert.is_true(c.payload_new(-40ULL) == nil)
    local word = rooms.slice "word"
    assert.equal(1, rooms.fail_each(function()
      local p = c.payload_new_copy(word)
      c.payload_release(p)
      return p ~= nil
    end))
  end)
end)

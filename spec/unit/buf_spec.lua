local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c = rooms.c

-- As the inline buf_append.
local function append(b, text)
  local to = b.ptr ~= nil and b.cap - b.len >= #text and b.ptr + b.len or c.buf_reserve_slow(b, #text)
  if to == nil then return false end
  ffi.copy(to, text, #text)
  b.len = b.len + #text
  return true
end

describe("buf", function()
  local b
  before_each(function() b = rooms.buf() end)

  it("gives a place even for nothing", function()
    assert.is_true(c.buf_reserve_slow(b, 0) ~= nil)
    assert.equal(0, tonumber(b.len))
  end)

  it("begins with 256 bytes and doubles", function()
    local caps = {}
    for i = 1, 5 do
      assert.is_true(append(b, ("x"):rep(tonumber(b.cap - b.len) + 1)))
      caps[i] = tonumber(b.cap)
    end
    assert.same({ 256, 512, 1024, 2048, 4096 }, caps)
  end)

  it("takes as much as one large piece needs", function()
    assert.is_true(append(b, ("x"):rep(100000)))
    assert.equal(100000, tonumber(b.cap))
  end)

  it("refuses a size that cannot be, and stays as it was", function()
    append(b, "kept")
    assert.is_true(c.buf_reserve_slow(b, -1ULL) == nil)
    assert.is_true(c.buf_reserve_slow(b, -5ULL) == nil)
    assert.equal("kept", rooms.text(b))
  end)

  it("appends decimals", function()
    for _, text in ipairs { "0", "9", "10", "4294967296", "18446744073709551615" } do
      b.len = 0
      local value = loadstring("return " .. text .. "ULL")()
      assert.is_true(c.buf_append_decimal(b, value))
      assert.equal(text, rooms.text(b))
    end
  end)

  it("formats what fits and what does not", function()
    local long = ("long "):rep(200)
    assert.is_true(c.buf_append_format(b, "%s-%d;", "a", ffi.cast("int", 7)))
    assert.is_true(c.buf_append_format(b, "%s;", long))
    assert.is_true(c.buf_append_format(b, "%s", ""))
    assert.equal("a-7;" .. long .. ";", rooms.text(b))
  end)

  it("formats to the last byte of its room", function()
    for size = 250, 260 do
      local one = rooms.buf()
      assert.is_true(append(one, "0123"))
      assert.is_true(c.buf_append_format(one, "%s", ("y"):rep(size)))
      assert.equal("0123" .. ("y"):rep(size), rooms.text(one))
    end
  end)

  it("consumes from the front", function()
    append(b, "abcdef")
    c.buf_consume(b, 0)
    assert.equal("abcdef", rooms.text(b))
    c.buf_consume(b, 2)
    assert.equal("cdef", rooms.text(b))
    c.buf_consume(b, 4)
    assert.equal("", rooms.text(b))
    c.buf_consume(b, 0)
  end)

  it("is empty after a reset and may be used again", function()
    append(b, "abc")
    c.buf_reset(b)
    assert.is_true(b.ptr == nil and b.len == 0 and b.cap == 0)
    append(b, "d")
    assert.equal("d", rooms.text(b))
  end)

  it("does what a string does", function()
    local model, random = "", 7
    for _ = 1, 2000 do
      random = random * 16807 % 2147483647
      if random % 3 == 0 then
        local n = random % (#model + 1)
        c.buf_consume(b, n)
        model = model:sub(n + 1)
      else
        local piece = string.char(random % 256):rep(random % 90)
        append(b, piece)
        model = model .. piece
      end
      assert.is_true(model == rooms.text(b))
    end
  end)

  it("keeps its contents when there is no memory", function()
    append(b, ("k"):rep(256))
    local before = rooms.text(b)
    local steps = {
      function() return c.buf_reserve_slow(b, 1) ~= nil end,
      function() b.len = 256 return c.buf_append_decimal(b, 12) end,
      function() b.len = 256 return c.buf_append_format(b, "%s", ("f"):rep(3000)) end,
    }
    for _, step in ipairs(steps) do
      c.buf_reset(b)
      append(b, before)
      local failed = rooms.fail_each(function()
        local ok = step()
        assert.equal(before, rooms.text(b):sub(1, 256))
        assert.is_true(ok or b.len == 256)
        return ok
      end)
      assert.equal(1, failed)
    end
  end)
end)

describe("mem", function()
  it("counts this thread's allocations", function()
    local before = c.mem_count()
    c.mem_free(c.mem_alloc(1))
    c.mem_free(c.mem_zalloc(1))
    c.mem_free(c.mem_realloc(nil, 1))
    assert.equal(3, tonumber(c.mem_count() - before))
  end)

  it("gives zeroes, and keeps what is moved", function()
    local ptr = ffi.cast("char *", c.mem_zalloc(64))
    assert.equal(("\0"):rep(64), ffi.string(ptr, 64))
    ffi.copy(ptr, "hello")
    ptr = ffi.cast("char *", c.mem_realloc(ptr, 100000))
    assert.equal("hello", ffi.string(ptr))
    ptr = ffi.cast("char *", c.mem_realloc(ptr, 0))
    assert.is_true(ptr ~= nil)
    c.mem_free(ptr)
  end)

  it("fails one allocation after n", function()
    c.mem_fail_after(1)
    local results = {}
    for i = 1, 4 do
      local ptr = c.mem_alloc(8)
      results[i] = ptr ~= nil
      c.mem_free(ptr)
    end
    assert.same({ true, false, true, true }, results)
  end)

  it("fails by chance, the same way for the same seed", function()
    local function run(seed)
      local text, failed = {}, 0
      c.mem_fail_rate(4, seed)
      for i = 1, 400 do
        local ptr = c.mem_alloc(8)
        text[i] = ptr == nil and "x" or "."
        failed = failed + (ptr == nil and 1 or 0)
        c.mem_free(ptr)
      end
      c.mem_fail_rate(0, 0)
      return table.concat(text), failed
    end
    local text, failed = run(11)
    assert.equal(text, (run(11)))
    assert.not_equal(text, (run(12)))
    assert.is_true(failed > 50 and failed < 150)
    assert.is_true(select(2, run(0)) > 0)
    local ptr = c.mem_alloc(8)
    assert.is_true(ptr ~= nil)
    c.mem_free(ptr)
  end)
end)

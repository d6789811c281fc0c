local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c = rooms.c

local function address(ptr)
  return tonumber(ffi.cast("uintptr_t", ptr))
end

describe("arena", function()
  local pool, arena
  before_each(function()
    pool = ffi.gc(ffi.new "struct arena_pool", c.arena_pool_reset)
    arena = rooms.arena()
    arena.pool = pool
  end)
  after_each(function()
    c.arena_reset(arena)
    c.arena_pool_reset(pool)
  end)

  it("holds no memory before its first allocation nor after a reset", function()
    local before = c.mem_count()
    c.arena_reset(arena)
    assert.equal(0, tonumber(c.mem_count() - before))
    c.arena_alloc(arena, 10)
    c.arena_reset(arena)
    assert.is_true(arena.chunks == nil and arena.next == nil and arena["end"] == nil)
  end)

  it("gives aligned memory of its own for each", function()
    local given, random = {}, 3
    for i = 1, 600 do
      random = random * 16807 % 2147483647
      local size = i % 50 == 0 and random % 9000 or random % 120
      local ptr = ffi.cast("char *", c.arena_alloc(arena, size))
      assert.equal(0, address(ptr) % 16)
      ffi.fill(ptr, size, i % 256)
      given[i] = { ptr = ptr, text = string.char(i % 256):rep(size) }
    end
    for _, one in ipairs(given) do
      assert.is_true(ffi.string(one.ptr, #one.text) == one.text)
    end
  end)

  it("gives a place even for nothing", function()
    assert.is_true(c.arena_alloc(arena, 0) ~= nil)
    assert.not_equal(address(c.arena_alloc(arena, 0)), address(c.arena_alloc(arena, 0)))
  end)

  it("takes small pieces from one chunk", function()
    local before = c.mem_count()
    for _ = 1, 30 do c.arena_alloc(arena, 32) end
    assert.equal(1, tonumber(c.mem_count() - before))
  end)

  it("begins with a small chunk and goes on with larger ones", function()
    for _ = 1, 63 + 127 + 255 do c.arena_alloc(arena, 16) end
    c.arena_reset(arena)
    assert.same({ 1, 1, 1 }, { pool.count[0], pool.count[1], pool.count[2] })
  end)

  it("takes the size that has room", function()
    c.arena_alloc(arena, 3000)
    c.arena_reset(arena)
    c.arena_alloc(arena, 1009)
    c.arena_reset(arena)
    c.arena_alloc(arena, 1008)
    c.arena_reset(arena)
    assert.same({ 1, 1, 1 }, { pool.count[0], pool.count[1], pool.count[2] })
  end)

  it("goes on in its chunk after a large piece", function()
    local first = address(c.arena_alloc(arena, 16))
    assert.is_true(c.arena_alloc(arena, 100000) ~= nil)
    assert.equal(first + 16, address(c.arena_alloc(arena, 16)))
  end)

  it("may begin with a large piece", function()
    ffi.fill(c.arena_alloc(arena, 5000), 5000, 1)
    ffi.fill(c.arena_alloc(arena, 50), 50, 2)
    c.arena_reset(arena)
    assert.equal(1, pool.count[0])
  end)

  it("reuses chunks through the pool", function()
    local function work()
      for _ = 1, 20 do c.arena_alloc(arena, 1000) end
      c.arena_reset(arena)
    end
    work()
    local before = c.mem_count()
    work()
    assert.equal(0, tonumber(c.mem_count() - before))
    assert.is_true(pool.count[2] > 1)
  end)

  it("shares the pool among arenas", function()
    c.arena_alloc(arena, 8)
    c.arena_reset(arena)
    local other = rooms.arena()
    other.pool = pool
    local before = c.mem_count()
    c.arena_alloc(other, 8)
    assert.equal(0, tonumber(c.mem_count() - before))
    assert.equal(0, pool.count[0])
    c.arena_reset(other)
  end)

  it("keeps at most 64 chunks", function()
    for _ = 1, 100 do c.arena_alloc(arena, 4000) end
    c.arena_reset(arena)
    assert.equal(64, pool.count[2])
    c.arena_pool_reset(pool)
    assert.is_true(pool.count[2] == 0 and pool.free[2] == nil)
  end)

  it("works without a pool", function()
    local lone = rooms.arena()
    for _ = 1, 10 do assert.is_true(c.arena_alloc(lone, 1000) ~= nil) end
    c.arena_reset(lone)
    assert.is_true(lone.chunks == nil)
  end)

  it("clears on demand, also what was used before", function()
    ffi.fill(c.arena_alloc(arena, 4000), 4000, 255)
    c.arena_reset(arena)
    assert.equal(("\0"):rep(4000), ffi.string(c.arena_zalloc(arena, 4000), 4000))
  end)

  it("copies bytes", function()
    assert.equal("a\0b", rooms.text(c.arena_copy(arena, rooms.slice "a\0b")))
    local long = ("z"):rep(10000)
    assert.equal(long, rooms.text(c.arena_copy(arena, rooms.slice(long))))
    local empty = c.arena_copy(arena, ffi.new "struct slice")
    assert.is_true(empty.ptr ~= nil and empty.len == 0)
  end)

  it("refuses sizes that cannot be", function()
    assert.is_true(c.arena_alloc(arena, -1ULL) == nil)
    assert.is_true(c.arena_alloc(arena, -17ULL) == nil)
    assert.is_true(c.arena_zalloc(arena, -4096ULL) == nil)
    assert.is_true(c.arena_alloc(arena, 8) ~= nil)
  end)

  it("says so when there is no memory, and goes on afterwards", function()
    local words = { rooms.slice(("w"):rep(3000)), rooms.slice(("v"):rep(3000)), rooms.slice(("u"):rep(30000)) }
    local failed = rooms.fail_each(function()
      c.arena_reset(arena)
      c.arena_pool_reset(pool)
      for _, word in ipairs(words) do
        local copy = c.arena_copy(arena, word)
        if copy.ptr == nil then
          assert.equal(0, tonumber(copy.len))
          return false
        end
      end
      return true
    end)
    assert.equal(3, failed)
  end)
end)

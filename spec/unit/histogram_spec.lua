local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

pcall(ffi.cdef, [[
struct histogram { uint64_t count, sum, min, max; uint64_t cells[4608]; };
void histogram_add(struct histogram *h, uint64_t value, uint64_t times);
void histogram_merge(struct histogram *h, const struct histogram *from);
uint64_t histogram_at(const struct histogram *h, double share);
uint64_t histogram_count_below(const struct histogram *h, uint64_t value);
double histogram_mean(const struct histogram *h);
unsigned histogram_cell(uint64_t value);
uint64_t histogram_cell_low(unsigned cell);
]])

local c = rooms.c
local CELLS = 4608

local function fill(values)
  local h = ffi.new "struct histogram"
  for _, value in ipairs(values) do c.histogram_add(h, value, 1) end
  return h
end

local function at(h, share) return tonumber(c.histogram_at(h, share)) end

-- Values of all sizes, the same in each run.
local function random_values(count, most)
  local values, random = {}, 7
  for i = 1, count do
    random = random * 16807 % 2147483647
    values[i] = math.floor(most ^ (random / 2147483647))
  end
  return values
end

describe("histogram", function()
  it("has cells without gaps, in order, narrow ones", function()
    for cell = 0, CELLS - 1 do
      local low = c.histogram_cell_low(cell)
      local high = c.histogram_cell_low(cell + 1)
      assert.is_true(high > low)
      assert.equal(cell, c.histogram_cell(low))
      assert.equal(cell, c.histogram_cell(high - 1))
      assert.is_true(low < 128 or tonumber(high - low) <= tonumber(low) / 128)
    end
  end)

  it("keeps values beyond its range in the last cell", function()
    local h = fill { 1, 2 ^ 50 }
    assert.equal(CELLS - 1, c.histogram_cell(2 ^ 50))
    assert.equal(2 ^ 50, at(h, 1))
    assert.equal(2 ^ 50, at(h, 0.99))
    assert.equal(1, at(h, 0.5))
  end)

  it("is empty at first", function()
    local h = fill {}
    assert.equal(0, at(h, 0.5))
    assert.equal(0, at(h, 1))
    assert.equal(0, c.histogram_mean(h))
    assert.equal(0, tonumber(c.histogram_count_below(h, 5)))
  end)

  it("is exact for small values", function()
    local values = {}
    for i = 1, 100 do values[i] = i end
    local h = fill(values)
    for percent = 1, 100 do assert.equal(percent, at(h, percent / 100)) end
    assert.equal(1, at(h, 0))
    assert.equal(50.5, c.histogram_mean(h))
    assert.equal(49, tonumber(c.histogram_count_below(h, 50)))
    assert.equal(100, tonumber(c.histogram_count_below(h, 1000)))
  end)

  it("agrees with sorting within 0.8 %", function()
    local values = random_values(20000, 3e10)
    local h = fill(values)
    table.sort(values)
    for _, share in ipairs { 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999, 1 } do
      local exact = values[math.max(1, math.ceil(share * #values))]
      local got = at(h, share)
      assert.is_true(got >= exact and got <= exact * 1.008 + 1, ("%g: %d for %d"):format(share, got, exact))
    end
    assert.equal(values[1], tonumber(h.min))
    assert.equal(values[#values], tonumber(h.max))
  end)

  it("adds many at once, and merges", function()
    local values = random_values(500, 1e9)
    local once, twice, more = fill(values), fill(values), ffi.new "struct histogram"
    c.histogram_merge(twice, once)
    for _, value in ipairs(values) do c.histogram_add(more, value, 2) end
    c.histogram_add(more, 5, 0)
    c.histogram_merge(more, ffi.new "struct histogram")
    assert.equal(ffi.string(twice, ffi.sizeof(twice)), ffi.string(more, ffi.sizeof(more)))
    assert.equal(1000, tonumber(more.count))
  end)
end)

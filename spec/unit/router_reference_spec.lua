-- Random tables and paths, compared with a router that tries every route; and how much a lookup does.
local Table = require "spec.unit.router_table"
local reference = require "spec.unit.router_reference"

local function shuffled(list, random)
  local copy = { unpack(list) }
  for i = #copy, 2, -1 do
    local k = random(i)
    copy[i], copy[k] = copy[k], copy[i]
  end
  return copy
end

-- A generator of numbers that a seed repeats, whatever the runtime does with math.random.
local function generator(seed)
  local state = seed
  return function(most)
    state = (state * 16807) % 2147483647
    return state % most + 1
  end
end

describe("router: agrees with the reference", function()
  local LITERALS = { "a", "b", "ab", "aa", "abc", "", "α", "a%20", "x.y", "user_",
    "a_very_long_literal_segment_of_a_route" }
  local METHODS = { "GET", "GET", "GET", "HEAD", "POST", "DELETE", "PURGE", "*" }
  local ODD = { "%61", "%2F", "%00", "%CE%B1", "a%62", "%", "%4", "~", "aab", "user_1", "%75ser_1", "a b" }

  local function random_pattern(random)
    local parts, last = {}, random(4)
    for i = 1, last do
      local kind, literal = random(10), LITERALS[random(#LITERALS)]
      if kind <= 5 then
        parts[i] = literal
      elseif kind <= 7 then
        parts[i] = literal .. ":p" .. i
      elseif kind <= 9 or i < last then
        parts[i] = ":p" .. i
      else
        parts[i] = "*p" .. i
      end
    end
    return "/" .. table.concat(parts, "/")
  end

  local function random_path(random, routes)
    local pattern = routes[random(#routes)].pattern
    local path = pattern:gsub("[:*]p%d", function()
      return random(3) == 1 and ODD[random(#ODD)] or LITERALS[random(#LITERALS)]
    end)
    if random(4) == 1 then path = path .. "/" .. LITERALS[random(#LITERALS)] end
    if random(4) == 1 then path = path:gsub("a", "%%61", 1) end
    if random(5) == 1 then
      path = path:gsub("[^/]+", function(s) return random(3) == 1 and ODD[random(#ODD)] or s end)
    end
    return path
  end

  local function shape_of(method, pattern)
    return method .. pattern:gsub("α", "%%CE%%B1"):gsub(":p", ":"):gsub("%*p", "*")
  end

  local function random_routes(random)
    local routes, seen = {}, {}
    for _ = 1, random(24) do
      local method, pattern = METHODS[random(#METHODS)], random_pattern(random)
      local shape = shape_of(method, pattern)
      if not seen[shape] then routes[#routes + 1] = { method = method, pattern = pattern } end
      seen[shape] = true
    end
    return routes
  end

  local function table_of(routes)
    local t = Table.new()
    for _, route in ipairs(routes) do assert(t:add(route.method, route.pattern)) end
    return t
  end

  for seed = 1, 120 do
    it("seed " .. seed, function()
      local random = generator(seed * 7919)
      local routes = random_routes(random)
      local sealed, unsealed, other = table_of(routes), table_of(routes), table_of(shuffled(routes, random))
      assert(sealed:seal() and other:seal())
      for _ = 1, 60 do
        local method, path = METHODS[random(#METHODS - 1)], random_path(random, routes)
        local expected = { reference.match(routes, method, path) }
        local context = method .. " " .. path
        assert.same(expected, { sealed:match(method, path) }, context)
        assert.same(expected, { unsealed:match(method, path) }, context)
        assert.same(expected, { other:match(method, path) }, context)
        assert.equal(sealed:allow(path), other:allow(path))
        assert.equal(expected[1] == "found" or expected[1] == "other method", sealed:allow(path) ~= "", context)
      end
    end)
  end
end)

describe("router: effort", function()
  local SHAPES = { { "/api/things%d/list", "/api/things%d/list" }, { "/api/v1/t%d/:id", "/api/v1/t%d/42" },
    { "/u%d_:name/about", "/u%d_joe/about" }, { "/files%d/*path", "/files%d/a/b.css" } }

  local function mean_steps(count)
    local t, sum = Table.new(), 0
    for i = 1, count do
      assert(t:add("GET", (SHAPES[i % #SHAPES + 1][1]:format(i))))
    end
    assert(t:seal())
    for i = 1, count do
      local path = SHAPES[i % #SHAPES + 1][2]:format(i)
      assert(t:match("GET", path) == "found", path)
      sum = sum + t:steps("GET", path)
    end
    return sum / count
  end

  it("is the same for twenty and ten thousand routes", function()
    local few, many = mean_steps(20), mean_steps(10000)
    assert.truthy(few > 1 and many <= few * 1.1, few .. " and " .. many .. " nodes a lookup")
  end)

  it("comes to each node and leaves it at most once, whatever the patterns", function()
    local t, nodes = Table.new(), 1
    for bits = 0, 1023 do
      local parts = {}
      for i = 1, 10 do parts[i] = math.floor(bits / 2 ^ (i - 1)) % 2 == 0 and "a" or ":p" .. i end
      assert(t:add("GET", "/" .. table.concat(parts, "/") .. "/end/:last"))
    end
    for depth = 1, 10 do nodes = nodes + 2 ^ depth end
    nodes = nodes + 2 * 1024 -- "end" and :last of each
    assert.equal("not found", (t:get(("/a"):rep(10) .. "/end")))
    assert.truthy(t:steps("GET", ("/a"):rep(10) .. "/end") <= 2 * nodes + 1)
    assert.truthy(t:steps("GET", ("/a"):rep(10) .. "/other/1") <= 2 * nodes + 1)
    assert.truthy(t:steps("GET", ("/a"):rep(4000)) <= 2 * nodes + 1)
  end)

  it("does not grow with a path that leads nowhere", function()
    local t = Table.of { "/:a/:b/c", "/:a/x:b/d", "/a/:b/*rest", "/:a/:b/:c/e" }
    assert.truthy(t:steps("GET", ("/q"):rep(4000)) <= 10)
    assert.truthy(t:steps("GET", "/" .. ("q"):rep(8000)) <= 10)
  end)
end)

-- photon.shared: dictionaries of the whole server.
local photon = require "photon"

local count = 0

-- A dictionary that no other spec has touched.
local function fresh()
  count = count + 1
  return photon.shared("spec:" .. count .. ":" .. tostring({}))
end

describe("photon.shared", function()
  it("gives the same dictionary for the same name", function()
    local d = fresh()
    d:set("k", "v")
    local name = "again" .. tostring(d)
    photon.shared(name):set("k", 1)
    assert.equal(1, photon.shared(name):get "k")
    assert.equal("v", d:get "k")
  end)

  it("keeps strings, numbers and booleans as they are", function()
    local d = fresh()
    for _, value in ipairs { "", "text\0with\255bytes", ("long"):rep(10000), 0, -1.5, 2 ^ 53, 1e300,
      true, false } do
      assert.is_true(d:set("k", value))
      assert.equal(value, d:get "k")
    end
  end)

  it("takes any text and number for a key", function()
    local d = fresh()
    d:set("", 1)
    d:set("a\0b", 2)
    d:set(3, "three")
    d:set(("k"):rep(5000), 4)
    assert.equal(1, d:get "")
    assert.equal(2, d:get "a\0b")
    assert.is_nil(d:get "a")
    assert.equal("three", d:get(3))
    assert.equal(4, d:get(("k"):rep(5000)))
    assert.has_error(function() d:get {} end)
    assert.has_error(function() d:get(nil) end)
  end)

  it("copies tables", function()
    local d = fresh()
    local value = { 1, 2, { deep = { true, false, "x" } }, [10] = "ten", [1.5] = "half", name = "n",
      [true] = "yes" }
    d:set("k", value)
    value.name = "changed"
    local copy = d:get "k"
    value.name = "n"
    assert.same(value, copy)
    copy[3].deep = nil
    assert.same(value, d:get "k")
  end)

  it("keeps the mark of arrays, and null", function()
    local d = fresh()
    d:set("k", { list = photon.array {}, none = photon.null })
    assert.equal("[]", photon.json.encode(d:get("k").list))
    assert.equal(photon.null, d:get("k").none)
  end)

  it("keeps many entries apart", function()
    local d = fresh()
    for i = 1, 3000 do d:set("key" .. i, i) end
    for i = 1, 3000, 2 do assert.is_true(d:delete("key" .. i)) end
    for i = 1, 3000 do assert.equal(i % 2 == 0 and i or nil, d:get("key" .. i)) end
  end)

  for name, case in pairs {
    ["a function"] = { function() end, "is a function" },
    ["a coroutine"] = { coroutine.create(print), "is a coroutine" },
    ["a metatable"] = { setmetatable({}, {}), "metatable" },
    ["a function deep inside"] = { { a = { { b = print } } }, "value.a[1].b is a function" },
    ["a table as key"] = { { [{}] = 1 }, "key" },
  } do
    it("refuses " .. name, function()
      local d = fresh()
      local ok, message = pcall(d.set, d, "k", case[1])
      assert.is_false(ok)
      assert.truthy(tostring(message):find(case[2], 1, true), tostring(message))
      assert.is_nil(d:get "k")
    end)
  end

  it("refuses a table that contains itself", function()
    local t = {}
    t.t = { t }
    assert.has_error(function() fresh():set("k", t) end)
  end)

  it("refuses nil for a value, wrong options and names", function()
    local d = fresh()
    assert.has_error(function() d:set("k", nil) end)
    assert.has_error(function() d:set("k", 1, { tll = 1 }) end)
    assert.has_error(function() d:set("k", 1, { ttl = 0 }) end)
    assert.has_error(function() d:set("k", 1, { ttl = "1" }) end)
    assert.has_error(function() photon.shared() end)
    assert.has_error(function() photon.shared(("n"):rep(129)) end)
  end)

  describe("add", function()
    it("puts only what is not there", function()
      local d = fresh()
      assert.is_true(d:add("k", 1))
      assert.same({ nil, "exists" }, { d:add("k", 2) })
      assert.equal(1, d:get "k")
      d:delete "k"
      assert.is_true(d:add("k", 3))
    end)
  end)

  describe("incr", function()
    it("adds, and begins with init or 0", function()
      local d = fresh()
      assert.equal(1, d:incr "a")
      assert.equal(3.5, d:incr("a", 2.5))
      assert.equal(12, d:incr("b", 2, { init = 10 }))
      assert.equal(14, d:incr("b", 2, { init = 10 }))
      assert.equal(14, d:get "b")
    end)

    it("says when the value is no number", function()
      local d = fresh()
      d:set("k", "1")
      assert.same({ nil, "not a number" }, { d:incr "k" })
      assert.equal("1", d:get "k")
    end)
  end)

  describe("update", function()
    it("replaces by what the function makes of it", function()
      local d = fresh()
      assert.equal(1, d:update("k", function(v) return (v or 0) + 1 end))
      assert.equal(2, d:update("k", function(v) return (v or 0) + 1 end))
      assert.same({ 2 }, d:update("k", function(v) return { v } end))
      assert.is_nil(d:update("k", function() return nil end))
      assert.is_nil(d:get "k")
      assert.is_nil(d:update("k", function() return nil end))
    end)

    it("asks again when the value has changed meanwhile", function()
      local d = fresh()
      local calls = 0
      d:set("k", 1)
      assert.equal(12, d:update("k", function(v)
        calls = calls + 1
        if calls == 1 then d:set("k", 2) end
        return v + 10
      end))
      assert.equal(2, calls)
      d:set("k", 1)
      calls = 0
      d:update("k", function()
        calls = calls + 1
        if calls == 1 then d:delete "k" end
        return calls
      end)
      assert.equal(2, d:get "k")
    end)

    it("leaves the value when the function fails", function()
      local d = fresh()
      d:set("k", 1)
      assert.has_error(function() d:update("k", function() error "no" end) end)
      assert.equal(1, d:get "k")
    end)

    it("may wait in between", function()
      local d = fresh()
      local tasks = {}
      for i = 1, 20 do
        tasks[i] = photon.spawn(function()
          return d:update("k", function(v)
            photon.sleep(0)
            return (v or 0) + 1
          end)
        end)
      end
      for _, t in ipairs(tasks) do t:join() end
      assert.equal(20, d:get "k")
    end)
  end)

  it("tells whether delete has found something", function()
    local d = fresh()
    d:set("k", false)
    assert.is_true(d:delete "k")
    assert.is_false(d:delete "k")
  end)
end)

describe("photon.shared's time to live", function()
  local test = require "photon.test"

  it("ends an entry", function()
    local d = fresh()
    test.clock.freeze()
    d:set("k", 1, { ttl = 10 })
    d:set("stays", 1)
    test.clock.advance(9.9)
    assert.equal(1, d:get "k")
    test.clock.advance(0.2)
    assert.is_nil(d:get "k")
    assert.equal(1, d:get "stays")
    assert.is_true(d:add("k", 2))
  end)

  it("begins anew with set, and goes on with incr and update", function()
    local d = fresh()
    test.clock.freeze()
    d:set("set", 1, { ttl = 10 })
    d:incr("incr", 1, { ttl = 10 })
    d:set("update", 1, { ttl = 10 })
    d:set("longer", 1, { ttl = 10 })
    d:set("forever", 1, { ttl = 10 })
    test.clock.advance(6)
    d:set("set", 1, { ttl = 10 })
    d:set("forever", 1)
    d:incr("incr", 1, { ttl = 10 })
    d:update("update", function(v) return v + 1 end)
    d:update("longer", function(v) return v + 1 end, { ttl = 10 })
    test.clock.advance(6)
    assert.equal(1, d:get "set")
    assert.equal(1, d:get "forever")
    assert.is_nil(d:get "incr")
    assert.is_nil(d:get "update")
    assert.equal(2, d:get "longer")
  end)
end)

describe("photon.shared when it is full", function()
  local test = require "photon.test"
  local big = ("x"):rep(1024 * 1024)

  -- Fills a dictionary until nothing more fits; returns how many entries did.
  local function fill(d, options)
    local n = 0
    while true do
      local ok, why = d:set("big" .. n, big, options)
      if not ok then return n, why end
      n = n + 1
      assert.is_true(n < 1000)
    end
  end

  local function empty(d, n)
    for i = 0, n do d:delete("big" .. i) end
  end

  it("says so, and drops nothing", function()
    local d = fresh()
    local n, why = fill(d)
    assert.equal("full", why)
    assert.is_true(n > 0)
    for i = 0, n - 1 do assert.equal(#big, #d:get("big" .. i)) end
    assert.same({ nil, "full" }, { d:add("other", big) })
    assert.same({ nil, "full" }, { d:update("other", function() return big end) })
    assert.same({ nil, "full" }, { fresh():set("other", big) })
    d:delete "big0"
    assert.is_true(d:set("other", big:sub(1, 1000)))
    empty(d, n)
  end)

  it("still replaces a value by one of its size", function()
    local d = fresh()
    local n = fill(d)
    assert.is_true(d:set("big0", ("y"):rep(#big)))
    empty(d, n)
  end)

  it("takes back what is over, in every dictionary", function()
    local d, other = fresh(), fresh()
    test.clock.freeze()
    local n = fill(d, { ttl = 5 })
    assert.same({ nil, "full" }, { other:set("k", big) })
    test.clock.advance(6)
    assert.is_true(other:set("k", big))
    assert.equal(n - 1, (fill(other)))
    empty(other, n)
    other:delete "k"
  end)
end)

describe("shared dictionaries under many threads", function()
  require("spec.programs").define("shared_threads", it)
end)

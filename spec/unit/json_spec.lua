-- photon.json as scripts see it. cjson is the reference wherever it is right.
local ffi = require "ffi"
local cjson = require "cjson"
local photon = require "photon"

local encode, decode = photon.json.encode, photon.json.decode
local array, null = photon.array, photon.null

local function refused(message, value)
  local ok, problem = pcall(function() return encode(value) end)
  assert.is_false(ok)
  assert.equal(message, (problem:gsub("^[^:]+:%d+: ", "")))
end

local function nested(depth, wrap)
  local value = wrap()
  for _ = 2, depth do value = wrap(value) end
  return value
end

describe("json.encode", function()
  it("writes plain values", function()
    assert.equal("null", encode(null))
    assert.equal("null", encode(nil))
    assert.equal("true", encode(true))
    assert.equal("false", encode(false))
    assert.equal('"a\\"b/\\u0001é"', encode 'a"b/\1é')
    assert.equal("0.1", encode(0.1))
    assert.equal("9007199254740992", encode(2 ^ 53))
    assert.equal("1732983019.123", encode(1732983019.123))
  end)

  it("tells arrays from objects by their keys", function()
    assert.equal("{}", encode {})
    assert.equal('{"id":"42"}', encode { id = "42" })
    assert.equal('[1,"a",[true],{"x":[]}]', encode { 1, "a", { true }, { x = array {} } })
    assert.equal('{"1":"a"}', encode { ["1"] = "a" })
    assert.equal("[null,1]", encode { null, 1 })
  end)

  it("writes arrays in order wherever their parts are kept", function()
    local backwards, late = {}, { 1, 2 }
    for i = 20, 1, -1 do backwards[i] = i end
    for i = 40, 3, -1 do late[i] = i end
    assert.same(cjson.decode(encode(backwards)), { unpack(backwards, 1, 20) })
    assert.same(cjson.decode(encode(late)), { unpack(late, 1, 40) })
    local refilled = { 1, 2, 3, 4 }
    refilled[2] = nil
    refilled[2] = "two"
    assert.equal('[1,"two",3,4]', encode(refilled))
  end)

  it("names the place of what it cannot encode", function()
    local t = setmetatable({}, { __index = { x = 1 } })
    refused("cannot encode a function", print)
    refused("cannot encode a function at .users[2].callback", { users = { { id = 1 }, { callback = print } } })
    refused("cannot encode a thread at [1]", { coroutine.create(print) })
    refused("cannot encode a userdata at .file", { file = io.stdout })
    refused("cannot encode nan at .a[1]", { a = { 0 / 0 } })
    refused("cannot encode inf at .a", { a = 1 / 0 })
    refused("cannot encode -inf at .a", { a = -1 / 0 })
    refused('cannot encode a function at ["first name"].x', { ["first name"] = { x = print } })
    refused('cannot encode a function at ["1"]', { ["1"] = print })
    refused('cannot encode a function at ["a?b?"]', { ['a"b\n'] = print })
    refused("cannot encode a string that is not UTF-8 at .name", { name = "caf\233" })
    refused('cannot encode a string that is not UTF-8 at .x["?"]', { x = { ["\255"] = 1 } })
    refused("cannot encode a sparse array at .list", { list = { 1, nil, 3 } })
    refused("cannot encode a sparse array", { [2] = 1 })
    refused("cannot encode a sparse array", { [1] = 1, [2 ^ 40] = 1 })
    refused("cannot encode a table that mixes an array with string keys at .m", { m = { 1, 2, x = 3 } })
    refused("cannot encode a table with a number key other than 1 to n", { [0] = 1 })
    refused("cannot encode a table with a number key other than 1 to n", { 1, [1.5] = 1 })
    refused("cannot encode a table with a number key other than 1 to n", { [-1] = 1 })
    refused("cannot encode a table with a boolean as key at .b", { b = { [true] = 1 } })
    refused("cannot encode a table with a table as key", { [t] = 1 })
    refused("cannot encode a function at [40]", (function()
      local list = {}
      for i = 40, 1, -1 do list[i] = i end
      list[40] = print
      return list
    end)())
  end)

  it("refuses string keys after which number keys come, and the reverse", function()
    for n = 1, 30 do
      local mixed = {}
      for i = 1, n do mixed["k" .. i] = i end
      mixed[1] = 1
      local ok, problem = pcall(encode, mixed)
      assert.is_false(ok)
      assert.truthy(problem:find "^cannot encode a table that mixes ")
    end
  end)

  it("raises at the caller's line, and keeps what a long path begins with", function()
    local _, problem = pcall(function() return 1, encode(print) end)
    assert.truthy(problem:find "json_spec%.lua:%d+: cannot encode a function")
    local long = { [("k"):rep(5000)] = print }
    for _ = 1, 100 do long = { level = long } end
    _, problem = pcall(encode, long)
    assert.truthy(problem:find "cannot encode a function at %.level%.level%..*%.%.%.$")
    assert.truthy(#problem < 500)
    refused('cannot encode a function at ["' .. ("k"):rep(32) .. '..."]', { [("k"):rep(5000)] = print })
  end)

  it("goes 128 levels deep and no deeper", function()
    local function list(inner) return { inner } end
    local function object(inner) return { k = inner } end
    assert.equal(("["):rep(127) .. "{}" .. ("]"):rep(127), encode(nested(128, list)))
    assert.equal(('{"k":'):rep(127) .. "{}" .. ("}"):rep(127), encode(nested(128, object)))
    assert.is_false(pcall(encode, nested(129, list)))
    local cycle = {}
    cycle.self = cycle
    local ok, problem = pcall(encode, cycle)
    assert.is_false(ok)
    assert.truthy(problem:find "nested deeper than 128 %(a cycle%?%) at %.self%.self")
    assert.equal(254, #coroutine.wrap(function() return encode(nested(127, list)) end)())
  end)

  it("calls no metamethod", function()
    local function never() error "a metamethod was called" end
    local hostile = setmetatable({ 1, { a = 2 } }, { __index = never, __len = never, __pairs = never,
      __ipairs = never, __tostring = never, __eq = never, __call = never })
    assert.equal('[1,{"a":2}]', encode(hostile))
  end)

  it("writes 64-bit integers as digits, whatever scripts do to the library", function()
    local tostring_before, istype_before = tostring, ffi.istype
    _G.tostring = nil
    ffi.istype = function() return false end
    local ok, text = pcall(encode, { 5LL, -9223372036854775807LL - 1, 18446744073709551615ULL })
    _G.tostring, ffi.istype = tostring_before, istype_before
    assert.is_true(ok, text)
    assert.equal("[5,-9223372036854775808,18446744073709551615]", text)
    local vararg = "cannot encode a cdata other than a 64-bit integer at .p"
    refused(vararg, { p = ffi.new "int[2]" })
    refused(vararg, { p = ffi.new("void *", nil) })
    refused(vararg, { p = ffi.new("int64_t *", nil) })
    refused(vararg, { p = ffi.new("double", 1) })
  end)

  it("survives finalizers that use it in its midst", function()
    local runs = 0
    local function litter()
      local proxy = newproxy(true)
      getmetatable(proxy).__gc = function()
        runs = runs + 1
        encode { ("inner"):rep(400), { runs } }
        decode '["\\n", {"a": 1}]'
      end
    end
    for i = 1, 3000 do
      litter()
      local value = { ("x"):rep(i % 700), i }
      assert(encode(value) == ('["%s",%d]'):format(value[1], i))
      local back = decode(('{"k\\n":["%s\\t",%d]}'):format(value[1], i))
      assert(back["k\n"][1] == value[1] .. "\t" and back["k\n"][2] == i)
    end
    collectgarbage()
    assert.truthy(runs > 1000)
  end)

  it("works on after an error", function()
    for _ = 1, 100 do
      pcall(encode, { ("x"):rep(10000), print })
      assert.equal("[1]", encode { 1 })
    end
  end)

  it("needs a value", function()
    assert.is_false(pcall(encode))
  end)
end)

describe("json.array", function()
  it("marks the table itself", function()
    local t = {}
    assert.equal(t, array(t))
    assert.equal(t, array(t))
    assert.equal("[]", encode(t))
    t[1] = "a"
    assert.equal('["a"]', encode(t))
  end)

  it("holds the table to being an array", function()
    refused("cannot encode a table that mixes an array with string keys", array { x = 1 })
    refused("cannot encode a sparse array at .a", { a = array { 1, nil, 3 } })
  end)

  it("refuses what it cannot mark", function()
    local ok, problem = pcall(array, setmetatable({}, {}))
    assert.is_false(ok)
    assert.truthy(problem:find "has a metatable")
    assert.is_false(pcall(array))
    assert.is_false(pcall(array, "text"))
  end)
end)

describe("json.decode", function()
  it("makes values", function()
    assert.same({ a = { 1, -2.5, true, false }, b = { c = "é\n𝄞" } },
      decode [[ {"a": [1, -2.5, true, false], "b": {"c": "é\n\ud834\udd1e"}} ]])
    assert.equal("text", decode '"text"')
    assert.equal(1.5, decode "1.5")
    assert.equal(false, decode "false")
    assert.equal(2, decode('{"a":1,"a":2}').a)
    assert.equal(1, decode('{"":1}')[""])
  end)

  it("gives null as photon.null, which is cjson's", function()
    assert.equal(cjson.null, null)
    assert.equal(null, decode "null")
    assert.same({ null, { a = null } }, decode '[null,{"a":null}]')
  end)

  it("keeps arrays arrays, also empty ones", function()
    for _, text in ipairs { "[]", "{}", '{"a":[]}', "[[],{}]", "[[[]]]", "[null]" } do
      assert.equal(text, encode(decode(text)))
    end
    local list = decode('{"list":[1]}').list
    list[1] = nil
    assert.equal("[]", encode(list))
  end)

  it("returns nil and why and where for what is not JSON", function()
    local CASES = {
      [""] = "the text has no end at byte 1", ["[1,]"] = "a value was expected at byte 4",
      ["[1] x"] = "something follows the value at byte 5", ['{"a":1e999}'] = "the number is too large at byte 6",
      ['"\\ud800"'] = "lone surrogate at byte 2", ['"\255"'] = "invalid UTF-8 at byte 2",
      ["\239\187\191[]"] = "byte order mark at byte 1", ["NaN"] = "a value was expected at byte 1",
      ['{"a":{"b":[1,{"c":tru}]}}'] = "a value was expected at byte 19",
      [("["):rep(129)] = "nested too deep at byte 129",
    }
    for text, message in pairs(CASES) do
      local value, problem = decode(text)
      assert.is_nil(value)
      assert.equal("invalid JSON: " .. message, problem)
    end
  end)

  it("unescapes strings of every length", function()
    for _, length in ipairs { 0, 1, 100, 1000, 1024, 1025, 5000, 200000 } do
      local s = ("\n"):rep(length) .. ("x"):rep(length) .. "\t"
      assert.equal(s, decode(encode(s)))
      assert.equal(s, decode(encode { k = { s } }).k[1])
    end
  end)

  it("goes 128 levels deep, also in a coroutine", function()
    local text = ('{"a":['):rep(64) .. ("]}"):rep(64)
    assert.equal(text, encode(decode(text)))
    assert.equal(text, coroutine.wrap(function() return encode(decode(text)) end)())
  end)

  it("takes strings only", function()
    assert.is_false(pcall(decode))
    assert.is_false(pcall(decode, 12))
    assert.is_false(pcall(decode, {}))
  end)
end)

describe("json and cjson", function()
  local state = 20
  local function random(n)
    state = (state * 16807) % 2147483647
    return state % n
  end

  local PIECES = { "a", "B", " ", '"', "\\", "/", "\n", "\0", "\31", "\127", "é", "€", "𝄞", "plain text" }

  local function random_string()
    local pieces = {}
    for i = 1, random(8) do pieces[i] = PIECES[1 + random(#PIECES)] end
    return table.concat(pieces)
  end

  local function random_number()
    local kind = random(4)
    if kind == 0 then return random(2000) - 1000 end
    if kind == 1 then return (random(2000000) - 1000000) / 2 ^ random(12) end
    if kind == 2 then return (random(2147483647) * 2097152 + random(2097152)) end
    return (random(2147483647) / 7) * 10 ^ (random(600) - 305)
  end

  local function random_value(depth)
    local kind = random(depth > 0 and 8 or 5)
    if kind == 0 then return random_string() end
    if kind <= 2 then return random_number() end
    if kind == 3 then return random(2) == 0 end
    if kind == 4 then return null end
    local value = {}
    if kind <= 6 then
      for _ = 1, random(6) do value[random_string()] = random_value(depth - 1) end
      return value
    end
    for i = 1, random(6) do value[i] = random_value(depth - 1) end
    return array(value)
  end

  -- Quicker than assert.same; with `marked`, arrays must be marked in both or in neither.
  local function same(a, b, marked)
    if type(a) ~= "table" or type(b) ~= "table" then return a == b end
    if marked and getmetatable(a) ~= getmetatable(b) then return false end
    for k, v in pairs(a) do if not same(v, b[k], marked) then return false end end
    for k in pairs(b) do if a[k] == nil then return false end end
    return true
  end

  it("read the same out of what photon writes", function()
    for _ = 1, 3000 do
      local value = array { random_value(4) }
      local text = encode(value)
      local back = decode(text)
      if not same(value, back, true) then error("changed: " .. text) end
      if not same(value, decode(encode(back)), true) then error("changed later: " .. text) end
      if not same(value, cjson.decode(text)) then error("cjson reads otherwise: " .. text) end
    end
  end)

  it("read the same out of what cjson writes", function()
    for _ = 1, 3000 do
      local text = cjson.encode { random_value(4) }
      local value, problem = decode(text)
      if not same(cjson.decode(text), value) then error(("%s: %s"):format(problem or "otherwise", text)) end
    end
  end)
end)

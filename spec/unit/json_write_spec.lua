-- text/json, the writing half: strings and numbers.
local ffi = require "ffi"
local cjson = require "cjson"
local json_text = require "spec.unit.json_text"
local rooms = require "spec.unit.rooms"

local OK, BAD_UTF8 = json_text.OK, json_text.BAD_UTF8
local new_random, write_string, write_number = json_text.new_random, json_text.write_string, json_text.write_number
local read, read_one_string, validate = json_text.read, json_text.read_one_string, json_text.validate

describe("json_write_string", function()
  it("escapes what must be escaped and nothing else", function()
    local result, text = write_string 'a"b\\c/d\b\f\n\r\t\0\1\31\127é€𝄞'
    assert.equal(OK, result)
    assert.equal([["a\"b\\c/d\b\f\n\r\t\u0000\u0001\u001f]] .. '\127é€𝄞"', text)
    assert.equal('""', select(2, write_string ""))
  end)

  it("finds every special byte at every place of every length", function()
    for length = 1, 20 do
      for place = 1, length do
        for _, special in ipairs { "\0", "\31", '"', "\\", "\n", "\127", "é", "~", " " } do
          local s = ("x"):rep(place - 1) .. special .. ("y"):rep(length - place)
          local result, text = write_string(s)
          assert.equal(OK, result)
          assert.equal(s, cjson.decode("[" .. text .. "]")[1])
          assert.equal(s, read_one_string(text))
        end
        local bad = ("x"):rep(place - 1) .. "\255" .. ("y"):rep(length - place)
        assert.equal(BAD_UTF8, (write_string(bad)))
      end
    end
  end)

  it("comes back for random bytes", function()
    local random = new_random(7)
    for _ = 1, 2000 do
      local bytes = {}
      for i = 1, random(60) do bytes[i] = string.char(random(128)) end
      local s = table.concat(bytes)
      local _, text = write_string(s)
      assert.equal(s, cjson.decode("[" .. text .. "]")[1])
      assert.equal(s, read_one_string(text))
    end
  end)

  local GOOD = { "\194\128", "\223\191", "\224\160\128", "\237\159\191", "\238\128\128", "\239\191\191",
    "\240\144\128\128", "\244\143\191\191" }
  local BAD = { "\128", "\191", "\192\128", "\193\191", "\194", "\194\65", "\194\194", "\224\159\191", "\224\160",
    "\225\128", "\225\128\65", "\237\160\128", "\237\191\191", "\240\143\191\191", "\240\144\128", "\241\128\128\192",
    "\244\144\128\128", "\245\128\128\128", "\254", "\255" }

  it("takes the first and last sequence of each length as they are", function()
    for _, s in ipairs(GOOD) do
      local result, text = write_string(s)
      assert.equal(OK, result)
      assert.equal('"' .. s .. '"', text)
      assert.equal(s, read_one_string(text))
    end
  end)

  it("refuses what is not UTF-8 and appends nothing", function()
    for _, s in ipairs(BAD) do
      for _, around in ipairs { "", "long enough for the fast path \n" } do
        local result, text = write_string(around .. s .. around, "before")
        assert.equal(BAD_UTF8, result)
        assert.equal('"before"', text)
        assert.equal("invalid UTF-8", (validate('"' .. around:gsub("\n", "") .. s .. '"')))
      end
    end
  end)

  it("appends nothing without memory", function()
    local hard = rooms.slice(("\1"):rep(1000))
    local failed = rooms.fail_each(function()
      local buf = rooms.buf()
      local result = rooms.c.json_write_string(buf, hard)
      if result ~= OK then
        assert.equal(json_text.NO_MEMORY, result)
        assert.equal(0, tonumber(buf.len))
      end
      return result == OK
    end)
    assert.truthy(failed >= 2)
  end)
end)

describe("json_write_number", function()
  it("writes the shortest text", function()
    local CASES = {
      [0] = "0", [1] = "1", [-1] = "-1", [10] = "10", [0.1] = "0.1", [-1.5] = "-1.5", [1 / 3] = "0.3333333333333333",
      [100.25] = "100.25", [1e15] = "1000000000000000", [2 ^ 53] = "9007199254740992",
      [-2 ^ 53] = "-9007199254740992", [2 ^ 53 + 2] = "9007199254740994", [1e20] = "100000000000000000000",
      [1e21] = "1e21", [1.5e21] = "1.5e21", [1e-6] = "0.000001", [1e-7] = "1e-7", [1.25e-7] = "1.25e-7",
      [1e100] = "1e100", [5e-324] = "5e-324", [2 ^ -44] = "5.684341886080802e-14",
      [1.7976931348623157e308] = "1.7976931348623157e308", [2.2250738585072014e-308] = "2.2250738585072014e-308",
      [0.30000000000000004] = "0.30000000000000004", [1732983019.123] = "1732983019.123",
    }
    for value, text in pairs(CASES) do assert.equal(text, write_number(value)) end
    assert.equal("-0", write_number(-0.0))
  end)

  local function digits_of(text)
    local digits = text:gsub("e.*", ""):gsub("[^0-9]", ""):gsub("^0+", ""):gsub("0+$", "")
    return #digits
  end

  -- The least precision of printf's that reads back. It rounds to nearest, so one digit fewer than
  -- printf needs is possible, one more never.
  local function needed_digits(value)
    for precision = 1, 17 do
      if tonumber(("%%.%dg"):format(precision):format(value)) == value then return precision end
    end
  end

  it("reads back the same and is never longer than needed", function()
    local random, bits = new_random(11), ffi.new "union { double d; uint16_t u[4]; }"
    local function check(value)
      local text = write_number(value)
      if tonumber(text) ~= value then error(("%.17g is not %s"):format(value, text)) end
      if digits_of(text) > needed_digits(value) then error(text .. " could be shorter") end
    end
    for i = 1, 4000 do
      for j = 0, 3 do bits.u[j] = random(65536) end
      if bits.d - bits.d == 0 then check(bits.d) end
      check(random(2147483647) / 10 ^ random(12))
      check(i / 1000)
    end
    for exponent = -1074, 1023 do check(2 ^ exponent) end
  end)

  it("does not listen to the locale", function()
    local before = os.setlocale(nil, "numeric")
    local found
    for _, name in ipairs { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE", "fr_FR" } do
      found = found or os.setlocale(name, "numeric")
    end
    if not found then return pending "no locale with a decimal comma is installed" end
    local text, tokens = write_number(0.1), read "[1.5, 0.1234567890123456789]"
    os.setlocale(before, "numeric")
    assert.equal("0.1", text)
    assert.equal("[ 1.5 0.12345678901234568 ] end", tokens)
  end)
end)

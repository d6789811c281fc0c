-- text/json, the reading half: tokens and validation.
local ffi = require "ffi"
local cjson = require "cjson"
local json_text = require "spec.unit.json_text"
local rooms = require "spec.unit.rooms"

local C = rooms.c
local new_random = json_text.new_random
local read, read_one_string, validate = json_text.read, json_text.read_one_string, json_text.validate

describe("json_read_next", function()
  it("gives the tokens of a text", function()
    assert.equal("{ key:a [ 1 -2.5 true false null { } [ ] ] key: string:x } end",
      (read ' {"a" : [1, -2.5,true,false\n,null, {}, [ ] ],\t"":"x"}\r\n'))
    assert.equal("null end", (read "null"))
    assert.equal("{ key:a 1 key:a 2 } end", (read '{"a":1,"a":2}'))
  end)

  it("unescapes", function()
    assert.equal('"\\/\b\f\n\r\t', read_one_string [["\"\\\/\b\f\n\r\t"]])
    assert.equal("A\0é€𝄞\239\191\191", read_one_string [["\u0041\u0000\u00e9\u20AC\uD834\uDd1e\uffff"]])
    assert.equal("plain é then \n end", read_one_string [["plain é then \n end"]])
    assert.equal("{ key:\n 1 } end", (read [[{"\n":1}]]))
  end)

  it("reads numbers as C does", function()
    local random = new_random(5)
    local texts = { "-0", "0.0", "0e5", "1E5", "1e+5", "1e-5", "4.35", "-0.0e-0", "0.1e1",
      "123456789012345678901234567890",
      "2.2250738585072011e-308", "4.9e-324", "2.4703282292062328e-324", "1e-400", "1.7976931348623158e308",
      "9007199254740993", "9007199254740992.99999999999999999", "18446744073709551615", "18446744073709551616",
      "0." .. ("0"):rep(400) .. "1e400", "1" .. ("0"):rep(400) .. "e-400", "1" .. ("0"):rep(2000) .. "1e-2001",
      -- half way between two doubles, then just above
      "9007199254740993." .. ("0"):rep(900), "9007199254740993." .. ("0"):rep(900) .. "1" }
    for _ = 1, 20000 do
      local digits = {}
      for i = 1, 1 + random(25) do digits[i] = random(10) end
      texts[#texts + 1] = ("%d.%se%d"):format(random(1000), table.concat(digits), random(600) - 300)
    end
    for _, text in ipairs(texts) do
      local expected = ("%.17g end"):format(tonumber(text))
      if read(text) ~= expected then error(text .. " was read as " .. read(text)) end
    end
  end)

  local INVALID = {
    { "", "the text has no end", 0 },
    { "  ", "the text has no end", 2 },
    { "[", "the text has no end", 1 },
    { "[1,", "the text has no end", 3 },
    { '{"a":', "the text has no end", 5 },
    { '{"a"', "':' expected", 4 },
    { "[1,]", "a value was expected", 3 },
    { "[,1]", "a value was expected", 1 },
    { "[1 2]", "',' or ']' expected", 3 },
    { "[1}", "',' or ']' expected", 2 },
    { "{]", "a key was expected", 1 },
    { '{"a":1,}', "a key was expected", 7 },
    { '{"a":1]', "',' or '}' expected", 6 },
    { "{1:2}", "a key was expected", 1 },
    { '{"a" 1}', "':' expected", 5 },
    { "[]]", "something follows the value", 2 },
    { "1 2", "something follows the value", 2 },
    { "]", "a value was expected", 0 },
    { "}", "a value was expected", 0 },
    { ":", "a value was expected", 0 },
    { "tru", "a value was expected", 0 },
    { "[nul]", "a value was expected", 1 },
    { "TRUE", "a value was expected", 0 },
    { "truex", "something follows the value", 4 },
    { "NaN", "a value was expected", 0 },
    { "Infinity", "a value was expected", 0 },
    { "-Infinity", "a digit is missing", 1 },
    { "0x1F", "something follows the value", 1 },
    { "01", "a number must not begin with a zero", 1 },
    { "-01", "a number must not begin with a zero", 2 },
    { "-", "a digit is missing", 1 },
    { "+1", "a value was expected", 0 },
    { ".5", "a value was expected", 0 },
    { "1.", "a digit is missing", 2 },
    { "1.e5", "a digit is missing", 2 },
    { "1e", "a digit is missing", 2 },
    { "1e+", "a digit is missing", 3 },
    { "[1e5.5]", "',' or ']' expected", 4 },
    { "1e999", "the number is too large", 0 },
    { "[-1e400]", "the number is too large", 1 },
    { "1e99999999999999999999", "the number is too large", 0 },
    { "1.7976931348623159e308", "the number is too large", 0 },
    { '"abc', "the string has no end", 4 },
    { '"abc\\"', "the string has no end", 6 },
    { '"\\', "invalid escape", 1 },
    { '"\\x"', "invalid escape", 1 },
    { '"\\u12', "invalid escape", 1 },
    { '"\\u12g4"', "invalid escape", 1 },
    { '"\\U0041"', "invalid escape", 1 },
    { '"\\ud800"', "lone surrogate", 1 },
    { '"a\\udc00"', "lone surrogate", 2 },
    { '"\\ud800\\u0041"', "lone surrogate", 1 },
    { '"\\ud800\\ud800"', "lone surrogate", 1 },
    { '"\\ud834\\udd"', "lone surrogate", 1 },
    { '"a\nb"', "a control character must be escaped", 2 },
    { '"\0"', "a control character must be escaped", 1 },
    { "\239\187\191[]", "byte order mark", 0 },
    { "[\239\187\191]", "a value was expected", 1 },
    { "\0", "a value was expected", 0 },
    { "[1]\0", "something follows the value", 3 },
    { "[\v1]", "a value was expected", 1 },
    { "[1]\194\160", "something follows the value", 3 },
    { "'a'", "a value was expected", 0 },
    { "[1]//x", "something follows the value", 3 },
    { "/**/[1]", "a value was expected", 0 },
  }

  it("refuses what is not JSON, and says why and where", function()
    for _, case in ipairs(INVALID) do
      local _, problem, at = read(case[1])
      assert.same({ case[2], case[3] }, { problem, at }, case[1])
      assert.same({ case[2], case[3] }, { validate(case[1]) }, case[1])
    end
  end)

  it("goes 128 levels deep and no deeper", function()
    for _, pair in ipairs { { "[", "]" }, { '{"a":', "}" } } do
      local function nested(depth, inner) return pair[1]:rep(depth) .. inner .. pair[2]:rep(depth) end
      assert.is_nil((validate(nested(128, "0"))))
      assert.equal("nested too deep", (validate(nested(129, "0"))))
      assert.equal("nested too deep", (validate(pair[1]:rep(100000))))
      assert.is_nil((validate("[" .. (nested(127, "0") .. ","):rep(3) .. "1]")))
    end
  end)

  it("says so when there is no memory, which validating needs none of", function()
    local text = rooms.slice [["\n"]]
    rooms.fail_each(function()
      local r = ffi.new "struct json_reader"
      C.json_read_init(r, text)
      C.json_read_next(r)
      local problem = r.error ~= nil and ffi.string(r.error) or nil
      C.json_read_reset(r)
      if problem then assert.equal("no memory", problem) end
      return not problem
    end)
    assert.equal(0, rooms.fail_each(function() return not validate [["\n"]] end))
  end)

  it("agrees with the validator, and with cjson on what is valid, under random damage", function()
    local random = new_random(3)
    local seed = [[ {"a": [1, -2.5e3, true, "x\u00e9\n\ud834\udd1e é"], "b": {"c": null, "d": []}, "e": 0.125} ]]
    local bytes = [[{}[]",:\u0eE+-.19tfn ]] .. "\0\n\195\169\255"
    local valid = 0
    for _ = 1, 20000 do
      local text = seed
      for _ = 1, 1 + random(3) do
        local from, pick = 1 + random(#text), 1 + random(#bytes)
        text = text:sub(1, from - 1) .. bytes:sub(pick, random(4) == 0 and pick - 1 or pick) .. text:sub(from + 1)
      end
      local _, problem, at = read(text)
      local problem2, at2 = validate(text)
      if problem ~= problem2 or at ~= at2 then error("not agreed on: " .. text) end
      if not problem then
        valid = valid + 1
        if not pcall(cjson.decode, text) then error("cjson refuses " .. text) end
      end
    end
    assert.truthy(valid > 100 and valid < 19000)
  end)
end)

describe("third-party texts", function()
  local PATH = "../shared/cases/json_text.jsonl"

  -- Characters up to U+00FF stand for one byte each.
  local function bytes_of(s)
    return (s:gsub("([\194\195])([\128-\191])", function(a, b)
      return string.char(b:byte() + (a == "\195" and 64 or 0))
    end))
  end

  it("get the verdict they ask for", function()
    local file = io.open(PATH)
    if not file then return pending "the folder with third-party texts is not there" end
    local count = 0
    for line in file:lines() do
      local case = cjson.decode(line)
      local text = bytes_of(table.concat(case.send):match "\r\n\r\n(.*)$")
      local is_valid = validate(text) == nil
      assert.equal(is_valid, read(text):find " ?end$" ~= nil, case.id)
      if case.level ~= "policy" then
        count = count + 1
        assert.equal(case.expect.status[1][1] == 200, is_valid, case.id)
      end
    end
    file:close()
    assert.truthy(count > 0)
  end)
end)

local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c, slice = rooms.c, rooms.slice
local EXAMPLE = 784111777 -- the time of RFC 9110's three examples

local function format(seconds)
  local to = ffi.new "char[29]"
  c.date_format(to, seconds)
  return ffi.string(to, 29)
end

local function parse(text, now)
  local seconds = ffi.new "int64_t[1]"
  if not c.date_parse_at(slice(text), now or EXAMPLE, seconds) then return nil end
  return tonumber(seconds[0])
end

describe("date", function()
  it("formats", function()
    assert.equal("Sun, 06 Nov 1994 08:49:37 GMT", format(EXAMPLE))
    assert.equal("Thu, 01 Jan 1970 00:00:00 GMT", format(0))
    assert.equal("Wed, 31 Dec 1969 23:59:59 GMT", format(-1))
    assert.equal("Tue, 29 Feb 2000 12:00:00 GMT", format(951825600))
    assert.equal("Tue, 19 Jan 2038 03:14:08 GMT", format(2147483648))
  end)

  it("stays within four digits of a year", function()
    assert.equal("Fri, 31 Dec 9999 23:59:59 GMT", format(253402300799))
    assert.equal(format(253402300799), format(9223372036854775807LL))
    assert.equal("Sat, 01 Jan 0000 00:00:00 GMT", format(-9223372036854775807LL))
  end)

  it("formats as the C library does, on many days", function()
    for day = -30000, 60000, 37 do
      local seconds = day * 86400 + day % 86400
      assert.equal(os.date("!%a, %d %b %Y %H:%M:%S GMT", seconds), format(seconds))
      assert.equal(seconds, parse(format(seconds)))
    end
  end)

  it("reads all three forms", function()
    assert.equal(EXAMPLE, parse "Sun, 06 Nov 1994 08:49:37 GMT")
    assert.equal(EXAMPLE, parse "Sunday, 06-Nov-94 08:49:37 GMT")
    assert.equal(EXAMPLE, parse "Sun Nov  6 08:49:37 1994")
    assert.equal(EXAMPLE + 10 * 86400, parse "Wed Nov 16 08:49:37 1994")
  end)

  it("places a two-digit year at most fifty years ahead", function()
    local now = parse "Mon, 30 Nov 2026 16:00:00 GMT"
    local cases = {
      { "Friday, 01-Jan-26 00:00:00 GMT", "01 Jan 2026" }, { "Friday, 01-Jan-27 00:00:00 GMT", "01 Jan 2027" },
      { "Friday, 01-Jan-76 00:00:00 GMT", "01 Jan 2076" }, { "Monday, 30-Nov-76 16:00:00 GMT", "30 Nov 2076" },
      { "Monday, 30-Nov-76 16:00:01 GMT", "30 Nov 1976" }, { "Saturday, 01-Jan-77 00:00:00 GMT", "01 Jan 1977" },
      { "Friday, 31-Dec-99 23:59:59 GMT", "31 Dec 1999" }, { "Saturday, 01-Jan-00 00:00:00 GMT", "01 Jan 2000" },
      { "Tuesday, 29-Feb-28 00:00:00 GMT", "29 Feb 2028" },
    }
    for _, case in ipairs(cases) do
      assert.equal(case[2], format(parse(case[1], now)):sub(6, 16), case[1])
    end
    local later = parse "Mon, 30 Nov 2076 16:00:00 GMT"
    assert.equal("01 Jan 2126", format(parse("Friday, 01-Jan-26 00:00:00 GMT", later)):sub(6, 16))
    assert.equal("01 Jan 2077", format(parse("Friday, 01-Jan-77 00:00:00 GMT", later)):sub(6, 16))
  end)

  it("uses the clock of the system when no time is given", function()
    local seconds = ffi.new "int64_t[1]"
    local year = tonumber(os.date "!%Y")
    local text = ("Monday, 15-Jun-%02d 00:00:00 GMT"):format((year + 49) % 100)
    assert.is_true(c.date_parse(slice(text), seconds))
    assert.equal(tostring(year + 49), format(seconds[0]):sub(13, 16))
  end)

  it("knows leap years and leap seconds", function()
    assert.truthy(parse "Tue, 29 Feb 2000 00:00:00 GMT")
    assert.truthy(parse "Mon, 29 Feb 2024 00:00:00 GMT")
    assert.is_nil(parse "Wed, 29 Feb 2023 00:00:00 GMT")
    assert.is_nil(parse "Thu, 29 Feb 1900 00:00:00 GMT")
    assert.equal(parse "Sun, 01 Jan 2017 00:00:00 GMT", parse "Sat, 31 Dec 2016 23:59:60 GMT")
  end)

  it("refuses everything else", function()
    local wrong = {
      "", " ", "yesterday", "0", "784111777", "Sun", "Sunday", "Sun,", "Sun, ", "Sun, 06 Nov 1994 08:49:37",
      "Sun, 06 Nov 1994 08:49:37 GM", "Sun, 06 Nov 1994 08:49:37 GMT ", " Sun, 06 Nov 1994 08:49:37 GMT",
      "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 +0000", "sun, 06 nov 1994 08:49:37 gmt",
      "Xyz, 06 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
      "Sun, 31 Nov 1994 08:49:37 GMT", "Sun, 32 Dec 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT",
      "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
      "Sun, 06 Nov 1994 8:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT", "Sun, 06-Nov-94 08:49:37 GMT",
      "Sunday, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sunday, 6-Nov-94 08:49:37 GMT",
      "Sun Nov 6 08:49:37 1994", "Sun Nov  6 08:49:37 1994 GMT", "Sun Nov  6 08:49:37 94",
      "Sun, 06 Nov -994 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT\0",
    }
    for _, text in ipairs(wrong) do assert.is_nil(parse(text), text) end
  end)

  it("refuses every prefix of a date", function()
    for _, text in ipairs {
      "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    } do
      for len = 0, #text - 1 do assert.is_nil(parse(text:sub(1, len))) end
    end
    assert.is_false(c.date_parse_at(ffi.new "struct slice", 0, ffi.new "int64_t[1]"))
  end)
end)

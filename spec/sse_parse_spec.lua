-- The parser of event streams that photon.test (and other clients) read with.
local json = require("photon").json
local lib = require "spec.lib"
local sse = require "photon.sse"

-- The case file writes a stream's bytes as code points below 256.
local function bytes_of(text)
  return (text:gsub("[\194\195][\128-\191]", function(pair)
    local high, low = pair:byte(1, 2)
    return string.char((high - 0xC0) * 64 + low - 0x80)
  end))
end

local function parse(pieces)
  local events, comments = {}, {}
  local parser = sse.parser(function(event)
    events[#events + 1] = { type = event.event, data = event.data, id = event.id }
  end, function(text) comments[#comments + 1] = text end)
  for _, piece in ipairs(pieces) do parser:feed(piece) end
  return events, parser, comments
end

local function bytes_alone(text)
  local pieces = {}
  for i = 1, #text do pieces[i] = text:sub(i, i) end
  return pieces
end

local function check(case, pieces)
  local events, parser = parse(pieces)
  assert.same(case.expect.events, events)
  if case.expect.last_id then assert.equal(case.expect.last_id, parser.last_id) end
  if case.expect.retry then assert.equal(case.expect.retry, parser.retry) end
end

describe("sse.parser", function()
  local count = 0
  for line in lib.read("spec/cases/sse_parse.jsonl"):gmatch "[^\n]+" do
    local case = assert(json.decode(line))
    local text = bytes_of(case.stream)
    count = count + 1
    it(case.id .. ": " .. case.why, function()
      check(case, { text })
      check(case, bytes_alone(text))
      for cut = 1, #text - 1 do check(case, { text:sub(1, cut), text:sub(cut + 1) }) end
    end)
  end

  it("has cases", function() assert.truthy(count > 20) end)

  it("drops one byte order mark, at the beginning only", function()
    for _, pieces in ipairs { { "\239\187\191data:x\n\n" }, bytes_alone "\239\187\191data:x\n\n" } do
      assert.same({ { type = "message", data = "x", id = "" } }, (parse(pieces)))
    end
    assert.same({}, (parse { "\239\187\191\239\187\191data:x\n\n" }))
    assert.same({}, (parse { "\n\239\187\191data:x\n\n" }))
  end)

  it("tells an event at the CR that ends it", function()
    local events = parse { "data:x\r\r" }
    assert.equal(1, #events)
    assert.equal(2, #parse { "data:x\r\r", "\ndata:y\r", "\n\r" })
  end)

  it("gives comments, and the retry of an event's own block", function()
    local _, _, comments = parse { ":\n\n: hello\n:  two\n" }
    assert.same({ "", "hello", " two" }, comments)
    local events = sse.parse "retry:5\n\nretry:7\ndata:a\n\ndata:b\n\n"
    assert.equal(7, events[1].retry)
    assert.is_nil(events[2].retry)
  end)
end)

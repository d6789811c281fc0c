local cjson = require "cjson"
local ffi = require "ffi"
local lib = require "spec.lib"
local rooms = require "spec.unit.rooms"

for _, declaration in ipairs {
  "struct sse_record { struct slice type, data, id; };",
  [[struct sse_reader {
    struct buf line, data, type, id;
    int64_t retry;
    size_t max_event;
    uint8_t bom;
    bool is_after_cr, is_told, has_failed;
  };]],
  "void sse_read_init(struct sse_reader *r, size_t max_event);",
  [[int sse_read_next(struct sse_reader *r, const char *bytes, size_t len, size_t *used,
      struct sse_record *record);]],
  "bool sse_read_is_between(const struct sse_reader *r);",
  "void sse_read_reset(struct sse_reader *r);",
} do
  ffi.cdef(declaration)
end

local c, text = rooms.c, rooms.text
local MORE, EVENT, COMMENT, TOO_LARGE, NO_MEMORY = 0, 1, 2, 3, 4

local function new_reader(max_event)
  local r = ffi.gc(ffi.new "struct sse_reader", c.sse_read_reset)
  c.sse_read_init(r, max_event or 1e6)
  return r
end

-- Feeds one piece: adds what is told to `told`, returns the last answer.
local function feed(r, piece, told)
  local bytes, used, record = rooms.slice(piece), ffi.new "size_t[1]", ffi.new "struct sse_record"
  local at, found = 0
  repeat
    found = c.sse_read_next(r, bytes.ptr + at, bytes.len - at, used, record)
    at = at + tonumber(used[0])
    if found == EVENT then
      told.events[#told.events + 1] = { type = text(record.type), data = text(record.data), id = text(record.id) }
    elseif found == COMMENT then
      told.comments[#told.comments + 1] = text(record.data)
    end
  until found ~= EVENT and found ~= COMMENT
  if found == MORE then assert.equal(#piece, at) end
  return found
end

local function parse(pieces, max_event)
  local r, told, found = new_reader(max_event), { events = {}, comments = {} }, MORE
  for _, piece in ipairs(pieces) do
    found = feed(r, piece, told)
    if found ~= MORE then break end
  end
  told.last_id, told.retry = text(r.id), tonumber(r.retry)
  told.is_between = c.sse_read_is_between(r)
  return told, found
end

local function cut_every(stream, size)
  local pieces = {}
  for at = 1, #stream, size do pieces[#pieces + 1] = stream:sub(at, at + size - 1) end
  return pieces
end

-- Case files hold bytes as U+0000 to U+00FF.
local function to_bytes(s)
  return (s:gsub("([\194\195])([\128-\191])", function(lead, rest)
    return string.char((lead:byte() - 192) * 64 + rest:byte() - 128)
  end))
end

local function check(case, pieces)
  local told = parse(pieces)
  assert.same(case.expect.events, told.events)
  if case.expect.last_id then assert.equal(case.expect.last_id, told.last_id) end
  if case.expect.retry then assert.equal(case.expect.retry, told.retry) end
end

describe("sse_read", function()
  local count = 0
  for line in lib.read("spec/cases/sse_parse.jsonl"):gmatch "[^\n]+" do
    local case = cjson.decode(line)
    local stream = to_bytes(case.stream)
    count = count + 1
    it(case.id .. ": " .. case.why, function()
      check(case, { stream })
      check(case, cut_every(stream, 1))
      for cut = 1, #stream - 1 do check(case, { stream:sub(1, cut), stream:sub(cut + 1) }) end
    end)
  end

  it("has cases", function() assert.is_true(count > 20) end)

  local BOM = "\239\187\191"

  it("drops one byte order mark, at the beginning only", function()
    for size = 1, 5 do
      assert.same({ { type = "message", data = "x", id = "" } }, parse(cut_every(BOM .. "data:x\n\n", size)).events)
      assert.same({}, parse(cut_every(BOM .. BOM .. "data:x\n\n", size)).events)
      assert.same({}, parse(cut_every("\n" .. BOM .. "data:x\n\n", size)).events)
      assert.same({}, parse(cut_every("\239\187data:x\n\n", size)).events)
    end
  end)

  it("tells an event at the CR that ends it", function()
    assert.equal(1, #parse { "data:x\r\r" }.events)
    assert.equal(2, #parse({ "data:x\r\r", "\ndata:y\r", "\n\r" }).events)
  end)

  it("tells comments", function()
    assert.same({ "", " hello", "  two" }, parse({ ":\n\n: hello\n:  two\n" }).comments)
  end)

  it("knows whether it stands between events", function()
    for stream, is_between in pairs {
      [""] = true, ["data:x\n\n"] = true, [":\n\n"] = true, ["data:x\n\n:c\n"] = true, ["data:x\r\r"] = true,
      ["data:x\r\n\r\n"] = true, ["id:1\n\n"] = true, [BOM] = true,
      ["d"] = false, ["data:x\n"] = false, ["data:x\n\ndata:y"] = false, ["data:x\n\nevent:y\n"] = false,
      [":c"] = false, ["\239\187"] = false,
    } do
      assert.equal(is_between, parse({ stream }).is_between, stream)
      assert.equal(is_between, parse(cut_every(stream, 1)).is_between, stream)
    end
  end)

  it("refuses what is larger than its limit, and then everything", function()
    local long = ("x"):rep(100)
    for size = 1, 300, 37 do
      assert.equal(TOO_LARGE, select(2, parse(cut_every("data:" .. long .. "\n\n", size), 64)))
      assert.equal(TOO_LARGE, select(2, parse(cut_every(long, size), 64)))
      assert.equal(TOO_LARGE, select(2, parse(cut_every(("data:xxxx\n"):rep(20) .. "\n", size), 64)))
      assert.equal(20, #parse(cut_every(("data:xxxx\n\n"):rep(20), size), 64).events)
    end
    local r, told = new_reader(8), { events = {}, comments = {} }
    assert.equal(TOO_LARGE, feed(r, "data: long line\n", told))
    assert.equal(TOO_LARGE, feed(r, "\ndata:x\n\n", told))
    assert.same({}, told.events)
  end)

  it("fails without memory, and loses nothing of it", function()
    local failed = rooms.fail_each(function()
      local told, found = parse { "event:e\nid:1\ndata:", ("x"):rep(3000), "\ndata:y\n\n" }
      assert.is_true(found == MORE or found == NO_MEMORY)
      assert.equal(found == MORE and 1 or 0, #told.events)
      return found == MORE
    end)
    assert.is_true(failed > 2)
  end)
end)

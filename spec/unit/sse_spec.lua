local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c, slice = rooms.c, rooms.slice

-- What a browser makes of a stream (WHATWG HTML 9.2.6).
local function dispatch(state)
  local data = state.data
  if data ~= "" then
    local kind = state.kind ~= "" and state.kind or "message"
    state.events[#state.events + 1] = { type = kind, data = data:sub(1, -2), id = state.id }
  end
  state.data, state.kind = "", ""
end

local function take_field(state, name, value)
  if name == "event" then
    state.kind = value
  elseif name == "data" then
    state.data = state.data .. value .. "\n"
  elseif name == "id" and not value:find "%z" then
    state.id = value
  elseif name == "retry" and value:find "^%d+$" then
    state.retry = tonumber(value)
  end
end

local function parse(text)
  local state = { events = {}, data = "", kind = "", id = "" }
  text = text:gsub("^\239\187\191", ""):gsub("\r\n", "\n"):gsub("\r", "\n")
  for line in text:gmatch "([^\n]*)\n" do
    local colon = line:find(":", 1, true)
    if line == "" then
      dispatch(state)
    elseif colon ~= 1 then
      take_field(state, line:sub(1, (colon or 0) - 1), colon and line:sub(colon + 1):gsub("^ ", "", 1) or "")
    end
  end
  return state
end

local function event_of(fields)
  local e = ffi.new "struct sse_event"
  for _, name in ipairs { "event", "data", "id", "comment" } do
    if fields[name] then e[name] = slice(fields[name]) end
  end
  e.has_data, e.has_id, e.has_comment = fields.data ~= nil, fields.id ~= nil, fields.comment ~= nil
  e.retry = fields.retry or -1
  return e
end

-- The records as text, or nil and the first refusal.
local function write(list)
  local b = rooms.buf()
  for _, fields in ipairs(list) do
    local e = event_of(fields)
    local problem = c.sse_check(e)
    if problem ~= nil then return nil, ffi.string(problem) end
    assert(c.sse_write(b, e))
  end
  return rooms.text(b)
end

local function write_data(event, data)
  local b = rooms.buf()
  assert(c.sse_write_data(b, event and slice(event) or ffi.new "struct slice", slice(data)))
  return rooms.text(b)
end

-- Each: what is sent, and the events that a client must then see.
local CASES = {
  { "one event", { { data = "hello" } }, { { data = "hello" } } },
  { "two events", { { data = "a" }, { data = "b" } }, { { data = "a" }, { data = "b" } } },
  { "lines", { { data = "a\nb\nc" } }, { { data = "a\nb\nc" } } },
  { "CRLF is one break", { { data = "a\r\nb" } }, { { data = "a\nb" } } },
  { "CR is a break", { { data = "a\rb" } }, { { data = "a\nb" } } },
  { "LF CR are two breaks", { { data = "a\n\rb" } }, { { data = "a\n\nb" } } },
  { "CR CRLF are two breaks", { { data = "a\r\r\nb" } }, { { data = "a\n\nb" } } },
  { "fields forged with CR", { { data = "a\rid: 9\revent: evil\r\rdata: x" } },
    { { data = "a\nid: 9\nevent: evil\n\ndata: x" } } },
  { "fields forged with LF", { { data = "a\n\nevent: evil\ndata: x" } }, { { data = "a\n\nevent: evil\ndata: x" } } },
  { "a break at the end", { { data = "a\n" } }, { { data = "a\n" } } },
  { "CR at the end", { { data = "a\r" } }, { { data = "a\n" } } },
  { "a break at the start", { { data = "\na" } }, { { data = "\na" } } },
  { "nothing but a break", { { data = "\n" } }, { { data = "\n" } } },
  { "blank lines inside", { { data = "a\n\n\nb" } }, { { data = "a\n\n\nb" } } },
  { "empty data", { { data = "" } }, { { data = "" } } },
  { "a space in front", { { data = " a" } }, { { data = " a" } } },
  { "two spaces in front", { { data = "  a" } }, { { data = "  a" } } },
  { "a tab in front", { { data = "\ta" } }, { { data = "\ta" } } },
  { "a colon in front", { { data = ": no comment" } }, { { data = ": no comment" } } },
  { "data like a field", { { data = "data: x" } }, { { data = "data: x" } } },
  { "NUL in data", { { data = "a\0b" } }, { { data = "a\0b" } } },
  { "a byte order mark", { { data = "\239\187\191a" } }, { { data = "\239\187\191a" } } },
  { "Unicode's separators", { { data = "a\226\128\168b\194\133c" } }, { { data = "a\226\128\168b\194\133c" } } },
  { "an event name", { { event = "custom event", data = "1" } }, { { type = "custom event", data = "1" } } },
  { "an empty event name", { { event = "", data = "1" } }, { { data = "1" } } },
  { "a name of its event only", { { event = "a", data = "1" }, { data = "2" } },
    { { type = "a", data = "1" }, { data = "2" } } },
  { "an id", { { id = "7", data = "1" }, { data = "2" } }, { { data = "1", id = "7" }, { data = "2", id = "7" } } },
  { "an empty id resets", { { id = "7", data = "1" }, { id = "", data = "2" } },
    { { data = "1", id = "7" }, { data = "2" } } },
  { "an id in UTF-8", { { id = "\230\188\162", data = "1" } }, { { data = "1", id = "\230\188\162" } } },
  { "an id without data", { { event = "x", id = "3" }, { data = "1" } }, { { data = "1", id = "3" } } },
  { "retry alone", { { retry = 1500 } }, {}, 1500 },
  { "retry of zero", { { retry = 0, data = "1" } }, { { data = "1" } }, 0 },
  { "a negative retry is left out", { { retry = -5, data = "1" } }, { { data = "1" } } },
  { "a comment", { { comment = "keepalive" }, { data = "1" } }, { { data = "1" } } },
  { "a comment of lines", { { comment = "a\ndata: evil\n\n" }, { data = "1" } }, { { data = "1" } } },
  { "a comment with CR", { { comment = "a\rdata: evil\r\r" }, { data = "1" } }, { { data = "1" } } },
  { "an empty comment", { { comment = "" }, { data = "1" } }, { { data = "1" } } },
  { "all at once", { { comment = "c", retry = 9, id = "i", event = "e", data = "d\nd" } },
    { { type = "e", data = "d\nd", id = "i" } }, 9 },
}

describe("sse", function()
  for _, case in ipairs(CASES) do
    it("carries " .. case[1], function()
      local expected = {}
      for i, e in ipairs(case[3]) do
        expected[i] = { type = e.type or "message", data = e.data, id = e.id or "" }
      end
      local seen = parse(assert(write(case[2])))
      assert.same(expected, seen.events)
      assert.equal(case[4], seen.retry)
    end)
  end

  it("writes in the simplest form", function()
    assert.equal("event: e\ndata: d\n\n", write_data("e", "d"))
    assert.equal("data: d\n\n", write_data(nil, "d"))
    assert.equal("data: \n\n", write_data("", ""))
    assert.equal("data: a\ndata: b\ndata: \n\n", write_data(nil, "a\r\nb\r"))
    assert.equal("id: 1\ndata: d\n\n", write { { id = "1", data = "d" } })
    assert.equal("retry: 18\n\n", write { { retry = 18 } })
    assert.equal("retry: 9223372036854775807\n\n", write { { retry = 9223372036854775807LL } })
  end)

  it("refuses CR, LF and NUL in names and ids", function()
    for _, bad in ipairs { "\r", "\n", "\0", "a\rb", "long enough for a word\n", "a\0" } do
      assert.truthy(select(2, write { { event = bad, data = "1" } }):find "^event ")
      assert.truthy(select(2, write { { id = bad, data = "1" } }):find "^id ")
    end
    assert.truthy(write { { event = "a b:c\t\127\255", id = " ", data = "1" } })
  end)

  it("finds a break at every place of a line of any length", function()
    for len = 1, 40 do
      for at = 1, len do
        for _, char in ipairs { "\n", "\r" } do
          local data = ("x"):rep(at - 1) .. char .. ("y"):rep(len - at)
          local expected = ("data: %s\ndata: %s\n\n"):format(("x"):rep(at - 1), ("y"):rep(len - at))
          assert.equal(expected, write_data(nil, data))
        end
      end
    end
  end)

  it("takes no other byte for a break", function()
    for byte = 0, 255 do
      if byte ~= 10 and byte ~= 13 then
        for _, before in ipairs { "", "\11\14\9\12", "\138\141\138", ("\11"):rep(9) } do
          local data = before .. string.char(byte):rep(9)
          assert.equal("data: " .. data .. "\n\n", write_data(nil, data))
        end
      end
    end
  end)

  it("carries whatever it is given, both ways alike", function()
    local alphabet, random = { "\r", "\n", "\r\n", "a", ":", " ", "data: ", "id: 1", "\0", "\255", "" }, 5
    for _ = 1, 3000 do
      local parts = {}
      for i = 1, 12 do
        random = random * 16807 % 2147483647
        parts[i] = alphabet[random % #alphabet + 1]
      end
      local data = table.concat(parts)
      local text = write_data("e", data)
      local expected = data:gsub("\r\n", "\n"):gsub("\r", "\n")
      assert.same({ { type = "e", data = expected, id = "" } }, parse(text).events)
      assert.equal(text, (write { { event = "e", data = data } }))
      assert.same({}, parse((write { { comment = data } })).events)
    end
  end)

  it("carries a thousand events in order, through one buffer", function()
    local list, expected = {}, {}
    for i = 1, 1000 do
      list[i] = { data = "d" .. i, id = tostring(i) }
      expected[i] = { type = "message", data = "d" .. i, id = tostring(i) }
    end
    assert.same(expected, parse(write(list)).events)
  end)

  it("allocates at most once and appends nothing when there is no memory", function()
    local data, name = slice(("line\n"):rep(500)), slice "name"
    local e = event_of { event = "name", id = "id", comment = ("c\r"):rep(500), data = ("line\n"):rep(500), retry = 1 }
    for _, step in ipairs {
      function(b) return c.sse_write(b, e) end,
      function(b) return c.sse_write_data(b, name, data) end,
    } do
      local failed = rooms.fail_each(function()
        local b = rooms.buf()
        local ok = step(b)
        assert.is_true(ok or b.len == 0)
        return ok
      end)
      assert.equal(1, failed)
    end
  end)
end)

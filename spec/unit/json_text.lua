-- text/json as its specs use it: Lua strings in, Lua values out.
local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local C = rooms.c
local json_text = {}

local DECLARATIONS = {
  [[struct json_reader {
      struct slice text; size_t at; const char *error; double number;
      struct slice string; struct buf scratch; uint16_t depth; uint8_t expect; uint8_t stack[17]; };]],
  "int json_write_string(struct buf *to, struct slice s);",
  "size_t json_write_number(char *to, double value);",
  "void json_read_init(struct json_reader *r, struct slice text);",
  "int json_read_next(struct json_reader *r);",
  "void json_read_reset(struct json_reader *r);",
  "const char *json_validate(struct slice text, size_t *at);",
}
-- busted loads this anew for each spec file, FFI keeps what it knows.
for _, declaration in ipairs(DECLARATIONS) do
  local ok, message = pcall(ffi.cdef, declaration)
  assert(ok or message:find "attempt to redefine", message)
end

local TOKENS = { [0] = "end", "{", "}", "[", "]", "key", "string", "number", "true", "false", "null", "invalid" }

json_text.OK, json_text.NO_MEMORY, json_text.BAD_UTF8 = 0, 1, 2

-- The same numbers in every run and on every machine.
function json_text.new_random(seed)
  local state = seed
  return function(n)
    state = (state * 16807) % 2147483647
    return state % n
  end
end

-- Calls use(slice) with an exact copy on the heap, so that a sanitizer sees every byte read beside it.
local function with_slice(text, use)
  local bytes = ffi.cast("char *", ffi.C.malloc(#text))
  ffi.copy(bytes, text, #text)
  local slice = ffi.new("struct slice", bytes, #text)
  local a, b, c = use(slice)
  ffi.C.free(bytes)
  return a, b, c
end

-- The result and all text that is there then.
function json_text.write_string(s, before)
  return with_slice(s, function(slice)
    local buf = ffi.new "struct buf"
    if before then with_slice(before, function(b) C.json_write_string(buf, b) end) end
    local result = C.json_write_string(buf, slice)
    local text = ffi.string(buf.ptr, buf.len)
    C.buf_reset(buf)
    return result, text
  end)
end

function json_text.write_number(value)
  local to = ffi.new "char[32]"
  return ffi.string(to, C.json_write_number(to, value))
end

local function read_words(r)
  local words, token = {}
  repeat
    token = TOKENS[C.json_read_next(r)]
    local word = token
    if token == "key" or token == "string" then word = token .. ":" .. rooms.text(r.string) end
    if token == "number" then word = ("%.17g"):format(r.number) end
    words[#words + 1] = word
  until token == "end" or token == "invalid"
  return table.concat(words, " "), token
end

-- The tokens of a text as one line; if it is invalid, also why and where.
function json_text.read(text)
  return with_slice(text, function(slice)
    local r = ffi.new "struct json_reader"
    C.json_read_init(r, slice)
    local words, last = read_words(r)
    local problem = last == "invalid" and ffi.string(r.error) or nil
    local at = tonumber(r.at)
    assert(TOKENS[C.json_read_next(r)] == last, "an end or an error must stay")
    C.json_read_reset(r)
    return words, problem, at
  end)
end

function json_text.read_one_string(text)
  return (json_text.read(text):match "^string:(.*) end$")
end

-- nil for a valid text, else why not; and where reading ended.
function json_text.validate(text)
  return with_slice(text, function(slice)
    local at = ffi.new "size_t[1]"
    local problem = C.json_validate(slice, at)
    return problem ~= nil and ffi.string(problem) or nil, tonumber(at[0])
  end)
end

return json_text

-- The router as FFI sees it: a table of routes that specs fill and ask.
local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c, slice = rooms.c, rooms.slice
local Table = {}
Table.__index = Table

-- busted loads modules anew for each file, but declarations stay.
local ok, message = pcall(ffi.cdef, [[
struct route {
  struct slice method, pattern, place;
  int kind;
  void *target;
  uint32_t index;
  uint64_t max_body;
  struct slice *param_names;
  unsigned param_count;
};
struct router_match { const struct route *route; unsigned param_count; struct slice params[64]; };
struct router *router_new(void);
void router_free(struct router *r);
struct route *router_add(struct router *r, const struct route *route, char *error, size_t size);
bool router_seal(struct router *r);
unsigned router_count(const struct router *r);
const struct route *router_at(const struct router *r, unsigned index);
const struct route *router_find(const struct router *r, struct slice method, struct slice pattern);
int router_match(const struct router *r, int method, struct slice method_name, struct slice path,
                 struct arena *a, struct router_match *m);
size_t router_allow(const struct router *r, struct slice path, struct arena *a, char *to, size_t size);
unsigned router_tree_steps(const struct router *r, struct slice method, struct slice path);
]])
assert(ok or message:find "attempt to redefine", message)

local RESULTS = { [0] = "found", "not found", "other method", "bad path", "no memory" }
local ERROR_SIZE = 1024

function Table.new()
  local router = c.router_new()
  if router == nil then return nil end
  return setmetatable({ router = ffi.gc(router, c.router_free), last_place = 0 }, Table)
end

-- A table of patterns ("/a", for GET, or "POST /a"); a pattern that is refused is an error.
function Table.of(patterns)
  local t = assert(Table.new(), "out of memory")
  for _, pattern in ipairs(patterns) do
    local method, path = pattern:match "^([^/ ]+) (.*)$"
    assert(t:add(method or "GET", path or pattern))
  end
  return t
end

-- true, or nil and the message.
function Table:add(method, pattern, place)
  self.last_place = self.last_place + 1
  local route = ffi.new("struct route", {
    method = slice(method), pattern = slice(pattern),
    place = slice(place or ("app.lua:" .. self.last_place)), max_body = self.last_place,
  })
  local text = ffi.new("char[?]", ERROR_SIZE)
  local added = c.router_add(self.router, route, text, ERROR_SIZE)
  if added == nil then return nil, ffi.string(text) end
  return true
end

function Table:seal()
  return c.router_seal(self.router)
end

function Table:count()
  return c.router_count(self.router)
end

local function describe_route(route)
  if route == nil then return nil end
  return rooms.text(route.method) .. " " .. rooms.text(route.pattern)
end

function Table:at(index)
  return describe_route(c.router_at(self.router, index))
end

function Table:find(method, pattern)
  return describe_route(c.router_find(self.router, slice(method), slice(pattern)))
end

-- What a lookup says, the route as "METHOD PATTERN", and its parameters by name.
function Table:match(method, path, arena)
  local m, name = ffi.new "struct router_match", slice(method)
  arena = arena or rooms.arena()
  local result = RESULTS[c.router_match(self.router, c.message_method(name), name, slice(path), arena, m)]
  if result ~= "found" then return result end
  local params = {}
  assert(m.param_count == m.route.param_count, "names and values differ in number")
  for i = 0, m.param_count - 1 do
    params[rooms.text(m.route.param_names[i])] = rooms.text(m.params[i])
  end
  return result, describe_route(m.route), params
end

-- The pattern that answers a GET, or what the lookup says instead.
function Table:get(path)
  local result, route, params = self:match("GET", path)
  if result ~= "found" then return result end
  return (route:gsub("^GET ", "")), params
end

function Table:allow(path, size)
  local to = ffi.new("char[?]", size or 256)
  return ffi.string(to, c.router_allow(self.router, slice(path), rooms.arena(), to, size or 256))
end

function Table:steps(method, path)
  return c.router_tree_steps(self.router, slice(method), slice(path))
end

return Table

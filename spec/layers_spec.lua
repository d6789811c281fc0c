-- The house plan, checked from the include lines: a file includes only lower floors, or rooms that
-- stand before its own on its floor, and libraries only where they belong.
local lib = require "spec.lib"

-- Every room of a floor, in order. A room's files are NAME.h, NAME.c and NAME_*.[ch]; a part that
-- stands elsewhere than its room is named by itself (task_wait).
local FLOORS = {
  { name = "base", rooms = "slice list mem buf arena payload counters limits log" },
  { name = "text", rooms = "headers message url date mime json sse sse_read http1_guard http1_read http1_write "
    .. "histogram" },
  { name = "wire", rooms = "wheel loop timer conn connector listener file" },
  { name = "http", rooms = "exchange http1 memory" },
  { name = "serve", rooms = "router fixed files compress stream journal channel shared metrics config server" },
  { name = "script", rooms = "embedded library guard json pack vm logging metrics shared task luv offload "
    .. "request result stream channel task_wait vm_slot core app testing" },
  { name = "", rooms = "sockets worker acceptor reload control watch service supervisor bench cmd main" },
}

local LIBRARIES = {
  { headers = "lua.h lauxlib.h lualib.h luajit.h luv/luv.h luv.h", places = { "^script/" } },
  { headers = "uv.h", places = { "^wire/", "^script/", "^[^/]+$" } },
  { headers = "llhttp.h", places = { "^text/http1_read", "^text/http1_guard" } },
}

local floor_of, room_order = {}, {}
for height, floor in ipairs(FLOORS) do
  floor_of[floor.name] = height
  room_order[height] = {}
  local order = 0
  for room in floor.rooms:gmatch "%S+" do
    order = order + 1
    room_order[height][room] = order
  end
end

local function is_in(place, places)
  for _, pattern in ipairs(places) do
    if place:find(pattern) then return true end
  end
  return false
end

-- Where a file stands: its floor and its room's place on it, or nil and what is wrong.
local function locate(path)
  local folder, name = path:match "^(.-)/?([^/]+)%.[ch]$"
  local height = floor_of[folder]
  if not height then return nil, "stands on no floor" end
  local stem = name
  while stem do
    local order = room_order[height][stem]
    if order then return { height = height, order = order, room = stem } end
    stem = stem:match "^(.*)_[^_]*$"
  end
  return nil, ("belongs to no room of floor %d: add its room to FLOORS, in order"):format(height - 1)
end

local function includes_of(text)
  local found = {}
  for mark, target in text:gmatch '#%s*include%s*(["<])([^">\n]+)' do
    found[#found + 1] = { target = target, is_ours = mark == '"' }
  end
  return found
end

local function check_library(path, target)
  for _, library in ipairs(LIBRARIES) do
    if (" " .. library.headers .. " "):find(" " .. target .. " ", 1, true)
      and not is_in(path, library.places) then
      return ("%s includes <%s>, which does not belong there"):format(path, target)
    end
  end
end

local function check_ours(files, path, here, target)
  if not files[target] then
    return ('%s includes "%s", which does not exist (paths begin in server/)'):format(path, target)
  end
  local there, problem = locate(target)
  if not there then return target .. " " .. problem end
  if there.height > here.height then
    return ('%s includes "%s" from a higher floor'):format(path, target)
  end
  if there.height == here.height and there.order > here.order then
    return ('%s includes "%s", a later room of its floor'):format(path, target)
  end
end

local function find_cycle(files)
  local state = {}
  local function visit(path)
    if state[path] == "open" then return path end
    if state[path] then return nil end
    state[path] = "open"
    for _, include in ipairs(includes_of(files[path] or "")) do
      local back = include.is_ours and visit(include.target)
      if back then return path .. " -> " .. back end
    end
    state[path] = "done"
  end
  for path in pairs(files) do
    local cycle = visit(path)
    if cycle then return "a cycle of includes: " .. cycle end
  end
end

-- All breaches of the plan in a set of files: path from server/ -> text.
local function check(files)
  local found = {}
  for path, text in pairs(files) do
    local here, problem = locate(path)
    if not here then found[#found + 1] = path .. " " .. problem end
    for _, include in ipairs(here and includes_of(text) or {}) do
      if include.is_ours then
        found[#found + 1] = check_ours(files, path, here, include.target)
      else
        found[#found + 1] = check_library(path, include.target)
      end
    end
  end
  found[#found + 1] = find_cycle(files)
  table.sort(found)
  return found
end

local function read_server()
  local files = {}
  for _, path in ipairs(lib.files("server", "%.[ch]$")) do
    if not path:find "^tools/" then files[path] = lib.read("server/" .. path) end
  end
  return files
end

describe("the floors of server/", function()
  it("include only downwards", function()
    local files = read_server()
    assert.truthy(files["base/buf.h"], "the sources were not found")
    assert.same({}, check(files))
  end)

  local function refused(files, message)
    local found = table.concat(check(files), "\n")
    assert.truthy(found:find(message, 1, true), "not refused, but: " .. found)
  end

  it("refuse a higher floor", function()
    refused({ ["base/buf.c"] = '#include "text/url.h"', ["text/url.h"] = "" }, "from a higher floor")
  end)

  it("refuse a later room of the same floor", function()
    refused({ ["base/slice.h"] = '# include "base/buf.h"', ["base/buf.h"] = "" }, "a later room")
  end)

  it("refuse libraries where they do not belong", function()
    refused({ ["serve/stream.c"] = "#include <lua.h>" }, "<lua.h>")
    refused({ ["http/http1.c"] = "#include <uv.h>" }, "<uv.h>")
    refused({ ["http/http1.c"] = "#include <llhttp.h>" }, "<llhttp.h>")
    assert.same({}, check { ["wire/conn.c"] = "#include <uv.h>", ["script/vm.c"] = "#include <lua.h>" })
  end)

  it("refuse files without a room, and includes of nothing", function()
    refused({ ["base/strange.c"] = "" }, "no room of floor 0")
    refused({ ["elsewhere/a.c"] = "" }, "no floor")
    refused({ ["base/buf.c"] = '#include "buf.h"' }, "does not exist")
  end)

  it("refuse cycles within a room", function()
    refused({ ["base/buf.h"] = '#include "base/buf_more.h"', ["base/buf_more.h"] = '#include "base/buf.h"' },
      "a cycle of includes")
  end)

  it("take a room's parts for the room", function()
    assert.same({}, check { ["text/http1_read_body.c"] = '#include "text/http1_read.h"\n#include <llhttp.h>',
      ["text/http1_read.h"] = "" })
  end)
end)

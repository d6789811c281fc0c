-- Files and functions stay small enough to be read at a sitting, and names say something.
local lib = require "spec.lib"

local FILE_LINES, FUNCTION_LINES, README_LINES = 350, 60, 150
local EMPTY_NAMES = { util = true, utils = true, common = true, misc = true, helper = true, helpers = true }

local function count_lines(text)
  local _, count = text:gsub("\n", "")
  return count
end

-- Functions over the limit. A body begins with a brace that ends an unindented line, or stands alone
-- there, after a line with parameters; it ends with the next unindented brace.
local function long_functions(path, text)
  local found, line, start, head, before = {}, 0, nil, nil, ""
  for row in text:gmatch "([^\n]*)\n" do
    line = line + 1
    local is_head = row:find "^[%a_].*%)%s*{%s*$"
    if not start and (row == "{" or is_head) then
      start, head = line, is_head and row or before
    elseif start and row:find "^}" then
      if line - start + 1 > FUNCTION_LINES then
        found[#found + 1] = ("%s:%d: %s: %d lines"):format(path, start, head, line - start + 1)
      end
      start = nil
    end
    before = row
  end
  return found
end

local function check_file(path, text)
  local found = {}
  local name = path:match "([^/]+)%.%w+$"
  if EMPTY_NAMES[name] then found[1] = path .. ": a name that says nothing" end
  if not path:find "%.h$" and count_lines(text) > FILE_LINES then
    found[#found + 1] = ("%s: %d lines"):format(path, count_lines(text))
  end
  if path:find "%.c$" and ("\n" .. text):find "\n%s*extern%s" then
    found[#found + 1] = path .. ": extern belongs into a header"
  end
  if path:find "%.[ch]$" then
    for _, problem in ipairs(long_functions(path, text)) do found[#found + 1] = problem end
  end
  return found
end

local function check_folder(folder, pattern, all)
  for _, path in ipairs(lib.files(folder, pattern)) do
    path = folder .. "/" .. path
    for _, problem in ipairs(check_file(path, lib.read(path))) do all[#all + 1] = problem end
  end
  return all
end

describe("sizes", function()
  it("of the C files", function()
    assert.truthy(#lib.files("server", "%.c$") > 0, "the sources were not found")
    local found = {}
    for _, folder in ipairs { "server", "bench", "spec" } do check_folder(folder, "%.[ch]$", found) end
    assert.same({}, found)
  end)

  it("of the Lua files", function()
    local found = check_folder("lua", "%.lua$", {})
    for _, folder in ipairs { "apps", "spec", "bench" } do check_folder(folder, "%.lua$", found) end
    assert.same({}, found)
  end)

  it("of the README", function()
    assert.truthy(count_lines(lib.read "README.md") <= README_LINES)
  end)

  it("are refused when too large", function()
    local body = ("    x++;\n"):rep(60)
    assert.equal(1, #check_file("a/b.c", "int f(void)\n{\n" .. body .. "}\n"))
    assert.equal(1, #check_file("a/b.c", "int f(void) {\n" .. body .. "}\n"))
    assert.equal(0, #check_file("a/b.c", "int f(void)\n{\n}\n\nint g(void)\n{\n}\n"))
    assert.equal(1, #check_file("a/b.c", ("int x;\n"):rep(351)))
    assert.equal(1, #check_file("a/b.lua", ("x()\n"):rep(351)))
    assert.equal(0, #check_file("a/b.c", ("int x;\n"):rep(350)))
  end)

  it("and names and externs are refused", function()
    assert.equal(1, #check_file("a/util.h", ""))
    assert.equal(1, #check_file("a/b.c", "#include <x.h>\nextern int x;\n"))
    assert.equal(0, #check_file("a/b.h", "extern int x;\n"))
  end)
end)

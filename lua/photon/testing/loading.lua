-- loading: runs an app's files for a spec: with globals of its own, with fresh instances of the
-- modules that lie in its folder, and with those that the spec replaces.

local core = require "photon.core"
local loader = require "photon.loader"

local M = {}

local PATTERNS = { "%s/?.lua", "%s/?/init.lua", "%s/lua_modules/?.lua", "%s/lua_modules/?/init.lua",
  "%s/lua_modules/share/lua/5.1/?.lua", "%s/lua_modules/share/lua/5.1/?/init.lua" }
local C_PATTERNS = { "%s/?.so", "%s/lua_modules/?.so", "%s/lua_modules/lib/lua/5.1/?.so" }

local function patterns(list, dir)
  local out = {}
  for i, pattern in ipairs(list) do out[i] = pattern:gsub("%%s", (dir:gsub("%%", "%%%%"))) end
  return table.concat(out, ";")
end

local function exists(path)
  local file = io.open(path, "r")
  if not file then return false end
  local is_file = file:read(0) ~= nil or file:seek "end" == 0
  file:close()
  return is_file
end

-- The app's file and its folder.
local function locate(path, level)
  local file = path:find "%.lua$" and path or path:gsub("/+$", "") .. "/app.lua"
  if not exists(file) then
    error(("there is no app at %s: %s was not found (paths begin where photon test runs)"):format(path, file),
      level + 1)
  end
  return file, file:match "^(.*)/[^/]*$" or "."
end

local function set_path(path, given)
  if (";" .. path .. ";"):find(";" .. given .. ";", 1, true) then return path end
  return given .. ";" .. path
end

-- What the library and the preloaded modules are called is never looked for in the app's folder.
local function is_reserved(name)
  return name == "photon" or name:find "^photon%." ~= nil or package.preload[name] ~= nil
end

local LOADING = {}

-- The app's require: its own instances, the spec's replacements, and everybody's modules.
local function make_require(env, fakes, lua_path, own)
  return function(name)
    if type(name) ~= "string" then error("require takes a name, not " .. type(name), 2) end
    if fakes[name] ~= nil then return fakes[name] end
    if own[name] == LOADING then error(("loop or previous error loading module '%s'"):format(name), 2) end
    if own[name] ~= nil then return own[name] end
    local path = not is_reserved(name) and package.searchpath(name, lua_path)
    if not path then return require(name) end
    local chunk, message = loadfile(path)
    if not chunk then error(("error loading module '%s' from file '%s':\n\t%s"):format(name, path, message), 2) end
    own[name] = LOADING
    local before = package.loaded[name]
    local value = setfenv(chunk, env)(name)
    if value == nil then
      value = package.loaded[name] ~= before and package.loaded[name] or true -- set by module()
    end
    own[name] = value
    package.loaded[name] = value -- so that the spec's require gives the same
    return value
  end
end

-- Globals that the app sets are its own; it sees everybody's.
local function make_env()
  local env = setmetatable({}, { __index = _G })
  env._G = env
  return env
end

local function call(chunk)
  core.test_loading(true)
  local ok, result = xpcall(chunk, core.traceback)
  core.test_loading(false)
  if not ok then error(loader.text(result), 0) end
  return result
end

-- The app of a path, its require, and a function that forgets its modules.
function M.load(path, fakes, level)
  local file, dir = locate(path, level + 1)
  local lua_path, saved, own, env = patterns(PATTERNS, dir), {}, {}, make_env()
  for name, value in pairs(package.loaded) do saved[name] = value end
  package.path = set_path(package.path, lua_path)
  package.cpath = set_path(package.cpath, patterns(C_PATTERNS, dir))
  env.require = make_require(env, fakes, lua_path, own)
  local chunk, message = loadfile(file)
  if not chunk then error(message, 0) end
  local app = call(setfenv(chunk, env))
  return app, env.require, function()
    for name, value in pairs(own) do
      if package.loaded[name] == value then package.loaded[name] = saved[name] end
    end
  end
end

return M

-- finalizer: what scripts run at a collection (__gc of newproxy, ffi.gc, ffi.metatype) must not raise.
-- LuaJIT passes such an error on to whatever runs at that moment: another request's handler, or
-- compiled code and C, which it does not survive. So the functions are wrapped when they are set.

local core = require "photon.core"
local ffi = require "ffi"

local getmetatable, newproxy, pcall = getmetatable, newproxy, pcall
local rawget, rawset = rawget, rawset
local setmetatable, type = setmetatable, type
local debug_setmetatable, ffi_gc, ffi_metatype = debug.setmetatable, ffi.gc, ffi.metatype
local failed = core.failed

-- The wrapper of a function. Values are weak too, for each holds its key.
local wrapped = setmetatable({}, { __mode = "kv" })

local function finalize(fn, object)
  local ok, err = pcall(fn, object)
  if not ok then failed("a finalizer", err) end
end

local function wrap(fn)
  if type(fn) ~= "function" and type(fn) ~= "table" then return fn end
  local wrapper = wrapped[fn]
  if not wrapper then
    wrapper = function(object) pcall(finalize, fn, object) end -- on a full stack `failed` fails, too
    wrapped[fn] = wrapper
    wrapped[wrapper] = wrapper
  end
  return wrapper
end

local function wrap_in(metatable)
  if type(metatable) == "table" and rawget(metatable, "__gc") ~= nil then
    rawset(metatable, "__gc", wrap(rawget(metatable, "__gc")))
  end
  return metatable
end

local watch = {
  __newindex = function(metatable, key, value)
    if key == "__gc" then value = wrap(value) end
    rawset(metatable, key, value)
  end,
}

rawset(_G, "newproxy", function(prototype)
  local proxy = newproxy(prototype)
  if prototype == true then setmetatable(getmetatable(proxy), watch) end
  return proxy
end)

function ffi.gc(object, fn)
  return ffi_gc(object, wrap(fn))
end

function ffi.metatype(ctype, metatable)
  return ffi_metatype(ctype, wrap_in(metatable))
end

rawset(debug, "setmetatable", function(value, metatable)
  return debug_setmetatable(value, wrap_in(metatable))
end)

return { wrap = wrap }

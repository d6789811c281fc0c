-- failure: the text of error values. An app's __tostring runs here, in Lua: inside a C function the
-- time guard could not stop it.

local core = require "photon.core"

local traceback, getmetatable = core.traceback, debug.getmetatable
local pcall, rawget, tostring, type = pcall, rawget, tostring, type

local function text_of(err)
  local mt = getmetatable(err)
  if type(mt) ~= "table" or not rawget(mt, "__tostring") then return nil end
  local ok, text = pcall(tostring, err)
  return ok and type(text) == "string" and text or "(an error object whose __tostring fails)"
end

-- The message handler of every protected call into an app.
function core.traceback(err)
  if type(err) == "string" then return traceback(err) end
  return traceback(err, text_of(err))
end

return core.traceback

-- stream: stream:send as compiled code can call it. A method in C would end a trace at each event.

local core = require "photon.core"
local ffi = require "ffi"

local methods = core.stream_methods
local send = methods.send
local vm = ffi.cast("void *", core.stream_vm)
local append = ffi.cast("int (*)(void *, double, const char *, size_t)", core.stream_append)
local select, type = select, type

-- stream:send(data), stream:send(event, data) → true; nil and "closed". A string most often only joins
-- what is pending; all else is looked at by C.
function methods.send(stream, data, ...)
  if type(data) == "string" and select("#", ...) == 0 and type(stream) == "table" then
    local handle = stream[1]
    if type(handle) == "number" and append(vm, handle, data, #data) ~= 0 then return true end
  end
  return send(stream, data, ...)
end

return methods

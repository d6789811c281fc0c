-- What kind of build the specs run in and start servers of, as it says itself.
local build = {}

local output = assert(io.popen(("'%s' version"):format(os.getenv "PHOTON" or "build/photon")))
local text = output:read "*a"
output:close()

-- Single bytes read and written, a full collection at each crossing into Lua, no compiled Lua.
build.is_hostile = text:find(", hostile", 1, true) ~= nil
build.is_sanitized = text:find(" sanitizer", 1, true) ~= nil

-- ThreadSanitizer keeps a signal back until the thread calls into libc, so that the time guard's may come too late.
build.stops_loops = text:find(", thread sanitizer", 1, true) == nil

-- In place of `it`, for what the time guard must stop. `it` and `pending` are busted's, which only the spec itself
-- sees.
function build.stopping(it, pending)
  if build.stops_loops then return it end
  return function(name) pending(name .. " (ThreadSanitizer keeps the signal back)") end
end

return build

-- What kind of build the specs run in and start servers of, as it says itself.
local build = {}

local output = assert(io.popen(("'%s' version"):format(os.getenv "PHOTON" or "build/photon")))
local text = output:read "*a"
output:close()

-- Single bytes read and written, a full collection at each crossing into Lua, no compiled Lua.
build.is_hostile = text:find(", hostile", 1, true) ~= nil
build.is_sanitized = text:find(" sanitizer", 1, true) ~= nil

-- How many rounds or bytes of a soak such a build is worth: `n`, or a part of it (a 20th).
function build.scaled(n, part)
  return build.is_hostile and math.ceil(n / (part or 20)) or n
end

return build

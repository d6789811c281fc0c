-- What the specs of the C rooms share: the test library, which holds every room that needs neither a
-- loop nor Lua (base, text, serve/router), and the files of the source tree.
local ffi = require "ffi"
local lfs = require "lfs"

local lib = {}
local loaded

-- The test library. Specs declare what they use of it by ffi.cdef.
function lib.load()
  if loaded then return loaded end
  local path = os.getenv "PHOTON_TEST_LIB" or "build/libphoton-test.so"
  if not lfs.attributes(path) then
    error(("%s is not built yet: run `make test`, or `make %s` for this spec alone"):format(path, path), 0)
  end
  loaded = ffi.load(path)
  return loaded
end

function lib.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

-- The paths of all files under a folder whose names match a pattern, sorted, without the folder.
function lib.files(folder, pattern)
  local found = {}
  local function walk(relative)
    for name in lfs.dir(folder .. "/" .. relative) do
      local path = relative .. name
      local mode = name:sub(1, 1) ~= "." and lfs.attributes(folder .. "/" .. path, "mode")
      if mode == "directory" then
        walk(path .. "/")
      elseif mode == "file" and name:find(pattern) then
        found[#found + 1] = path
      end
    end
  end
  if lfs.attributes(folder, "mode") == "directory" then walk "" end
  table.sort(found)
  return found
end

return lib

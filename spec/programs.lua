-- Rooms that need more than FFI gives (a loop, threads) are tested by C programs; each line that one
-- prints becomes a test here.
local programs = {}

local build = os.getenv "PHOTON_BUILD" or "build"

-- The path of a program, which `make test` has built.
function programs.path(name)
  local path = ("%s/spec/programs/%s"):format(build, name)
  local file = io.open(path, "rb")
  if not file then
    error(("%s is not built yet: run `make test`, or `make %s` for this spec alone"):format(path, path), 0)
  end
  file:close()
  return path
end

-- What a program prints, and its exit status.
function programs.run(name, arguments)
  local path = programs.path(name)
  local pipe = assert(io.popen(("timeout 900 '%s' %s 2>&1; echo status $?"):format(path, arguments or "")))
  local text = pipe:read "*a"
  pipe:close()
  return text, tonumber(text:match "status (%d+)\n$")
end

-- A test for each case of the program, and one that it has run to its end. `it` is busted's, which
-- only the spec itself sees.
function programs.define(name, it)
  local text, status = programs.run(name)
  local count = 0
  for line in text:gmatch "[^\n]+" do
    local problem_of, problem = line:match "^not ok (.-): (.*)$"
    local title = line:match "^ok (.*)$" or problem_of
    if title then
      count = count + 1
      it(title, function()
        if problem then error(problem, 0) end
      end)
    end
  end
  it("runs to its end without a fault", function()
    if count == 0 or status ~= 0 then error(text, 0) end
  end)
end

return programs

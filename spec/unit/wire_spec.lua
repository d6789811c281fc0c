-- The rooms of wire need a loop, so C programs test them; each of their lines becomes a test here.
local build = os.getenv "PHOTON_BUILD" or "build"

-- The lines that a program prints, and its exit status.
local function run(name)
  local path = ("%s/spec/programs/%s"):format(build, name)
  local pipe = assert(io.popen(("timeout 300 '%s' 2>&1; echo status $?"):format(path)))
  local text = pipe:read "*a"
  pipe:close()
  return text, tonumber(text:match "status (%d+)\n$")
end

local function define(name)
  local text, status = run(name)
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
    assert.truthy(count > 0 and status == 0, text)
  end)
end

for _, name in ipairs { "wire_timers", "wire_loop", "wire_conn", "wire_conn_end", "wire_listener" } do
  describe(name, function() define(name) end)
end

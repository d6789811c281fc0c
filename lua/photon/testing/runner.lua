-- runner: busted inside the server's own runtime. Each `it`, with its before_each and after_each, is
-- a task and may wait; so are the bodies of files and describes.

local core = require "photon.core"
local clock = require "photon.testing.clock"
local handles = require "photon.testing.handles"
local scope = require "photon.testing.scope"
local task = require "photon.task"

-- Loaded before any spec, so that busted's insulation keeps one instance of each.
require "photon"
require "photon.test"

local find, traceback = string.find, core.traceback

local EXIT = {} -- raised with the code where busted would leave the process

local UNITS = { it = true, describe = true, file = true }

local NAME = "photon test"

local WRONG_USAGE = 2

local failed = 1 -- the exit code of a run that does not succeed

-- In a scope of its own: what goes wrong at its end is an error of the unit.
local function in_scope(run)
  local own = scope.open()
  local ok, err = xpcall(run, core.traceback)
  local problem = own:close()
  if not ok then error(err, 0) end
  if problem then error(problem, 0) end
end

-- Runs as a task of its own. What it raises is raised here.
local function as_task(run)
  local result
  local ok, err = task.spawn(function()
    local done, problem = pcall(in_scope, run)
    if not done then result = { problem } end
  end):join()
  if not ok then error(err, 0) end
  if result then error(result[1], 0) end
end

local function is_overflow(err)
  return type(err) == "string" and find(err, "stack overflow", 1, true) ~= nil
end

local function pack(...)
  return { n = select("#", ...), ... }
end

-- xpcall for busted, whose handler needs more room than a full stack has: it runs when that is empty again.
local function xpcall_with_room(run, handler)
  local is_handled
  local results = pack(xpcall(run, function(err)
    if is_overflow(err) then return traceback(err) end
    is_handled = true
    return handler(err)
  end))
  if results[1] or is_handled then return unpack(results, 1, results.n) end
  return false, handler(traceback(results[2]))
end

-- busted calls `safe` with an element and its whole execution (setup, children, teardown), and inside
-- of that with the element's own function.
local function wrap_safe(busted)
  local safe = setfenv(busted.safe, setmetatable({ xpcall = xpcall_with_room }, { __index = _G }))
  function busted.safe(descriptor, run, element)
    if not UNITS[descriptor] or run == element.run then return safe(descriptor, run, element) end
    return safe(descriptor, function() as_task(run) end, element)
  end
  return busted
end

local function prepare()
  local compatibility = require "busted.compatibility"
  function compatibility.exit(code)
    error({ EXIT, code }, 0)
  end
  local make_core, make_cli = require "busted.core", require "busted.modules.cli"
  package.loaded["busted.core"] = function() return wrap_safe(make_core()) end
  package.loaded["busted.modules.cli"] = function(options)
    local cli = make_cli(options)
    local set_name, parse = cli.set_name, cli.parse
    function cli.set_name(self) return set_name(self, NAME) end
    function cli.parse(self, arguments)
      table.insert(arguments, 1, "--ignore-lua") -- specs run here, whatever Lua .busted names
      local parsed, problem = parse(self, arguments)
      if not parsed then failed = WRONG_USAGE end
      return parsed, problem
    end
    return cli
  end
  return require "busted.runner"
end

local function explain(err)
  io.stderr:write("photon test: ", tostring(err), "\n")
  if type(err) == "table" and err.trace then io.stderr:write(err.trace, "\n") end
  return 1
end

local function run()
  local found, runner = pcall(prepare)
  if not found then
    io.stderr:write("photon test: busted was not found: install it (apt-get install lua-busted, or luarocks ",
      "install busted)\n", tostring(runner), "\n")
    return 1
  end
  local ok, err = xpcall(runner, function(e)
    return type(e) == "table" and e[1] == EXIT and e or core.traceback(e)
  end, { standalone = false })
  if ok then return 0 end
  if type(err) == "table" and err[1] == EXIT then return err[2] == 0 and 0 or failed end
  return explain(err)
end

clock.install()
handles.install()

-- Called by C.
function task.named.test()
  local ok, code = xpcall(run, core.traceback)
  if not ok then code = explain(code) end
  io.stdout:flush()
  core.test_exit(code)
end

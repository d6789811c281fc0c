-- test: what specs that `photon test` runs are written with.
--
--   local test = require "photon.test"
--   local client = test.app("apps/hello")
--   client:get("/users/42").status

local core = require "photon.core"
local apps = require "photon.app"
local channel = require "photon.channel"
local Client = require "photon.testing.client"
local clock = require "photon.testing.clock"
local loader = require "photon.loader"
local loading = require "photon.testing.loading"
local process = require "photon.testing.process"
local scope = require "photon.testing.scope"
local settings = require "photon.settings"
local task = require "photon.task"
local turns = require "photon.testing.turns"

local M = {}

M.clock = { freeze = clock.freeze, advance = clock.advance, release = clock.release }

-- Lets everything run that can run without more bytes or time.
M.settle = turns.settle

local function check_options(options, known, level)
  if options == nil then return {} end
  if type(options) ~= "table" then error("the options are a table, not " .. type(options), level + 1) end
  for name in pairs(options) do
    if not known[name] then error("there is no option " .. tostring(name), level + 1) end
  end
  return options
end

-- The app's settings with those of the spec over them.
local function merge(app, config, level)
  local merged = {}
  for name, value in pairs(app.settings) do merged[name] = value end
  local read, wrong = settings.read(config)
  if not read then error(wrong, level + 1) end
  for name, value in pairs(read) do merged[name] = value end
  return merged
end

-- Compiles and installs the app: its number in C, and its hooks.
local function install(app, config, level)
  local own = app.settings
  if config then app.settings = merge(app, config, level + 1) end
  local id, message = core.test_app(app)
  app.settings = own
  if not id then error(message, 0) end
  return id, { on_start = loader.on_start, on_stop = loader.on_stop, every = loader.every }
end

local function start(hooks)
  channel.start(true)
  for _, fn in ipairs(hooks.on_start) do fn() end
  for _, timer in ipairs(hooks.every) do task.every(timer.seconds, timer.fn) end
end

-- A client for an app: the object, or the path of its folder or file, which is loaded afresh. options:
-- modules = { name = what the app's require gives }, config = settings. The app ends with the
-- describe (or the file) that this is called in.
function M.app(app, options)
  options = check_options(options, { modules = true, config = true }, 2)
  local require_of_app, forget
  channel.forget()
  if type(app) == "string" then core.test_channels_new() end
  if type(app) == "string" then
    app, require_of_app, forget = loading.load(app, options.modules or {}, 2)
  elseif options.modules then
    error("modules are for apps that are loaded by their path", 2)
  end
  if not apps.is_app(app) then error("test.app takes an app or its path, not " .. type(app), 2) end
  local id, hooks = install(app, options.config, 2)
  scope.at_end(function()
    for _, fn in ipairs(hooks.on_stop) do fn() end
    core.test_app_close(id)
    if forget then forget() end
  end)
  start(hooks)
  return setmetatable({ app = id, require = require_of_app }, Client)
end

-- A real server for the app at a path, on a free port: .url, .port, .pid, :log(), :signal(name),
-- :stop(). options: workers, listen, args, env. It ends with the describe that this is called in.
function M.server(path, options)
  if type(path) ~= "string" then
    error("test.server takes the path of an app, for the server is a process of its own, not " .. type(path), 2)
  end
  options = check_options(options, { workers = true, listen = true, args = true, env = true, program = true }, 2)
  local server = process.serve(path, options)
  scope.at_end(function() server:stop() end)
  return server
end

-- How many tasks, streams, exchanges, handles and apps live now.
M.counts = core.test_counts

return M

-- loader: runs an app's file at load and keeps what C takes: the compiled app, or an error that says
-- file, line and message.

local core = require "photon.core"
local channel = require "photon.channel"
local task = require "photon.task"

local traceback, xpcall = core.traceback, xpcall

local loader = { on_start = {}, on_stop = {}, every = {} }

-- What went wrong, as text. A message without a place gets the traceback, which has one; what require
-- puts before a syntax error says nothing more than that.
function loader.text(err)
  if type(err) ~= "table" then return tostring(core.error_value(err)) end
  local message = tostring(err.message or err.detail or err)
    :gsub("^error loading module '[^\n]-' from file '[^\n]-':\n\t", "")
  if message:find("^[^\n]-:%d+:") or not err.trace then return message end
  return message .. "\n" .. err.trace
end

local function compile(app)
  return require("photon.compile")(app)
end

-- Compiles an app object: the result, or nil and the message.
function loader.compile(app, file)
  if not require("photon.app").is_app(app) then
    local kind = type(app) == "table" and "another table" or type(app)
    return nil, ("%s must return the app that photon.app() makes, not %s: its last line is `return app`"):format(file,
      kind)
  end
  local ok, result = xpcall(compile, traceback, app)
  if not ok then return nil, loader.text(result) end
  loader.on_start, loader.on_stop = result.on_start or {}, result.on_stop or {}
  loader.every = result.every or {}
  return result
end

-- Runs loader.file; C then reads loader.compiled or loader.message.
function loader.run()
  local chunk, message = loadfile(loader.file)
  if not chunk then
    loader.message = message
    return
  end
  local ok, app = xpcall(chunk, traceback)
  if not ok then
    loader.message = loader.text(app)
    return
  end
  loader.compiled, loader.message = loader.compile(app, loader.file)
end

-- The files that were loaded, for --watch.
function loader.files()
  local files = { loader.file }
  for name in pairs(package.loaded) do
    local path = type(name) == "string" and package.searchpath(name, package.path)
    if path then files[#files + 1] = path end
  end
  return files
end

-- app:on_start and app:every, in each worker after the swap.
function task.named.start(is_first_worker)
  channel.start(is_first_worker == 1)
  for _, fn in ipairs(loader.on_start) do
    local ok, err = xpcall(fn, traceback)
    if not ok then
      channel.started()
      return core.started(loader.text(err), err == task.cancelled)
    end
  end
  channel.started()
  for _, timer in ipairs(loader.every) do
    if not timer.once or is_first_worker == 1 then task.every(timer.seconds, timer.fn) end
  end
  core.started()
end

-- app:on_stop, when the generation retires.
function task.named.stop()
  channel.stop()
  for _, fn in ipairs(loader.on_stop) do
    local ok, err = xpcall(fn, traceback)
    if not ok and err ~= task.cancelled then core.failed("app:on_stop", err) end
  end
end

return loader

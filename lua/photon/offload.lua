-- offload: blocking Lua on a thread of its own. photon.offload(module, name, ...) calls the function
-- `name` of the module there, waits without holding up the worker, and returns what it returned.

local core = require "photon.core"
local wait = require "photon.wait"

local error, type = error, type

local M = {}

local function finish(ok, ...)
  if ok then return ... end
  error((...), 0)
end

-- Arguments and results are copied: plain values only. An error of the function is raised here, as
-- text. When the caller is cancelled the function runs to its end, and its result is dropped.
function M.call(module, name, ...)
  if type(module) ~= "string" or type(name) ~= "string" then
    error("photon.offload takes a module's name, a function's name, and its arguments", 2)
  end
  local id = core.offload_start(module, name, ...)
  if not wait.quiet() then
    core.offload_drop(id)
    error(wait.cancelled, 0)
  end
  return finish(core.offload_take(id))
end

return M

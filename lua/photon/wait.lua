-- wait: how a task waits. A C function parks the running task first, then wait() suspends it.
--
-- Waits work through the coroutines of users: a coroutine inside a task that waits yields WAIT to
-- whoever resumed it; the resume and wrap below pass that up to the task, and the answer down.

local core = require "photon.core"
require "photon.failure"

local resume, yield, status = coroutine.resume, coroutine.yield, coroutine.status
local isyieldable, create = coroutine.isyieldable, coroutine.create
local error, type = error, type

local WAIT = {} -- what a waiting coroutine yields; nobody else has it

local cancelled = setmetatable({}, { __tostring = function() return "cancelled" end })
core.set_ref("cancelled", cancelled)
core.set_ref("wait", WAIT)
core.set_ref("closed", "closed")

-- The coroutines of tasks.
local tasks = setmetatable({}, { __mode = "k" })

local wait = { tasks = tasks }

-- C resumes a wait with true, or with nil and why: "closed" when the task was cancelled.
local function finish(ok, why)
  if ok then return end
  if why == "closed" then error(cancelled, 0) end
  error(why, 0)
end

-- Suspends the parked task until it is woken. Raises photon.cancelled when it was cancelled.
function wait.raise()
  return finish(yield(WAIT))
end

-- The same, but returns false when it was cancelled and true otherwise.
function wait.quiet()
  local ok, why = yield(WAIT)
  if not ok and why ~= "closed" then error(why, 0) end
  return ok and true or false
end

local pass_up

local function resume_inner(co, ...)
  return pass_up(co, resume(co, ...))
end

local function resume_outer(co, ...)
  if tasks[co] then return false, "cannot resume the coroutine of a task: only the server does that" end
  return pass_up(co, resume(co, ...))
end

function pass_up(co, ok, tag, ...)
  if not ok or tag ~= WAIT then return ok, tag, ... end
  if not isyieldable() then
    core.unpark()
    return resume_inner(co, nil,
      "cannot wait in a coroutine that is resumed inside a C function (gsub, sort, require, …)")
  end
  return resume_inner(co, yield(WAIT))
end

local function unwrap(co, ok, ...)
  if ok then return ... end
  local err = ...
  if type(err) == "string" and status(co) ~= "dead" then error(err, 3) end
  error(err, 0)
end

coroutine.resume = resume_outer

function coroutine.wrap(fn)
  local co = create(fn)
  return function(...) return unwrap(co, resume_inner(co, ...)) end
end

wait.cancelled = cancelled

return setmetatable(wait, { __call = function() return finish(yield(WAIT)) end })

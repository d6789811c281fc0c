-- task: what the running of things side by side looks like to users. photon.sleep, spawn, after,
-- every, timeout, await, defer.

local core = require "photon.core"
local wait = require "photon.wait"

local error, getmetatable, pairs, tostring = error, getmetatable, pairs, tostring
local select, type, unpack, xpcall = select, type, unpack, xpcall
local traceback = core.traceback

local M = { cancelled = wait.cancelled }

-- Lists of photon.defer by task, functions that C calls by name: read by photon.door.
M.defers, M.named = {}, {}

local Task = {}
Task.__index = Task

local function pack(...)
  return { n = select("#", ...), ... }
end

local function check_function(fn, name, level)
  if type(fn) ~= "function" then
    error(name .. " takes a function, not " .. type(fn), level + 1)
  end
end

local function check_seconds(s, name, level)
  if type(s) ~= "number" or s ~= s or s < 0 then
    error(name .. " takes a number of seconds, not " .. tostring(s), level + 1)
  end
end

local function wake_joiners(t)
  local joiners = t.joiners
  if not joiners then return end
  for i = 1, #joiners, 2 do core.wake(joiners[i], joiners[i + 1]) end
  t.joiners = nil
end

-- An error that nobody joins is logged; one who joins later still gets it. That of a full stack, which
-- is text, is known in this slice only.
local function fail(t)
  local err = t.values[1]
  if type(err) == "string" then err = core.error_value(err) end
  t.values[1] = err
  if not t.joiners and not t.is_quiet and err ~= wait.cancelled then core.failed("task", err) end
end

local function done(t, ok, ...)
  t.is_done, t.ok = true, ok
  t.values = pack(...)
  if not ok then fail(t) end
  wake_joiners(t)
end

-- Runs the task's function; called by the door. One that was cancelled before it began does not begin,
-- unless it is a function of on_close.
function M.run(t, is_cancelled)
  if is_cancelled and not t.is_closer then return done(t, false, wait.cancelled) end
  return done(t, xpcall(t.fn, traceback, unpack(t.args, 1, t.args.n)))
end

-- The coroutine of the task was lost, what it was running cannot be known any more.
function M.lost(t)
  t.is_quiet = true -- C has logged why
  done(t, false, "the task was stopped")
end

local function start(is_detached, fn, ...)
  local t = setmetatable({ fn = fn, args = pack(...) }, Task)
  t[1], t[2] = core.spawn(t, is_detached)
  if not t[1] then error("too many tasks (max_tasks)", 3) end
  return t
end

-- Runs fn(...) as a task of its own, beside the caller, from the next turn on. A task spawned by a
-- request ends with it, unless it is detached.
function M.spawn(options, fn, ...)
  if type(options) == "table" then
    for name in pairs(options) do
      if name ~= "detached" then
        error(("photon.spawn: there is no option %s; did you mean detached?"):format(tostring(name)), 2)
      end
    end
    check_function(fn, "photon.spawn", 2)
    return start(options.detached and true or false, fn, ...)
  end
  check_function(options, "photon.spawn", 2)
  if fn == nil and select("#", ...) == 0 then return start(false, options) end
  return start(false, options, fn, ...)
end

local function check_task(self, name)
  if getmetatable(self) ~= Task then error(("task:%s is called with a colon, on a task"):format(name), 3) end
end

-- Ends the task: its present wait raises photon.cancelled, and so does every later one.
function Task:cancel()
  check_task(self, "cancel")
  core.cancel(self[1], self[2])
end

Task.stop = Task.cancel

-- Waits for the end of the task: true and what its function returned, or nil and the error.
function Task:join()
  check_task(self, "join")
  if core.current() == self[1] then error("a task cannot wait for its own end", 2) end
  while not self.is_done do
    core.park("task:join")
    local joiners = self.joiners or {}
    self.joiners = joiners
    joiners[#joiners + 1], joiners[#joiners + 2] = core.current()
    wait()
  end
  if self.ok then return true, unpack(self.values, 1, self.values.n) end
  return nil, core.error_value(self.values[1])
end

-- Suspends the running task for that many seconds.
function M.sleep(seconds)
  core.sleep(seconds)
  wait()
end

-- Runs fn once, `seconds` from now; :stop() prevents it.
function M.after(seconds, fn)
  check_seconds(seconds, "photon.after", 2)
  check_function(fn, "photon.after", 2)
  return start(false, function()
    M.sleep(seconds)
    return fn()
  end)
end

local function run_every(seconds, fn)
  while true do
    M.sleep(seconds)
    local ok, err = xpcall(fn, traceback)
    if not ok then
      if err == wait.cancelled then error(err, 0) end
      core.failed("photon.every", err)
    end
  end
end

-- Runs fn every `seconds`, the next pause beginning when it returns. An error is logged and does not
-- end it; :stop() does.
function M.every(seconds, fn)
  if type(seconds) ~= "number" or seconds <= 0 or seconds ~= seconds then
    error("photon.every takes a number of seconds above 0, not " .. tostring(seconds), 2)
  end
  check_function(fn, "photon.every", 2)
  return start(false, run_every, seconds, fn)
end

-- Runs fn(...) for at most `seconds`: true and its results, or nil, "timeout" (it is cancelled then).
-- An error of fn is raised.
function M.timeout(seconds, fn, ...)
  check_seconds(seconds, "photon.timeout", 2)
  check_function(fn, "photon.timeout", 2)
  local t = start(false, fn, ...)
  t.is_quiet = true
  local alarm = M.after(seconds, function()
    t.is_late = true
    t:cancel()
  end)
  alarm.is_quiet = true
  local results = pack(xpcall(t.join, traceback, t))
  alarm:cancel()
  if not results[1] then
    t:cancel()
    error(results[2], 0)
  end
  if results[2] then return unpack(results, 2, results.n) end
  if t.is_late and t.values[1] == wait.cancelled then return nil, "timeout" end
  error(t.values[1], 0)
end

-- Bridges a callback interface: fn(resume, on_cancel) starts the work; the wait ends when resume is
-- called, and returns what that was given. on_cancel(f) names what undoes the work if the wait is
-- cancelled.
function M.await(fn)
  check_function(fn, "photon.await", 2)
  core.park("photon.await")
  local id, serial = core.current()
  core.unpark()
  local results, undo
  local function resume(...)
    if results then return false end
    results = pack(...)
    core.wake(id, serial)
    return true
  end
  fn(resume, function(f) undo = f end)
  while not results do
    core.park("photon.await")
    if not wait.quiet() then
      results = pack()
      if undo then undo() end
      error(wait.cancelled, 0)
    end
  end
  return unpack(results, 1, results.n)
end

-- fn runs when the running task ends, however it ends; the last deferred first.
function M.defer(fn)
  check_function(fn, "photon.defer", 2)
  local id = core.has_defers()
  local list = M.defers[id]
  if not list then
    list = {}
    M.defers[id] = list
  end
  list[#list + 1] = fn
end

local closers = {}

-- fn runs when the exchange of the handle is over; at once when it is already.
function M.on_close(handle, fn)
  check_function(fn, "on_close", 3)
  if not core.has_closers(handle) then
    start(true, fn).is_closer = true
    return
  end
  local list = closers[handle]
  if not list then
    list = {}
    closers[handle] = list
  end
  list[#list + 1] = fn
end

function M.named.closed(handle)
  local list = closers[handle] or {}
  closers[handle] = nil
  for i = 1, #list do
    local ok, err = xpcall(list[i], traceback)
    if not ok and err ~= wait.cancelled then core.failed("on_close", err) end
  end
end

return M

-- door: the body of every task's coroutine. It is resumed by C with a task, asks what is to be
-- done, does it protected, and yields until it is given the next task. C calls the functions of
-- `named` by name.

local chain = require "photon.chain"
local core = require "photon.core"
local task = require "photon.task"
local wait = require "photon.wait"

require "photon.finalizer"
require "photon.load"
require "photon.stream"

local begin, finish, reply, traceback = core.begin, core.finish, core.reply, core.traceback
local stream_begin, stream_finish = core.stream_begin, core.stream_finish
local failed, cancelled = core.failed, task.cancelled
local collectgarbage, type, xpcall, yield = collectgarbage, type, xpcall, coroutine.yield
local running = coroutine.running
local defers, tasks = task.defers, wait.tasks

-- An app that called these would confuse C.
core.begin, core.finish, core.set_ref = nil, nil, nil

local REQUEST, CALL, NAMED = 1, 2, 3 -- enum task_kind of server/script/task.h

function core.stream_methods.on_close(stream, fn)
  task.on_close(stream[1], fn)
end

local door = {}
local named = task.named

-- Each is taken off before it runs: when the coroutine is lost there, another goes on with the rest.
local function run_defers(list)
  while true do
    local n = #list
    local fn = list[n]
    if not fn then return end
    list[n] = nil
    local ok, err = xpcall(fn, traceback)
    if not ok then failed("photon.defer", err) end
  end
end

local function end_task(id)
  local list = defers[id]
  if list then
    run_defers(list)
    defers[id] = nil
  end
  finish()
end

local answer

-- The reply for a stream that could not begin, on_error's where there is one.
local function answer_error(err, on_error, req)
  if not on_error or err == cancelled then return reply(false, err) end
  return answer(req, reply(true, chain.fail(err, on_error, req)))
end

-- The handler has returned a stream: its function runs in the same task. An error before the head
-- has left still gets a reply of its own; later the stream ends as broken.
local function run_stream(spec, fn, status, headers, on_error, req)
  local ok, stream = xpcall(stream_begin, traceback, status, spec, headers)
  if not ok then return answer_error(stream, on_error, req) end
  if not stream then return end
  local done, err = xpcall(fn, traceback, stream, req)
  if done then return stream_finish(stream, true) end
  if err ~= cancelled and not core.stream_can_answer(stream) then failed("stream", err) end
  if core.stream_can_answer(stream) then
    core.stream_drop(stream)
    return answer_error(err, on_error, req)
  end
  stream_finish(stream, false)
end

-- What is no function of the app serves itself: subscriptions, answers that can be resumed.
local function run_special(special, spec, status, headers, req)
  local ok, err = xpcall(special.serve, traceback, special, spec, status, headers, req)
  if not ok then reply(false, err) end
end

function answer(req, spec, fn, status, headers, on_error)
  if type(fn) == "table" then return run_special(fn, spec, status, headers, req) end
  if fn then run_stream(spec, fn, status, headers, on_error, req) end
end

local function run(id, kind, fn, a, b, c)
  if kind == REQUEST then
    if b then answer(a, reply(xpcall(fn, traceback, a, b, c)))
    else answer(a, reply(xpcall(fn, traceback, a))) end
  elseif kind == CALL then
    task.run(fn, a)
  elseif kind == NAMED then
    local ok, err = xpcall(named[fn], traceback, a, b)
    if not ok and err ~= cancelled then failed(fn, err) end
  elseif fn then -- the coroutine of this task was lost
    task.lost(fn)
  end
  return end_task(id)
end

function door.body(id)
  tasks[running()] = true
  while true do
    run(id, begin(id))
    id = yield()
  end
end

-- After a slice that has met lua_memory.
function door.collect()
  collectgarbage()
end

return door

-- Fires case files at a live server, many cases at once. A case is a table of a .jsonl file:
--   id      its name, `why` says what it is about
--   send    parts: a text (U+0000 to U+00FF, one byte each), { rep = { text, n } }, { pause = seconds },
--           { await = 100 } (until that interim reply has come), { half_close = true }
--   methods methods of the requests where the text does not tell
--   expect  one outcome or { any_of = { outcome, … } }; see spec/raw_check.lua
local check = require "spec.raw_check"
local cjson = require "cjson"
local replies = require "spec.replies"
local socket = require "spec.socket"

local raw = {}

local AT_ONCE = 48      -- cases that run side by side
local QUIET = 0.25      -- seconds without a byte after which nothing more is expected
local ALIVE = "GET / HTTP/1.1\r\nHost: photon.test\r\n\r\n"

-- Case files hold bytes as U+0000 to U+00FF.
local function to_bytes(text)
  return (text:gsub("([\194\195])([\128-\191])", function(lead, rest)
    return string.char((lead:byte() - 192) * 64 + rest:byte() - 128)
  end))
end

-- The cases of a file; nil when there is none.
function raw.read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local cases = {}
  for line in file:lines() do cases[#cases + 1] = cjson.decode(line) end
  file:close()
  return cases
end

-- Everything below runs in a coroutine for each case, which yields how long it wants to wait and for
-- what, and is resumed when its socket is ready or the time is over.
local function wait(s, seconds, events)
  coroutine.yield { socket = s, events = events or socket.reading, limit = socket.now() + seconds }
end

local function receive(s, seconds)
  if s.is_closed then return false end
  wait(s, seconds)
  return s:try_receive()
end

local function send_text(s, text)
  local from, limit = 1, socket.now() + socket.patience
  while from <= #text do
    local n = s:try_send(text, from)
    if not n or socket.now() > limit or s.is_closed then return false end
    from = from + n
    if n == 0 then
      wait(s, 0.2, socket.reading + socket.writing)
      s:try_receive()
    end
  end
  return true
end

local function pause(s, seconds)
  local limit = socket.now() + seconds
  while socket.now() < limit and not s.is_closed do receive(s, limit - socket.now()) end
end

-- Waits for an interim reply; false when a final one came instead.
local function await(s, status)
  local limit = socket.now() + socket.patience
  while socket.now() < limit and not s.is_closed do
    if replies.read(s.received, {}, false)[1] then return false end
    if s.received:find((" %d "):format(status), 1, true) then return true end
    receive(s, limit - socket.now())
  end
  return not replies.read(s.received, {}, false)[1]
end

-- False when the peer went, or answered before it was asked for more.
local function send_part(s, part)
  if type(part) == "string" then return send_text(s, to_bytes(part)) end
  if part.rep then return send_text(s, to_bytes(part.rep[1]):rep(part.rep[2])) end
  if part.pause then pause(s, part.pause)
  elseif part.await then return await(s, part.await)
  elseif part.half_close then s:finish()
  else error("a part of an unknown kind") end
  return true
end

local function methods_of(case)
  if case.methods then return case.methods end
  local methods = {}
  for _, part in ipairs(case.send) do
    for line in (type(part) == "string" and part or ""):gmatch "[^\r\n]+" do
      methods[#methods + 1] = line:match "^([A-Z]+) .- HTTP/1"
    end
  end
  return methods
end

-- What came so far against every outcome: nil when one holds, else why not; and whether a clean
-- close is still missing.
local function judge(case, s, methods)
  local list, rest = replies.read(s.received, methods, s.is_closed)
  local reasons, may_close = {}, false
  for _, outcome in ipairs(case.expect.any_of or { case.expect }) do
    local reason = check(outcome, list, rest, s)
    if not reason then return nil, outcome end
    may_close = may_close or outcome.close == true
    reasons[#reasons + 1] = reason
  end
  return table.concat(reasons, "; or "), nil, may_close
end

local function collect(case, s, methods)
  local limit, last = socket.now() + socket.patience, socket.now()
  while not s.is_closed and socket.now() < limit do
    if receive(s, QUIET / 2) then last = socket.now() end
    local why = judge(case, s, methods)
    if socket.now() - last >= QUIET and not why then return end
  end
end

-- The connection must still work after the case.
local function is_usable(s)
  local before = #s.received
  if not send_text(s, ALIVE) then return false end
  local limit = socket.now() + socket.patience
  while socket.now() < limit and not s.is_closed do
    if s.received:find("HTTP/1", before + 1, true) then return true end
    receive(s, limit - socket.now())
  end
  return s.received:find("HTTP/1", before + 1, true) ~= nil
end

local function run(case, s)
  local methods = methods_of(case)
  for _, part in ipairs(case.send) do
    if not send_part(s, part) then break end
  end
  collect(case, s, methods)
  local why, outcome, may_close = judge(case, s, methods)
  if why and may_close and not s.is_closed then
    local limit = socket.now() + socket.patience
    while not s.is_closed and socket.now() < limit do receive(s, 0.2) end
    why, outcome = judge(case, s, methods)
  end
  if not why and outcome.close == false and not is_usable(s) then why = "the connection cannot be used any more" end
  return why
end

local function start(case, port)
  local s, code = socket.connect(port)
  if not s then return { case = case, why = "cannot connect: error " .. code } end
  return { case = case, socket = s, thread = coroutine.create(function() return run(case, s) end) }
end

local function step(runner)
  local ok, wish = coroutine.resume(runner.thread)
  if not ok then error(runner.case.id .. ": " .. wish) end
  if coroutine.status(runner.thread) ~= "dead" then
    runner.wish = wish
    return
  end
  runner.socket:close()
  runner.is_done, runner.why = true, wish
end

local function poll(running)
  local list, soonest = {}, math.huge
  for i, runner in ipairs(running) do
    list[i] = runner.wish
    soonest = math.min(soonest, runner.wish.limit)
  end
  socket.poll(list, soonest - socket.now())
end

-- Runs all cases that send something: a table from their ids to false (passed) or why they failed.
function raw.run(cases, port)
  local results, running, next_case = {}, {}, 1
  while next_case <= #cases or running[1] do
    while #running < AT_ONCE and next_case <= #cases do
      local case = cases[next_case]
      next_case = next_case + 1
      if case.send then
        local runner = start(case, port)
        if runner.thread then step(runner) end
        if runner.thread and not runner.is_done then running[#running + 1] = runner
        else results[case.id] = runner.why or false end
      end
    end
    if running[1] then poll(running) end
    local still, now = {}, socket.now()
    for _, runner in ipairs(running) do
      if runner.wish.ready or now >= runner.wish.limit then step(runner) end
      if runner.is_done then results[runner.case.id] = runner.why or false
      else still[#still + 1] = runner end
    end
    running = still
  end
  return results
end

-- One `it` of busted for each case. `serve` gives the port of a server; all cases run in the first.
function raw.describe(busted, cases, serve)
  local results
  local function result_of(case)
    results = results or raw.run(cases, serve())
    return results[case.id]
  end
  for _, case in ipairs(cases) do
    busted.it(case.id, function()
      local why = result_of(case)
      if why ~= false then error(("%s: %s"):format(case.why, tostring(why)), 0) end
    end)
  end
end

return raw

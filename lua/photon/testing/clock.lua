-- clock: the time of specs. A frozen clock governs os.time, os.date, sleeps, timers, heartbeats and
-- times to live of this process; what waits for a client's bytes does so in real time.

local core = require "photon.core"
local turns = require "photon.testing.turns"

local real_time, real_date = os.time, os.date

local FARTHEST = 1e12 -- seconds; C counts milliseconds in an int64

local M = {}

-- Replaces os.time and os.date; once, before any spec.
function M.install()
  function os.time(...) -- luacheck: ignore 122
    local is_frozen, unix = core.test_clock()
    if is_frozen and (...) == nil then return math.floor(unix) end
    return real_time(...)
  end

  function os.date(format, time) -- luacheck: ignore 122
    local is_frozen, unix = core.test_clock()
    if is_frozen and time == nil then time = math.floor(unix) end
    return real_date(format or "%c", time)
  end
end

-- Stops the clock at `time` (seconds since 1970), or now; a frozen one is set.
function M.freeze(time)
  if time ~= nil and not (type(time) == "number" and math.abs(time) <= FARTHEST) then
    error("test.clock.freeze takes seconds since 1970, not " .. tostring(time), 2)
  end
  core.test_freeze(time)
end

-- Moves the frozen clock on. What comes due runs at its own time, until it waits again.
function M.advance(seconds)
  if type(seconds) ~= "number" or seconds ~= seconds or seconds < 0 then
    error("test.clock.advance takes a number of seconds, not " .. tostring(seconds), 2)
  end
  if not core.test_clock() then error("test.clock.advance: the clock is not frozen", 2) end
  local left = math.ceil(seconds * 1000 - 1e-6)
  turns.settle()
  while true do
    local _, _, step = core.test_clock()
    if not step or step > left then break end
    core.test_advance(step)
    left = left - step
    turns.settle()
  end
  core.test_advance(left)
  turns.settle()
end

-- Lets the clock run again, from the real time.
function M.release()
  core.test_thaw()
end

return M

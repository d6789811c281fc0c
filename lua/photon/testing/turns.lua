-- turns: how specs let the loop go round: once, or until nothing is ready to run.

local core = require "photon.core"
local wait = require "photon.wait"

local QUIET, MOST = 2, 1000 -- quiet turns that make a settled loop; turns before we give up
local SLICE = 0.05 -- seconds

local M = {}

function M.once()
  core.test_turn()
  wait()
end

-- Lets everything run that can run without more bytes or time. False when it did not come to rest.
function M.settle()
  local quiet = 0
  for _ = 1, MOST do
    M.once()
    quiet = core.test_is_busy() and 0 or quiet + 1
    if quiet == QUIET then return true end
  end
  return false
end

-- Waits until `fn` returns something other than nil: that, or nil after `seconds` of real time.
-- `client` is the request that news are waited for. At least one turn is waited. It waits in slices, and
-- what one takes longer than it should does not count: a machine that is held up makes no test fail.
function M.wait_for(client, seconds, fn)
  local left, last, has_waited = seconds, core.test_now(), false
  while true do
    local value, why = fn()
    if value ~= nil then return value, why end
    if left <= 0 then
      if has_waited then return nil end
      M.once()
    else
      core.test_wait(client, math.min(left, SLICE))
      wait()
    end
    local now = core.test_now()
    left, last = left - math.min(now - last, SLICE), now
    has_waited = true
  end
end

return M

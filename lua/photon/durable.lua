-- durable: channels with a log. Opening one, and what is published in it, are waits.

local core = require "photon.core"
local wait = require "photon.wait"

local M = {}

local Channel = core.channel_methods
local publish, finish = Channel.publish, Channel.finish
local is_durable, write, write_end = core.channel_is_durable, core.channel_write, core.channel_write_end

-- What C answers with, or what it has the task wait for.
local function outcome(done, what)
  if done ~= false then return done, what end
  wait()
  return core.channel_outcome(what)
end

-- Gives the channel the log of its options, at load too: what is wrong with the file is told before
-- anything is served. True; or nil and a message.
function M.attach(channel, options)
  local ok, why = outcome(core.channel_attach(channel, options.log, options[1], options[2], options[3], options[4]))
  if ok then return ok end
  local advice = why:find "No such file or directory$" and "; make its folder, or name another log" or ""
  return nil, "its log cannot be used: " .. why .. advice
end

-- publish(data), publish(event, data): the id; or nil and a message. Where the channel has a log, the
-- task waits until the event is on the disk.
function Channel:publish(...)
  if is_durable(self) then return outcome(write(self, ...)) end
  return publish(self, ...)
end

-- A last event, if there is one, then the end.
function Channel:finish(...)
  if not is_durable(self) then return finish(self, ...) end
  local id, why = outcome(write_end(self, ...))
  if id then core.channel_unclaim(self) end
  return id, why
end

return M

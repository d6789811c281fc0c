-- resume: photon.stream({ resume = channel }, fn). The channel stands between the producer and its
-- clients: fn runs once, as a task of its own that outlives whoever asked for it; what it sends is
-- published; every client is a subscriber from the beginning, or from where it left off.

local core = require "photon.core"
local response = require "photon.response"
local task = require "photon.task"
local wait = require "photon.wait"

require "photon.channel" -- which completes the methods of channels

local error, ipairs, pairs, pcall, setmetatable = error, ipairs, pairs, pcall, setmetatable
local tostring, type, xpcall = tostring, type, xpcall
local publish, traceback = core.channel_methods.publish, core.traceback

local FAILED = { message = "the answer could not be completed" }

local EVENT = { event = true, data = true, comment = true, id = true, retry = true }

-- What fn is given in place of a stream.
local Producer = {}
Producer.__index = Producer

-- Lets others run. False when the task was cancelled.
local function give_way(what)
  core.park(what)
  core.wake(core.current())
  return wait.quiet()
end

local function published(self, id, why)
  if id then
    self.has_sent = true
    if core.channel_runs_long() and not give_way "stream:send" then return nil, "closed" end
    return true
  end
  if self.channel:is_finished() then return nil, "closed" end
  error("stream:send: " .. why, 3)
end

-- stream:send(data), stream:send(event, data)
function Producer:send(...)
  return published(self, publish(self.channel, ...))
end

function Producer:event(fields)
  if type(fields) ~= "table" then error("stream:event takes a table, not " .. type(fields), 2) end
  for name in pairs(fields) do
    if not EVENT[name] then
      error(("stream:event: an event has no %s, but event, data, comment"):format(tostring(name)), 2)
    end
  end
  if fields.id ~= nil then error("stream:event: the ids of a stream with resume are those of its channel", 2) end
  if fields.retry ~= nil then error("stream:event: retry of a stream with resume stands in its spec", 2) end
  if fields.data == nil then return self:flush() end
  if fields.event == nil then return published(self, publish(self.channel, fields.data)) end
  return published(self, publish(self.channel, fields.event, fields.data))
end

-- Comments are for one connection, and here there is none.
function Producer:comment()
  return self:flush()
end

function Producer:flush()
  if self.channel:is_finished() then return nil, "closed" end
  return true
end

function Producer.write()
  error("stream:write: a stream with resume has events; use stream:send", 2)
end

function Producer:close()
  self.channel:finish()
end

function Producer:is_open()
  return not self.channel:is_finished()
end

-- fn runs when the production ends, however it ends.
function Producer:on_close(fn)
  if type(fn) ~= "function" then error("on_close takes a function, not " .. type(fn), 2) end
  self.closers[#self.closers + 1] = fn
end

local function close(self)
  for _, fn in ipairs(self.closers) do
    local ok, err = xpcall(fn, traceback)
    if not ok and err ~= wait.cancelled then core.failed("on_close", err) end
  end
end

-- Those who listen are told; they would wait for ever.
local function fail(self)
  self.channel:finish("photon.error", FAILED)
end

-- Whether nobody has been told anything yet, so that the error can be the reply.
local function can_answer(self)
  return not self.has_begun and not self.has_sent and self.channel:subscribers() == 0
end

local function run(self, fn, req)
  task.defer(function() close(self) end)
  local ok, err = xpcall(fn, traceback, self, req)
  if ok then
    self.channel:finish()
  elseif can_answer(self) then
    self.failure = { err }
    core.channel_unclaim(self.channel)
  else
    if err ~= wait.cancelled then core.failed("stream", err) end
    fail(self)
  end
end

local FIELDS = { "method", "path", "target", "params", "query", "headers", "cookies", "ip", "host", "scheme", "id",
  "ctx" }

-- What fn may ask its request for is read while there is one.
local function keep(req)
  for _, name in ipairs(FIELDS) do pcall(function() return req[name] end) end
end

-- Starts fn; when it fails before it has sent anything or waited, that is raised here.
local function produce(channel, fn, req)
  local self = setmetatable({ channel = channel, closers = {} }, Producer)
  keep(req)
  local t = task.spawn({ detached = true }, run, self, fn, req)
  core.channel_keep(channel, t[1], t[2])
  give_way "photon.stream"
  self.has_begun = true
  if self.failure then error(self.failure[1], 0) end
end

local function serve(special, spec, _, headers, req)
  local channel = spec.resume
  if req.method ~= "HEAD" and core.channel_claim(channel) then produce(channel, special.fn, req) end
  core.channel_subscribe({ channel }, special.terms, headers)
end

function response.resumed(spec, fn)
  local terms = { from = "start", heartbeat = spec.heartbeat, retry = spec.retry, type = spec.type }
  return { serve = serve, fn = fn, terms = terms }
end

return { Producer = Producer }

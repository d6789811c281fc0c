-- channel: photon.channel(name, options): broadcast logs that all workers share and that live across
-- reloads. What a channel is in C stands in server/serve/channel.h; here are its options, the reading
-- of it in tasks, and presence. What app:subscribe takes stands in subscription.

local core = require "photon.core"
local durable = require "photon.durable"
local options_of = require "photon.channel_options"
local response = require "photon.response"
local task = require "photon.task"
local wait = require "photon.wait"

local error, ipairs, pairs, tostring, type = error, ipairs, pairs, tostring, type
local getinfo = debug.getinfo

local M = {}

local Channel = core.channel_methods

-- Options -----------------------------------------------------------------------------------------

local MAX_NAME = 128

-- What has been said of channels while the app was loading: { place =, options =, text = } by name.
-- C learns of it when the load has succeeded, so that a load which fails changes nothing.
local declared = {}

-- Where options were given since then, for messages: by handle, and the newest handle of a name.
local places = setmetatable({}, { __mode = "k" })
local newest = setmetatable({}, { __mode = "v" })

-- The first place from there outwards that is Lua (a pcall may stand between).
local function place_at(level)
  local info
  repeat
    level = level + 1
    info = getinfo(level, "Sl")
    if not info then return "?" end
  until info.what ~= "C" and info.currentline > 0
  local file = info.source:match "^@%.?/?(.*)$" or info.short_src
  if info.source:sub(1, 2) == "@/" then file = info.source:sub(2) end
  return file .. ":" .. info.currentline
end

local function open_once(name, options)
  if not options then return core.channel_open(name) end
  return core.channel_open(name, options[1], options[2], options[3], options[4])
end

-- Handles that wait for a collection may be all that stands in the way.
local function open(name, options)
  local channel, why = open_once(name, options)
  if not channel and why == "too many" then
    collectgarbage()
    channel, why = open_once(name, options)
  end
  return channel, why
end

local function refuse_conflict(name, here, there)
  error(("%s: photon.channel %q has other options than at %s"):format(here, name, there), 0)
end

local function refuse(name, why, level)
  if why == "name" then
    error(("photon.channel: a name has 1 to %d bytes and no control characters"):format(MAX_NAME), level + 1)
  end
  if why == "conflict" then
    local earlier = newest[name]
    refuse_conflict(name, place_at(level + 1), earlier and places[earlier] or declared[name]
      and declared[name].place or "another place")
  end
  if why == "too many" then
    local problem = response.problem(503, "too many channels (max_channels)")
    problem.headers["retry-after"] = "5"
    error(problem, 0)
  end
  error(("photon.channel: %s"):format(why), level + 1)
end

local function declare(name, options, level)
  local earlier, here = declared[name], place_at(level + 1)
  if earlier and earlier.options.text ~= options.text then refuse_conflict(name, here, earlier.place) end
  declared[name] = { place = here, options = options }
end

-- The channel of that name; made when there is none. options: replay, replay_age, backlog, slow, log.
function M.open(name, given)
  if type(name) ~= "string" then error("photon.channel takes a name, not " .. type(name), 2) end
  local options, wrong
  if given ~= nil then
    if type(given) ~= "table" then error("photon.channel takes a table of options, not " .. type(given), 2) end
    options, wrong = options_of.read(given)
    if not options then error(("photon.channel %q: %s"):format(name, wrong), 2) end
  end
  local is_loading = core.channel_is_loading()
  if options and is_loading then declare(name, options, 2) end
  local channel, why = open(name, not is_loading and options or nil)
  if not channel then refuse(name, why, 2) end
  if options and options.log then
    local ok, problem = durable.attach(channel, options)
    if not ok then error(("photon.channel %q: %s"):format(name, problem), 2) end
  end
  if options then places[channel], newest[name] = place_at(2), channel end
  return channel
end

M.is_channel = core.channel_is

-- Reading -----------------------------------------------------------------------------------------

local Event = {}
Event.__index = Event

-- The data, decoded; nil and a message when it is not JSON.
function Event:json()
  return core.json.decode(self.data)
end

local function make_event(id, event, data)
  return setmetatable({ id = id or nil, event = event, data = data }, Event)
end

-- The last events that are kept, oldest first: options.last of them (100), before the event with the
-- id options.before. nil and a message when that id is not one of the channel.
function Channel:history(options)
  options = options or {}
  if type(options) ~= "table" then error("channel:history takes a table of options, not " .. type(options), 2) end
  for name in pairs(options) do
    if name ~= "last" and name ~= "before" then
      error(("channel:history: there is no option %s; there are last and before"):format(tostring(name)), 2)
    end
  end
  local last = options.last or 100
  if type(last) ~= "number" or last < 0 or last % 1 ~= 0 then
    error("channel:history: last is a number of events", 2)
  end
  local flat, why = core.channel_history(self, last, options.before)
  if not flat then return nil, why end
  local list = {}
  for i = 1, #flat, 3 do list[#list + 1] = make_event(flat[i], flat[i + 1], flat[i + 2]) end
  return list
end

local function next_event(reader)
  while true do
    local id, event, data = core.channel_read(reader)
    if event then return make_event(id, event, data) end
    if id == false then return nil end
    wait()
  end
end

-- An iterator over what is published from now on, or after the event with that id; it waits for
-- more, and ends with the channel. An id that is too old or unknown yields a photon.gap first.
function Channel:events(after_id)
  if after_id ~= nil and type(after_id) ~= "string" then
    error("channel:events takes an id, not " .. type(after_id), 2)
  end
  return next_event, core.channel_reader(self, after_id)
end

-- Presence ----------------------------------------------------------------------------------------

local function decode_info(text)
  if text == "" then return nil end
  local value = core.json.decode(text)
  return value
end

-- Who is there, in the order in which they came: { id =, info = }.
function Channel:members()
  local flat, list = core.channel_members(self), {}
  for i = 1, #flat, 2 do list[#list + 1] = { id = flat[i], info = decode_info(flat[i + 1]) } end
  return list
end

-- Ends the connections of a member, in all workers. How many there were.
Channel.kick = core.channel_kick

local Hook = {}
Hook.__index = Hook

-- Hooks by the number that C calls them by; those of the app's files, until it starts.
local hooks, pending, last_hook = {}, {}, 0
local starting -- the task that runs on_start where another worker has the hooks

function Hook:stop()
  self.is_stopped = true
  if self[1] then core.channel_unhook(self[1]) end
  hooks[self.id or 0] = nil
end

local function attach_hook(hook)
  if hook.is_stopped then return end
  last_hook = last_hook + 1
  hook.id, hooks[last_hook] = last_hook, hook
  hook[1] = core.channel_hook(hook.channel, last_hook, hook.is_leave)
end

local function add_hook(channel, fn, is_leave, name)
  if type(fn) ~= "function" then error(name .. " takes a function, not " .. type(fn), 3) end
  local hook = setmetatable({ channel = channel, fn = fn, is_leave = is_leave }, Hook)
  if core.channel_is_loading() then
    channel:subscribers() -- raises when it is no channel
    pending[#pending + 1] = hook
  elseif not starting or starting ~= core.current() then
    attach_hook(hook)
  end
  return hook
end

-- fn(member, info) runs when somebody is there who was not, in whatever worker. What the app's files
-- and app:on_start ask for runs in one worker of the server. Returns what has :stop().
function Channel:on_join(fn)
  local hook = add_hook(self, fn, false, "channel:on_join")
  return hook
end

-- The same when the last connection of a member has gone.
function Channel:on_leave(fn)
  local hook = add_hook(self, fn, true, "channel:on_leave")
  return hook
end

-- Called by C when there is news for a hook.
function task.named.presence(id)
  local hook = hooks[id]
  while hook and not hook.is_stopped do
    local member, info = core.channel_take_note(hook[1])
    if not member then return end
    local ok, err = xpcall(hook.fn, core.traceback, member, decode_info(info))
    if not ok and err ~= wait.cancelled then core.failed("channel:on_join or on_leave", err) end
  end
end

-- When the app starts to serve: what its files have said takes effect.
function M.start(is_first_worker)
  for name, each in pairs(declared) do
    local channel, why = open(name, each.options)
    local ok, problem = true, nil
    if channel and each.options.log then ok, problem = durable.attach(channel, each.options) end
    if not ok then core.log.error(("photon.channel %q: %s"):format(name, problem)) end
    if channel then
      places[channel], newest[name] = each.place, channel
    elseif why == "conflict" then
      core.log.error(("%s: photon.channel %q has other options than elsewhere"):format(each.place, name))
    end
  end
  local list = pending
  pending = {}
  for _, hook in ipairs(list) do
    if is_first_worker then attach_hook(hook) end
  end
  if not is_first_worker then starting = core.current() end
end

function M.started()
  starting = nil
end

-- When it retires: presence is the new code's now.
function M.stop()
  for _, hook in pairs(hooks) do core.channel_unhook(hook[1]) end
  hooks = {}
end

-- For tests: what an app has said that never started.
function M.forget()
  declared, pending = {}, {}
end

return M

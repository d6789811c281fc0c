-- subscription: what app:subscribe takes, and the reply that makes a request a subscriber.

local core = require "photon.core"
local options_of = require "photon.channel_options"
local response = require "photon.response"

local error, ipairs, pairs, pcall, tostring, type = error, ipairs, pairs, pcall, tostring, type
local getinfo, getmetatable = debug.getinfo, getmetatable

local M = {}

-- The options of app:subscribe.
M.spec = { "from", "heartbeat", "retry", "headers", "type", "summary", "description", "middleware" }

local FROM = 'from is "now", "start" or { last = number of events }'

local function is_from(value)
  if type(value) ~= "table" then return value == "now" or value == "start" end
  return options_of.is_number(value.last, 0) and value.last % 1 == 0 and value.last < 2 ^ 32
end

-- What is wrong with the spec of a subscription; nil: nothing.
function M.find_wrong(spec)
  for _, name in ipairs { "heartbeat", "retry" } do
    if spec[name] ~= nil and not options_of.is_number(spec[name], 0) then return name .. " is a number from 0 up" end
  end
  if spec.from ~= nil and not is_from(spec.from) then return FROM end
  if spec.type ~= nil and spec.type ~= "text/event-stream" and spec.type ~= "application/x-ndjson" then
    return 'type is "text/event-stream" or "application/x-ndjson"'
  end
  if spec.middleware ~= nil and type(spec.middleware) ~= "boolean" then return "middleware is true or false" end
  if spec.headers == nil then return nil end
  if type(spec.headers) ~= "table" then return "headers are a table" end
  local ok, problem = core.fields(spec.headers)
  return not ok and problem or nil
end

-- A list of channels, or nil: a channel, or a list of them.
function M.list(value)
  if core.channel_is(value) then return { value } end
  if type(value) ~= "table" or getmetatable(value) or not value[1] then return nil end
  for _, each in ipairs(value) do
    if not core.channel_is(each) then return nil end
  end
  return value
end

-- What the door does with a request that was admitted.
local function serve(subscription, spec, _, headers)
  core.channel_subscribe(subscription.list, spec, headers, subscription.member, subscription.info)
end

-- What is wrong with what the function of an app:subscribe has returned, with the place of that function.
local function refuse_admission(fn, format, ...)
  local info = getinfo(fn, "S")
  error(("the function of app:subscribe at %s:%d returned %s"):format(info.short_src, info.linedefined,
    format:format(...)), 0)
end

local function read_member(fn, member)
  if type(member) == "number" then return ("%.14g"):format(member) end
  if member ~= nil and (type(member) ~= "string" or member == "") then
    refuse_admission(fn, "%s as a member, which is a string or a number",
      member == "" and "an empty string" or "a " .. type(member))
  end
  return member
end

local function read_presence(fn, options)
  if options == nil then return nil, nil end
  if type(options) ~= "table" then
    refuse_admission(fn, "a %s beside its channel, which takes a table { member =, info = }", type(options))
  end
  for name in pairs(options) do
    if name ~= "member" and name ~= "info" then
      refuse_admission(fn, "an unknown %s beside its channel; there are member and info", tostring(name))
    end
  end
  local member = read_member(fn, options.member)
  if options.info == nil then return member, nil end
  local ok, info = pcall(core.json.encode, options.info)
  if not ok then refuse_admission(fn, "an info that is no JSON: %s", info) end
  return member, info
end

-- The reply that makes a request a subscriber.
function M.reply(spec, list, member, info)
  return response.make_special(spec, { serve = serve, list = list, member = member, info = info })
end

local function read_admission(spec, fn, value, options)
  local list = M.list(value)
  if list then return M.reply(spec, list, read_presence(fn, options)) end
  local is_reply = type(value) == "table" and getmetatable(value) -- a redirect for instance
  if is_reply then return value, options end
  refuse_admission(fn, "%s; a channel, a list of channels or a photon response is needed",
    type(value) == "string" and ("%q"):format(value) or type(value) == "table" and "another table" or tostring(value))
end

-- A handler that asks fn(req) for the channel.
function M.admit(spec, fn)
  return function(req) return read_admission(spec, fn, fn(req)) end
end

return M

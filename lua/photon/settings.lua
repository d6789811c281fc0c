-- settings: every setting that photon.app{ ... } takes. C's config reads the same list.

local suggest = require "photon.suggest"

local KIB, MIB = 1024, 1024 * 1024

-- name, kind, default, what it is for. Kinds: bytes, seconds, count, flag, list.
local LIST = {
  { "max_header", "bytes", 16384, "request line and header fields of a request together" },
  { "max_headers", "count", 100, "header fields of a request" },
  { "max_target", "bytes", 8192, "the target of a request" },
  { "max_body", "bytes", MIB, "the body of a request; a route's own max_body goes before it" },
  { "header_timeout", "seconds", 10, "for a whole request head to arrive" },
  { "body_timeout", "seconds", 30, "without progress while a body arrives" },
  { "idle_timeout", "seconds", 75, "for a connection between two requests" },
  { "write_timeout", "seconds", 60, "without progress while a client does not read" },
  { "max_connections", "count", 100000, "open connections" },
  { "max_streams", "count", 50000, "open streams" },
  { "max_streams_per_ip", "count", 0, "open streams of one address; 0: no limit" },
  { "max_tasks", "count", 100000, "living tasks of a worker" },
  { "max_channels", "count", 10000, "channels of the server" },
  { "max_event", "bytes", 256 * KIB, "an event of a channel, with its name" },
  { "shared_memory", "bytes", 16 * MIB, "what all photon.shared dictionaries hold together" },
  { "lua_memory", "bytes", 512 * MIB, "the heap of one worker's Lua state" },
  { "lua_budget", "seconds", 5, "for Lua to run without waiting, then it is stopped" },
  { "lua_slow", "seconds", 0.05, "for Lua to run without waiting, then it is logged" },
  { "max_generations", "count", 8, "loads of the app that are alive at once after reloads" },
  { "drain", "seconds", 10, "for requests and streams to end when the server stops" },
  { "trusted_proxies", "list", {}, "addresses and networks whose x-forwarded-for is believed" },
  { "server_header", "flag", false, "whether replies carry `server: photon`" },
}

local M = { list = {}, names = {} }

local by_name = {}
for i, entry in ipairs(LIST) do
  local setting = { name = entry[1], kind = entry[2], default = entry[3], doc = entry[4] }
  M.list[i], M.names[i] = setting, setting.name
  by_name[setting.name] = setting
end

local UNITS = { B = 1, KiB = KIB, MiB = MIB, GiB = 1024 * MIB }

local function is_number(value)
  return type(value) == "number" and value == value and value >= 0 and value < 2 ^ 53
end

-- A size: a whole number of bytes, or a text like "1 MiB". Nil for anything else.
function M.bytes(value)
  if type(value) == "string" then
    local digits, unit = value:match "^%s*(%d+%.?%d*)%s*(%a+)%s*$"
    if not digits or not UNITS[unit] then return nil end
    value = tonumber(digits) * UNITS[unit]
  end
  if not is_number(value) or value % 1 ~= 0 then return nil end
  return value
end

local readers = {
  bytes = M.bytes,
  seconds = function(value) return is_number(value) and value or nil end,
  count = function(value) return is_number(value) and value % 1 == 0 and value < 2 ^ 32 and value or nil end,
  flag = function(value)
    if type(value) == "boolean" then return value end
  end,
  list = function(value)
    if type(value) ~= "table" then return nil end
    for _, item in ipairs(value) do
      if type(item) ~= "string" then return nil end
    end
    return value
  end,
}

local WANTED = {
  bytes = 'a whole number of bytes or a text like "1 MiB"',
  seconds = "a number of seconds",
  count = "a whole number",
  flag = "true or false",
  list = "a list of strings",
}

local function show(value)
  return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

-- The settings of an app, checked; or nil and what is wrong.
function M.read(given)
  local read = {}
  for name, value in pairs(given) do
    local setting = by_name[name]
    if not setting then
      return nil, ("there is no setting %s%s"):format(show(name), suggest(name, M.names))
    end
    read[name] = readers[setting.kind](value)
    if read[name] == nil then
      return nil, ("setting %s is %s, not %s"):format(name, WANTED[setting.kind], show(value))
    end
  end
  return read
end

return M

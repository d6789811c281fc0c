-- channel_options: what photon.channel(name, options) takes.

local settings = require "photon.settings"
local suggest = require "photon.suggest"

local pairs, tostring, type = pairs, tostring, type

local M = {}

local OPTIONS = { "replay", "replay_age", "backlog", "log", "slow" }
local BACKLOG = 1024 * 1024
local MAX_PATH = 4096

function M.is_number(value, least)
  return type(value) == "number" and value >= least and value < 2 ^ 53
end

local checks = {
  replay = function(value)
    return M.is_number(value, 0) and value % 1 == 0 and value < 2 ^ 32, "a number of events"
  end,
  replay_age = function(value) return M.is_number(value, 0.001), "a number of seconds above 0" end,
  backlog = function(value) return settings.bytes(value) ~= nil, "a number of bytes" end,
  slow = function(value) return value == "gap" or value == "close", '"gap" or "close"' end,
  log = function(value)
    return type(value) == "string" and #value > 0 and #value <= MAX_PATH and not value:find "%z", "the path of a file"
  end,
}

-- A path is relative to the app's folder.
local function resolve(path)
  local loader = package.loaded["photon.loader"]
  local folder = type(loader) == "table" and type(loader.file) == "string" and loader.file:match "^.*/"
  return path:sub(1, 1) ~= "/" and folder and folder .. path or path
end

-- The options as C takes them, the log's path, and all as one text to compare them by; nil and what is
-- wrong.
function M.read(given)
  for name, value in pairs(given) do
    if not checks[name] then
      return nil, ("there is no option %s%s"):format(tostring(name), suggest(tostring(name), OPTIONS))
    end
    local ok, wanted = checks[name](value)
    if not ok then return nil, ("%s is %s"):format(name, wanted) end
  end
  local read = { given.replay or 0, math.ceil((given.replay_age or 0) * 1000),
    settings.bytes(given.backlog or BACKLOG), given.slow == "close" }
  read.log = given.log and resolve(given.log)
  read.text = ("%.0f %.0f %.0f %s %s"):format(read[1], read[2], read[3], tostring(read[4]), tostring(read.log))
  return read
end

return M

-- shared: dictionaries that all workers share and that live across reloads. Values are copied in and
-- out; nothing is ever dropped to make room. photon.shared(name) gives one.

local core = require "photon.core"

local error, setmetatable, tostring, type = error, setmetatable, tostring, type
local get, put, incr, delete = core.shared_get, core.shared_put, core.shared_incr, core.shared_delete

local SET, ADD, SWAP = 0, 1, 2

local Dict = {}
Dict.__index = Dict

local OPTIONS = { ttl = true, init = true }

local function check_options(options, name)
  if options == nil then return {} end
  if type(options) ~= "table" then
    error(name .. " takes a table of options, not " .. tostring(options), 3)
  end
  for key in pairs(options) do
    if not OPTIONS[key] then error(("%s: unknown option %s"):format(name, tostring(key)), 3) end
  end
  return options
end

-- The value of the key, or nil.
function Dict:get(key)
  return (get(self[1], key))
end

-- true; or nil, "full". options.ttl: seconds to live.
function Dict:set(key, value, options)
  if options == nil then return put(self[1], key, value, SET) end
  return put(self[1], key, value, SET, check_options(options, "set").ttl)
end

-- As set, but nil, "exists" when the key has a value.
function Dict:add(key, value, options)
  return put(self[1], key, value, ADD, check_options(options, "add").ttl)
end

-- Adds n (1) and returns the sum; a missing number begins as options.init (0), and lives for
-- options.ttl. nil, "not a number" when the value is something else; nil, "full".
function Dict:incr(key, n, options)
  if options == nil then return incr(self[1], key, n) end
  options = check_options(options, "incr")
  return incr(self[1], key, n, options.init, options.ttl)
end

-- Replaces the value by fn(value), and returns the new one; nil deletes. fn is called again when
-- another worker was faster, so it should have no effect of its own. The entry's time to live goes
-- on unless options.ttl begins another. nil, "full".
function Dict:update(key, fn, options)
  local ttl = check_options(options, "update").ttl
  if type(fn) ~= "function" then error("update takes a function, not " .. type(fn), 2) end
  while true do
    local old, version = get(self[1], key)
    local new = fn(old)
    if new ~= nil then
      local ok, why = put(self[1], key, new, SWAP, ttl, version)
      if ok then return new end
      if why ~= "changed" then return nil, why end
    elseif old == nil or delete(self[1], key, version) then
      return nil
    end
  end
end

-- Whether there was a value.
function Dict:delete(key)
  return delete(self[1], key)
end

local M = {}

-- The dictionary of that name; made when there is none yet.
function M.open(name)
  if type(name) ~= "string" then error("photon.shared takes a name, not " .. type(name), 2) end
  local dict, why = core.shared_dict(name)
  if not dict then error("photon.shared: " .. why .. " (shared_memory)", 2) end
  return setmetatable({ dict }, Dict)
end

return M

-- scope: what a file, a describe or an `it` of a spec has begun ends with it: clients, apps, servers,
-- tasks, luv's handles, the frozen clock, stubs, and changes to the tables that everybody shares.

local core = require "photon.core"
local handles = require "photon.testing.handles"
local task = require "photon.task"
local turns = require "photon.testing.turns"

local M = {}

local Scope = {}
Scope.__index = Scope

local TURNS = 50 -- for tasks that were cancelled to end

local stack = {}

local LIBRARIES = { "string", "table", "math", "os", "io", "coroutine", "debug", "package", "bit", "jit", "photon" }

-- The tables whose fields are put back at the end of each scope.
local function shared_tables()
  local list = {}
  for _, name in ipairs(LIBRARIES) do list[#list + 1] = package.loaded[name] end
  for _, value in pairs(package.loaded.photon or {}) do
    if type(value) == "table" then list[#list + 1] = value end
  end
  return list
end

local function take_snapshot()
  local snapshot = {}
  for _, t in ipairs(shared_tables()) do
    local fields = {}
    for key, value in next, t do fields[key] = value end
    snapshot[t] = fields
  end
  return snapshot
end

local function restore(snapshot)
  for t, fields in pairs(snapshot) do
    for key in next, t do
      if fields[key] == nil then rawset(t, key, nil) end
    end
    for key, value in next, fields do
      if rawget(t, key) ~= value then rawset(t, key, value) end
    end
  end
end

-- Stubs, spies and what else luassert can put back.
local function luassert_snapshot()
  local luassert = package.loaded.luassert
  return luassert and luassert:snapshot()
end

-- Begins a scope inside the present one.
function M.open()
  local self = setmetatable({ on_end = {}, tables = take_snapshot(), asserts = luassert_snapshot(),
    last_client = core.test_last_client(), tasks = core.test_tasks(), handles = handles.mark() }, Scope)
  stack[#stack + 1] = self
  core.test_channels_enter()
  return self
end

-- fn runs when the innermost scope ends, the last one first. An error in it fails the spec.
function M.at_end(fn)
  local scope = stack[#stack]
  if not scope then error("photon.test works in specs that photon test runs", 3) end
  scope.on_end[#scope.on_end + 1] = fn
end

local function run_ends(self, problems)
  for i = #self.on_end, 1, -1 do
    local ok, err = xpcall(self.on_end[i], core.traceback)
    if not ok and err ~= task.cancelled then
      problems[#problems + 1] = tostring(err) .. "\n" .. (type(err) == "table" and err.trace or "")
    end
  end
end

-- Cancels the tasks that were begun in this scope, and waits for their end.
local function end_tasks(self)
  local left
  for _ = 1, TURNS do
    left = core.test_cancel_others(self.tasks)
    if left == 0 then break end
    turns.settle()
  end
  return left
end

local function check_apps(problems)
  for _ = 1, TURNS do
    if core.test_app_sweep() == 0 then return end
    turns.once()
  end
  problems[#problems + 1] = "an app of photon.test still serves a request that cannot be ended"
end

local function put_back(self)
  if self.asserts then self.asserts:revert() end
  restore(self.tables)
end

-- Ends the innermost scope. Returns what went wrong, or nil.
function Scope:close()
  local problems = {}
  core.test_close_clients(self.last_client)
  turns.settle()
  run_ends(self, problems)
  core.test_thaw()
  local left = end_tasks(self)
  if left > 0 then
    problems[#problems + 1] = left .. " tasks that this spec began do not end when they are cancelled"
  end
  handles.close_since(self.handles)
  check_apps(problems)
  turns.settle()
  put_back(self)
  stack[#stack] = nil
  core.test_channels_leave()
  if core.test_counts().apps == 0 then core.test_forget() end
  return problems[1] and table.concat(problems, "\n") or nil
end

return M

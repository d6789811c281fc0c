-- process: a real server for a spec: the running program as a child, serving an app on a free port.

local core = require "photon.core"
local task = require "photon.task"
local turns = require "photon.testing.turns"

local Server = {}
Server.__index = Server

-- The running program itself, also after its file was replaced.
local PROGRAM = "/proc/self/exe"

local START, STOP = 10, 15 -- seconds for a server to listen; to end before it is killed

local M = {}

local function arguments(path, options)
  local args = { "serve", path, "--listen", options.listen or "127.0.0.1:0", "--workers",
    tostring(options.workers or 1) }
  for _, arg in ipairs(options.args or {}) do args[#args + 1] = arg end
  return args
end

local function environment(uv, given)
  if not given then return nil end
  local env = {}
  for name, value in pairs(uv.os_environ()) do
    if given[name] == nil then env[#env + 1] = name .. "=" .. value end
  end
  for name, value in pairs(given) do
    if value then env[#env + 1] = name .. "=" .. tostring(value) end
  end
  return env
end

-- Collects what a pipe brings; each piece is told to on_data.
local function collect(pipe, on_data)
  pipe:read_start(function(err, data)
    if not err and data then return on_data(data) end
    if not pipe:is_closing() then pipe:close() end
  end)
end

-- Real time passes even when the clock is frozen, so the wait is luv's.
local function nap(uv)
  task.await(function(resume)
    local timer = uv.new_timer()
    timer:start(5, 0, function()
      timer:close()
      resume()
    end)
  end)
end

-- Waits until fn() is true: false after `seconds` of real time.
local function wait_until(self, seconds, fn)
  local limit = core.test_now() + seconds
  while not fn() do
    if core.test_now() > limit then return false end
    nap(self.uv)
  end
  return true
end

local function start(self, path, options)
  local uv = self.uv
  local out, err = uv.new_pipe(false), uv.new_pipe(false)
  local handle, pid = uv.spawn(options.program or PROGRAM, { args = arguments(path, options),
    stdio = { nil, out, err }, env = environment(uv, options.env) }, function(code, signal)
    self.code, self.signal = code, signal
  end)
  if not handle then
    out:close()
    err:close()
    error("the server could not be started: " .. tostring(pid), 0)
  end
  self.handle, self.pid = handle, pid
  collect(out, function(data) self.output = self.output .. data end)
  collect(err, function(data) self.errors = self.errors .. data end)
end

-- Serves the app at `path`. options: workers, listen, args (further flags), env.
function M.serve(path, options)
  local uv = require "luv"
  local self = setmetatable({ output = "", errors = "", uv = uv }, Server)
  start(self, path, options)
  wait_until(self, START, function() return self.code or self.output:find "\n" end)
  self.url = self.output:match "^photon: listening on (%S+)"
  if not self.url then
    self:stop()
    error("the server did not start: " .. self.output .. self.errors, 0)
  end
  self.port = tonumber(self.url:match ":(%d+)$")
  self.server_pid = tonumber(self.output:match "pid (%d+)")
  return self
end

-- What it has written to standard error.
function Server:log()
  return self.errors
end

-- Sends a signal ("sigterm", "sighup", …) to the server.
function Server:signal(name)
  if not self.code then self.uv.kill(self.server_pid or self.pid, name) end
end

-- Ends the server and waits for it; returns its exit code. Harmless when repeated.
function Server:stop()
  if self.is_closed then return self.code end
  self.is_closed = true
  if not self.code then self.handle:kill "sigterm" end
  local function has_ended() return self.code ~= nil end
  if not wait_until(self, 0.2, has_ended) then self.handle:kill "sigterm" end -- a second one is at once
  if not wait_until(self, STOP, has_ended) then
    self.handle:kill "sigkill"
    wait_until(self, STOP, has_ended)
  end
  if not self.handle:is_closing() then self.handle:close() end
  turns.settle()
  return self.code
end

return M

-- A real server process for specs: started on a free port, stopped with its spec.
local busted = require "busted"
local ffi = require "ffi"
local lfs = require "lfs"
local replies = require "spec.replies"
local socket = require "spec.socket"

if not pcall(function() return ffi.C.spec_kill end) then
  ffi.cdef [[int spec_kill(int, int) __asm__("kill");]]
end

local live = { signals = { TERM = 15, INT = 2, HUP = 1, KILL = 9 } }

local Server = {}
Server.__index = Server

local running = {} -- servers that have been started and not been waited for

-- What the specs of a file have left running (one that fails may stop nothing) goes with the file:
-- it would run on, and the pipe from it waits for its end when it is collected.
busted.subscribe({ "file", "end" }, function()
  for server in pairs(running) do
    server:signal "KILL"
    server:wait()
    server:remove()
  end
  return nil, true
end)

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function read(path)
  local file = io.open(path, "rb")
  if not file then return "" end
  local text = file:read "*a"
  file:close()
  return text
end

-- An empty folder of its own.
function live.folder()
  local path = os.tmpname()
  os.remove(path)
  assert(lfs.mkdir(path))
  return path
end

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- The command line for `photon` with its arguments.
function live.command(arguments, environment)
  return ("env %s %s %s"):format(environment or "", quote(os.getenv "PHOTON" or "build/photon"), arguments)
end

-- Starts `photon serve`. options: app = path, or source = the text of an app.lua; flags, env and
-- before (the command) are texts of a shell command. An error when it does not come to listen.
function live.start(options)
  local self = setmetatable({ folder = live.folder() }, Server)
  local app = options.app
  if options.source then
    app = self.folder .. "/app.lua"
    write(app, options.source)
  end
  local command = live.command(("serve %s --listen 127.0.0.1:0 --workers 1 %s"):format(quote(app),
    options.flags or ""), options.env)
  command = (options.before or "") .. command
  self.output = assert(io.popen(("%s 2>%s/log; echo exit $?"):format(command, self.folder)))
  local line = self.output:read "*l" or ""
  self.port = tonumber(line:match "^photon: listening on http://127%.0%.0%.1:(%d+)")
  self.pid = tonumber(line:match "pid (%d+)")
  if not self.port or not self.pid then error("the server did not start: " .. line .. "\n" .. self:log(), 2) end
  running[self] = true
  return self
end

-- What it has written to standard error.
function Server:log()
  return read(self.folder .. "/log")
end

-- Waits until the log has a text: true, or false after 5 s.
function Server:has_logged(text)
  local limit = socket.now() + 5
  while not self:log():find(text, 1, true) do
    if socket.now() > limit then return false end
    socket.sleep(0.01)
  end
  return true
end

function Server:signal(name)
  ffi.C.spec_kill(self.pid, live.signals[name])
end

-- Waits for its end and returns the exit status.
function Server:wait()
  if self.status then return self.status end
  local rest = self.output:read "*a"
  self.output:close()
  self.status = tonumber(rest:match "exit (%d+)")
  running[self] = nil
  return self.status
end

function Server:remove()
  os.execute("rm -rf " .. quote(self.folder))
end

-- Stops it at once. An error when it did not end well. Harmless when repeated.
function Server:stop()
  if self.status then return end
  self:signal "TERM"
  self:signal "TERM"
  local status, log = self:wait(), self:log()
  self:remove()
  if status ~= 0 then error(("the server ended with %s:\n%s"):format(tostring(status), log:sub(-4000)), 2) end
end

function Server:connect(receive_buffer)
  return assert(socket.connect(self.port, receive_buffer))
end

-- Sends bytes over a connection of its own and reads until `count` (1) replies are complete or the
-- server closes: the replies, whether it closed, all bytes.
function Server:exchange(bytes, methods, count)
  local s = self:connect()
  s:send(bytes)
  local list
  s:receive_until(function(received)
    list = replies.read(received, methods or {}, s.is_closed)
    return #list >= (count or 1) and list[#list].is_complete
  end)
  list = replies.read(s.received, methods or {}, s.is_closed)
  local received, is_closed = s.received, s.is_closed
  s:close()
  return list, is_closed, received
end

-- One request, one reply. `fields` are whole header lines.
function Server:request(method, target, fields, body)
  local lines = { method .. " " .. target .. " HTTP/1.1", "host: photon.test" }
  for _, line in ipairs(fields or {}) do lines[#lines + 1] = line end
  if body then lines[#lines + 1] = "content-length: " .. #body end
  local list = self:exchange(table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or ""), { method })
  return assert(list[1], "no reply to " .. method .. " " .. target)
end

function Server:get(target, ...)
  return self:request("GET", target, { ... })
end

return live

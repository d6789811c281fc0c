-- A real server process for specs: started on a free port, stopped with its spec.
local busted = require "busted"
local ffi = require "ffi"
local lfs = require "lfs"
local replies = require "spec.replies"
local socket = require "spec.socket"

if not pcall(function() return ffi.C.spec_kill end) then
  ffi.cdef [[
  int spec_kill(int, int) __asm__("kill");
  int spec_prlimit(int, int, const unsigned long *, unsigned long *) __asm__("prlimit");
  ]]
end

local RLIMIT_NOFILE = 7

local live = { signals = { TERM = 15, INT = 2, HUP = 1, KILL = 9, STOP = 19, CONT = 18 } }

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

-- Waits until the log has a text: true.
function Server:has_logged(text)
  return socket.eventually(function() return self:log():find(text, 1, true) ~= nil end, function()
    return ("%q in the log:\n%s"):format(text, self:log():sub(-4000))
  end)
end

-- Puts another text in the place of app.lua, in one step, so that no reload ever sees half of it.
function Server:replace(source)
  write(self.folder .. "/app.lua.new", source)
  assert(os.rename(self.folder .. "/app.lua.new", self.folder .. "/app.lua"))
end

-- Runs `photon reload`: whether it went well, and what it printed.
function Server:reload(arguments)
  local pipe = io.popen(live.command(("reload %s 2>&1; echo exit $?"):format(arguments or self.folder)))
  local text, status = pipe:read("*a"):match "^(.-)exit (%d+)\n$"
  pipe:close()
  return status == "0", text
end

-- The value of a metric, by its name and labels.
function Server:metric(name)
  local body = self:get("/metrics").body
  local _, name_end = body:find("\n" .. name .. " ", 1, true)
  return name_end and tonumber(body:match("^%S+", name_end + 1))
end

-- Waits until a metric has a value.
function Server:becomes(name, value)
  local last
  socket.eventually(function()
    last = self:metric(name)
    return last == value
  end, function() return ("%s is %s, not %s"):format(name, tostring(last), tostring(value)) end)
end

function Server:signal(name)
  ffi.C.spec_kill(self.pid, live.signals[name])
end

-- From now on it can open no descriptor that is not below `most`.
function Server:limit_descriptors(most)
  local limits = ffi.new("unsigned long[2]", most, 4096)
  if ffi.C.spec_prlimit(self.pid, RLIMIT_NOFILE, limits, nil) ~= 0 then error("prlimit has failed", 2) end
end

-- The state of a thread, a letter as in proc(5).
local function thread_state(pid, thread)
  return read(("/proc/%d/task/%d/stat"):format(pid, thread)):match "%) (%u)"
end

-- That of the main thread, the boss.
function Server:thread_state()
  return thread_state(self.pid, self.pid)
end

-- Whether no thread of a process runs.
local function is_frozen(pid)
  for id in lfs.dir(("/proc/%d/task/"):format(pid)) do
    if id:find "^%d" and thread_state(pid, tonumber(id)) ~= "T" then return false end
  end
  return true
end

-- Calls fn while the server stands still: it sees everything that fn did at once.
function Server:while_frozen(fn, ...)
  self:signal "STOP"
  socket.eventually(function() return is_frozen(self.pid) end, "the server stands still")
  local ok, message = pcall(fn, ...)
  self:signal "CONT"
  if not ok then error(message, 0) end
end

-- Waits for its end, which comes by force when patience ends, and returns the exit status.
function Server:wait()
  if self.status then return self.status end
  local is_over = pcall(socket.eventually, function() return ffi.C.spec_kill(self.pid, 0) ~= 0 end, "the end")
  if not is_over then self:signal "KILL" end
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
-- server closes: the replies, whether it closed, all bytes. An error when neither comes.
function Server:exchange(bytes, methods, count)
  local s, reader = self:connect(), replies.reader(methods)
  s:send(bytes)
  reader:feed(s.received)
  local limit = socket.now() + socket.patience
  while not reader:has(count or 1) and not s.is_closed do
    local piece = s:receive(limit - socket.now())
    if piece then
      reader:feed(piece)
    elseif socket.now() > limit then
      error(("of %d replies %d have begun, with %d bytes, within %d s\n%s"):format(count or 1, #reader.list,
        #s.received, socket.patience, self:log():sub(-4000)), 2)
    end
  end
  if s.is_closed then reader:finish() end
  local received, is_closed = s.received, s.is_closed
  s:close()
  return reader.list, is_closed, received
end

-- One request: its reply, which may have been broken off; nil when there was none.
function Server:try(method, target, fields, body)
  local lines = { method .. " " .. target .. " HTTP/1.1", "host: photon.test" }
  for _, line in ipairs(fields or {}) do lines[#lines + 1] = line end
  if body then lines[#lines + 1] = "content-length: " .. #body end
  local list = self:exchange(table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or ""), { method })
  return list[1]
end

-- One request, one whole reply.
function Server:request(method, target, fields, body)
  local reply = self:try(method, target, fields, body)
  if not reply then error("no reply to " .. method .. " " .. target, 2) end
  if not reply.is_complete then
    error(("the reply to %s %s breaks off after %d bytes of its body"):format(method, target, #reply.body), 2)
  end
  return reply
end

function Server:get(target, ...)
  return self:request("GET", target, { ... })
end

return live

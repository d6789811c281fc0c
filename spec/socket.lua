-- Client sockets for specs that look at the wire: TCP to this machine, with time limits.
local build = require "spec.build"
local ffi = require "ffi"

if not pcall(ffi.sizeof, "struct spec_sockaddr") then
  ffi.cdef [[
  struct spec_sockaddr { uint16_t family; uint16_t port; uint8_t address[4]; uint8_t zero[8]; };
  struct spec_pollfd { int fd; short events; short revents; };
  struct spec_linger { int on; int seconds; };
  struct spec_timespec { long seconds; long nanoseconds; };
  struct spec_filter { uint16_t code; uint8_t jt, jf; uint32_t k; };
  struct spec_filters { unsigned short count; struct spec_filter *list; };
  int spec_socket(int, int, int) __asm__("socket");
  int spec_connect(int, const struct spec_sockaddr *, uint32_t) __asm__("connect");
  int spec_setsockopt(int, int, int, const void *, uint32_t) __asm__("setsockopt");
  long spec_send(int, const char *, size_t, int) __asm__("send");
  long spec_recv(int, char *, size_t, int) __asm__("recv");
  int spec_shutdown(int, int) __asm__("shutdown");
  int spec_close(int) __asm__("close");
  int spec_poll(struct spec_pollfd *, unsigned long, int) __asm__("poll");
  int spec_clock_gettime(int, struct spec_timespec *) __asm__("clock_gettime");
  ]]
end

local C = ffi.C
local AF_INET, SOCK_STREAM, SOCK_CLOEXEC = 2, 1, 0x80000
local SOL_SOCKET, SO_LINGER, SO_RCVBUF, IPPROTO_TCP, TCP_NODELAY = 1, 13, 8, 6, 1
local SO_ATTACH_FILTER, BPF_RETURN = 26, 6
local MSG_NOSIGNAL, MSG_DONTWAIT, EAGAIN, EINTR = 0x4000, 0x40, 11, 4
local POLLIN, POLLOUT = 1, 4
local CHUNK = 262144

-- `patience` is how long, in seconds, specs wait for what must come: only a failing one waits that long,
-- however slow the machine or the build is.
local socket = { reading = POLLIN, writing = POLLOUT, patience = 120 }
if build.is_sanitized or build.is_hostile then socket.patience = 300 end

local Socket = {}

-- `received` is everything that came, in one text. It is put together when somebody looks, so that
-- much that comes in many pieces is not copied for each of them.
local mt = {}

function mt.__index(self, key)
  if key ~= "received" then return Socket[key] end
  local pieces = self.pieces
  if pieces[2] then
    pieces = { table.concat(pieces) }
    self.pieces = pieces
  end
  return pieces[1] or ""
end

function mt.__newindex(self, key, value)
  if key == "received" then
    self.pieces = { value }
  else
    rawset(self, key, value)
  end
end

local bytes = ffi.new("char[?]", CHUNK)
local timespec = ffi.new "struct spec_timespec"

-- Seconds of a clock that only goes forward.
function socket.now()
  C.spec_clock_gettime(1, timespec)
  return tonumber(timespec.seconds) + tonumber(timespec.nanoseconds) / 1e9
end

-- Waits until one of { { socket =, events = }, … } is ready, at most `seconds`; sets `ready` of each.
function socket.poll(list, seconds)
  local fds = ffi.new("struct spec_pollfd[?]", #list)
  for i, item in ipairs(list) do fds[i - 1].fd, fds[i - 1].events = item.socket.fd, item.events end
  C.spec_poll(fds, #list, math.max(0, math.ceil(seconds * 1000)))
  for i, item in ipairs(list) do item.ready = fds[i - 1].revents ~= 0 end
end

function socket.sleep(seconds)
  C.spec_poll(nil, 0, math.ceil(seconds * 1000))
end

-- Waits until fn() is true, and returns what it gave. An error that names `what` (a text, or a function
-- that makes one) when its patience ends; fn is asked once more then, however long it was held up.
function socket.eventually(fn, what)
  local limit = socket.now() + socket.patience
  while true do
    local is_last = socket.now() > limit
    local value = fn()
    if value then return value end
    if is_last then
      error(("not within %d s: %s"):format(socket.patience, type(what) == "function" and what() or what), 2)
    end
    socket.sleep(0.005)
  end
end

-- Connects to a port of 127.0.0.1: a socket, or nil and the error number. `receive_buffer` makes a
-- reader that the kernel keeps little for.
function socket.connect(port, receive_buffer)
  local fd = C.spec_socket(AF_INET, SOCK_STREAM + SOCK_CLOEXEC, 0)
  assert(fd >= 0, "no socket")
  local function set(level, option, value)
    C.spec_setsockopt(fd, level, option, ffi.new("int[1]", value), 4)
  end
  if receive_buffer then set(SOL_SOCKET, SO_RCVBUF, receive_buffer) end
  set(IPPROTO_TCP, TCP_NODELAY, 1)
  local address = ffi.new "struct spec_sockaddr"
  address.family, address.port = AF_INET, bit.rshift(bit.bswap(port), 16)
  address.address[0], address.address[3] = 127, 1
  if C.spec_connect(fd, address, ffi.sizeof(address)) ~= 0 then
    local code = ffi.errno()
    C.spec_close(fd)
    return nil, code
  end
  return setmetatable({ fd = fd, pieces = {}, is_closed = false }, mt)
end

-- Without waiting: the number of bytes taken, 0 when none can be now, nil when the peer is gone.
function Socket:try_send(text, from)
  local rest = #text - from + 1
  local n = C.spec_send(self.fd, ffi.cast("const char *", text) + from - 1, rest, MSG_NOSIGNAL + MSG_DONTWAIT)
  if n >= 0 then return tonumber(n) end
  local code = ffi.errno()
  if code == EAGAIN or code == EINTR then return 0 end
  return nil
end

-- Without waiting: adds what there is, or at most that many bytes, to `received`, and returns it; false
-- when nothing came. Sets is_closed.
function Socket:try_receive(most)
  if self.is_closed then return false end
  local n = tonumber(C.spec_recv(self.fd, bytes, math.min(most or CHUNK, CHUNK), MSG_DONTWAIT))
  if n > 0 then
    local piece = ffi.string(bytes, n)
    self.pieces[#self.pieces + 1] = piece
    return piece
  end
  local code = ffi.errno()
  if n == 0 or (code ~= EAGAIN and code ~= EINTR) then self.is_closed = true end
  return false
end

-- Sends everything, reading meanwhile so that neither side blocks the other. False when the peer went;
-- an error when it takes nothing for as long as patience lasts.
function Socket:send(text)
  local from, limit = 1, socket.now() + socket.patience
  while from <= #text do
    local n = self:try_send(text, from)
    if not n then return false end
    from = from + n
    if n == 0 then
      if socket.now() > limit then error(("the peer took %d of %d bytes"):format(from - 1, #text), 2) end
      socket.poll({ { socket = self, events = self.is_closed and POLLOUT or POLLIN + POLLOUT } }, 0.05)
      self:try_receive()
    else
      limit = socket.now() + socket.patience
    end
  end
  return true
end

-- Waits at most `seconds` (patience) for bytes: them; false when none came.
function Socket:receive(seconds)
  if self.is_closed then return false end
  socket.poll({ { socket = self, events = POLLIN } }, seconds or socket.patience)
  return self:try_receive()
end

-- Reads until done(received) is true: true; false when the peer closed before, or patience ends.
function Socket:receive_until(done)
  local limit = socket.now() + socket.patience
  while not done(self.received) do
    if self.is_closed or socket.now() >= limit then return false end
    self:receive(limit - socket.now())
  end
  return true
end

-- Reads until a plain text has come; else as receive_until. What came is looked at once.
function Socket:comes(text)
  local limit, seen = socket.now() + socket.patience, self.received
  while not seen:find(text, 1, true) do
    if self.is_closed or socket.now() >= limit then return false end
    seen = seen:sub(-#text) .. (self:receive(limit - socket.now()) or "")
  end
  return true
end

-- Reads until the peer closes: true; false when patience ends.
function Socket:closes()
  local limit = socket.now() + socket.patience
  while not self.is_closed and socket.now() < limit do self:receive(limit - socket.now()) end
  return self.is_closed
end

-- Says that nothing more will be sent.
function Socket:finish()
  C.spec_shutdown(self.fd, 1)
end

-- From now on the kernel drops whatever comes for it, unanswered: the peer sees a machine that has
-- vanished, until this end is closed. False when the kernel cannot do that.
function Socket:vanish()
  local filter = ffi.new("struct spec_filter", { BPF_RETURN, 0, 0, 0 })
  local filters = ffi.new("struct spec_filters", { 1, filter })
  return C.spec_setsockopt(self.fd, SOL_SOCKET, SO_ATTACH_FILTER, filters, ffi.sizeof(filters)) == 0
end

function Socket:close()
  if self.fd < 0 then return end
  C.spec_close(self.fd)
  self.fd, self.is_closed = -1, true
end

-- Closes by a reset.
function Socket:reset()
  local linger = ffi.new("struct spec_linger", { 1, 0 })
  C.spec_setsockopt(self.fd, SOL_SOCKET, SO_LINGER, linger, ffi.sizeof(linger))
  self:close()
end

-- The TCP sockets of this machine, as of proc(5), net/tcp: their ports, their states (two hex digits, 04
-- is FIN_WAIT1), the bytes that are not acknowledged or not read.
function socket.all()
  local list = {}
  for line in io.lines "/proc/net/tcp" do
    local port, peer, state, sent, unread = line:match "^%s*%d+: %x+:(%x+) %x+:(%x+) (%x+) (%x+):(%x+)"
    if port then
      list[#list + 1] = { port = tonumber(port, 16), peer = tonumber(peer, 16), state = state,
        sent = tonumber(sent, 16), unread = tonumber(unread, 16) }
    end
  end
  return list
end

return socket

-- The clients of the soak. Each is asked now and then for its next act (act, which returns when the
-- next one is due), and told when its socket has something (look).
local Cursor = require "spec.soak.cursor"
local Feed = require "spec.soak.feed"
local socket = require "spec.socket"

local clients = {}

local random = math.random
local VANISHED = 5 -- seconds for which a peer that has vanished is not heard of; more than the server waits

-- Sockets whose other end must come to let them go by itself.
local gone = {}

-- How connections end.
local ends = {}

function ends.close(s) s:close() end
function ends.reset(s) s:reset() end

function ends.half(s)
  s:finish()
  gone[#gone + 1] = { socket = s, limit = socket.now() + socket.patience, is_read = true }
end

function ends.vanish(s)
  if not s:vanish() then return s:close() end
  gone[#gone + 1] = { socket = s, limit = socket.now() + VANISHED }
end

-- Never reads again.
function ends.stall(s)
  gone[#gone + 1] = { socket = s, limit = socket.now() + VANISHED }
end

local WAYS = { "close", "reset", "half", "vanish", "stall" }

local function drop(client)
  ends[WAYS[random(#WAYS)]](client.socket)
  client.socket = nil
end

-- Looks after what was dropped; raises when the server holds on to a peer that has said its end.
function clients.sweep(is_over)
  for i = #gone, 1, -1 do
    local s, now = gone[i].socket, socket.now()
    if gone[i].is_read then
      repeat
        local more = s:try_receive()
        s.received = ""
      until not more
      if now > gone[i].limit then error("a half-closed connection stays open", 0) end
    end
    if s.is_closed or now > gone[i].limit or (is_over and not gone[i].is_read) then
      s:close()
      table.remove(gone, i)
    end
  end
  return #gone
end

local function request(target, fields, method)
  return ("%s %s HTTP/1.1\r\nhost: photon.test\r\n%s\r\n"):format(method or "GET", target, fields or "")
end

-- Readers of event streams, which come again with their last id ------------------------------------

local Reader = {}
Reader.__index = Reader

-- `soak` has `connect`, counts `events` and `gaps`, keeps in `seen` what ids say, and `forgets` is the
-- share of clients that come again as new ones. `exact`: events are those of a channel.
function clients.reader(soak, target, exact)
  return setmetatable({ soak = soak, target = target, exact = exact, cursor = Cursor.new(soak.seen) }, Reader)
end

local function open_reader(self)
  if random() < self.soak.forgets then self.cursor = Cursor.new(self.soak.seen) end
  local cursor = self.cursor
  cursor:begin()
  self.feed = Feed.new(function(event)
    self.soak.events = self.soak.events + 1
    if event.event == "photon.gap" then self.soak.gaps = self.soak.gaps + 1 end
    if self.exact then cursor:take(event) end
  end)
  self.most = random() < 0.1 and 500 or nil -- slow: so many bytes at a time
  self.socket = self.soak.connect(self.most and 4096)
  self.socket:send(request(self.target, self.exact and cursor.id and ("last-event-id: %s\r\n"):format(cursor.id)))
end

function Reader:act()
  if not self.socket then
    open_reader(self)
    return random() * 2
  end
  drop(self)
  return random() < 0.8 and random() * 0.3 or random() * 2
end

function Reader:look()
  local s = self.socket
  s:try_receive(self.most)
  self.feed:take(s.received)
  s.received = ""
  if self.feed.is_complete or s.is_closed then
    if self.feed.status == 204 then self.cursor = Cursor.new(self.soak.seen) end
    s:close()
    self.socket = nil
  end
end

function Reader:stop()
  if self.socket then self.socket:close() end
  self.socket = nil
end

-- Requests, whole or broken off at any byte ---------------------------------------------------------

local Asker = setmetatable({}, { __index = Reader })
Asker.__index = Asker

local WAITS = { "sleep", "join", "timeout", "pcall", "coroutine", "offload", "event", "publish", "shared", "fail",
  "await", "detached" }

local function any_request()
  local which = random(10)
  if which <= 5 then return request("/waits/" .. WAITS[random(#WAITS)]) end
  if which == 6 then return request("/fixed") .. request("/fixed") end
  local body = ("b"):rep(random(4000))
  local target = which == 7 and "/log" or which == 8 and "/upload" or "/rooms/" .. random(4)
  if random() < 0.5 then return request(target, "content-length: " .. #body .. "\r\n", "POST") .. body end
  return request(target, "transfer-encoding: chunked\r\n", "POST") .. ("%x\r\n%s\r\n0\r\n\r\n"):format(#body, body)
end

function clients.asker(soak)
  return setmetatable({ soak = soak }, Asker)
end

function Asker:act()
  if not self.socket then
    local text = any_request()
    self.feed = nil
    self.socket = self.soak.connect()
    self.socket:send(random() < 0.5 and text or text:sub(1, random(#text)))
    return random() * 0.6
  end
  drop(self)
  return random() * 0.1
end

function Asker:look()
  self.socket:try_receive()
  self.socket.received = ""
  if self.socket.is_closed then self:stop() end
end

-- One turn of a crowd: who is due acts, if it may, and who has something to read reads.
function clients.turn(list, may_act)
  local wanted, now = {}, socket.now()
  for _, client in ipairs(list) do
    if may_act and now >= client.due then client.due = now + client:act() end
    if client.socket then wanted[#wanted + 1] = { socket = client.socket, events = socket.reading, client = client } end
  end
  socket.poll(wanted, 0.01)
  for _, each in ipairs(wanted) do
    if each.ready then each.client:look() end
  end
  clients.sweep()
end

return clients

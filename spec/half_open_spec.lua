-- Peers that vanish without a word, while their machine is silent or while their socket is full, are
-- gone within write_timeout and a heartbeat. Readers that are slow are not.
local live = require "spec.live"
local socket = require "spec.socket"

local HEARTBEAT, WRITE_TIMEOUT = 0.25, 1

local SOURCE = ([[
local photon = require "photon"
local app = photon.app { write_timeout = %g }
local spec = { heartbeat = %g }
local news = photon.channel("news", { backlog = 8 * 1024 * 1024 })
local big = ("x"):rep(100000)
app:sse("/silent", spec, function() photon.sleep(1000) end)
app:sse("/full", spec, function(stream)
  for _ = 1, 80 do
    if not stream:send(big) then return end
  end
  photon.sleep(1000)
end)
app:sse("/busy", spec, function(stream)
  while stream:send "x" do photon.sleep(0.02) end
end)
app:subscribe("/news", spec, news)
app:post("/publish", function() for _ = 1, 80 do news:publish(big) end end)
app:metrics "/metrics"
return app
]]):format(WRITE_TIMEOUT, HEARTBEAT)

local server

local function open(target, receive_buffer)
  local s = server:connect(receive_buffer)
  s:send("GET " .. target .. " HTTP/1.1\r\nhost: a\r\n\r\n")
  assert.is_true(s:comes "\r\n\r\n")
  return s
end

local function has_streams(count)
  return server:metric "photon_streams" == count
end

-- Heartbeats that a silent stream has had since it was asked last; they are the measure of time, so
-- that a server that is held up is not slow.
local function beats_of(s)
  s:try_receive()
  local _, count = s.received:gsub(":\n\n", "")
  s.received = ""
  return count
end

describe("a peer", function()
  before_each(function() server = live.start { source = SOURCE, flags = "--workers 2" } end)
  after_each(function() server:stop() end)

  for name, kind in pairs {
    ["of a silent stream"] = { "/silent" },
    ["of a stream that sends"] = { "/busy" },
    ["of a stream whose socket is full"] = { "/full", 4096 },
    ["of a silent channel"] = { "/news" },
    ["of a channel whose socket is full"] = { "/news", 4096, publish = true },
  } do
    it("that vanishes is gone within write_timeout and a heartbeat: " .. name, function()
      local clock, s = open "/silent", open(kind[1], kind[2])
      if not s:vanish() then return pending "the kernel knows no socket filters" end
      local beats = 0
      if kind.publish then server:request("POST", "/publish") end
      beats_of(clock)
      assert.is_true(has_streams(2))
      socket.eventually(function()
        beats = beats + beats_of(clock)
        return has_streams(1)
      end, "the stream's end")
      -- The kernel counts from its first repetition, and looks when the next one is due.
      assert.is_true(beats <= 2 * (WRITE_TIMEOUT / HEARTBEAT + 1), beats .. " heartbeats")
      assert.equal(1, server:metric "photon_timeout_write_total")
      server:becomes("photon_channel_subscribers", 0)
      s:close()
      clock:close()
    end)
  end
end)

describe("a peer that never reads", function()
  setup(function() server = live.start { source = SOURCE, flags = "--workers 2" } end)
  teardown(function() server:stop() end)

  local function count_unfinished()
    local count = 0
    for _, one in ipairs(socket.all()) do
      if one.port == server.port and one.state == "04" then count = count + 1 end
    end
    return count
  end

  it("leaves nothing with the kernel once its stream has ended", function()
    local list = { open("/full", 4096), open("/news", 4096) }
    server:request("POST", "/publish")
    server:becomes("photon_timeout_write_total", 2)
    socket.eventually(function() return count_unfinished() == 0 end, "the kernel's last socket is gone")
    for _, s in ipairs(list) do s:close() end
  end)
end)

-- The kernel opens a window of 2 KiB for these about every second, and asks the server for more after
-- 8 KiB.
describe("a reader", function()
  local SLOW_TIMEOUT, RATE = 2.5, 2000 -- seconds, bytes per second
  local HELD_UP = 1 -- seconds

  setup(function()
    server = live.start { source = SOURCE, flags = "--workers 2", env = "PHOTON_WRITE_TIMEOUT=" .. SLOW_TIMEOUT }
  end)
  teardown(function() server:stop() end)

  -- Reads at RATE for some timeouts, or until a socket is closed; whether it was never held up for so long
  -- that the reader has stood still.
  local function read_slowly(list)
    local began, before, taken, is_steady = socket.now(), socket.now(), 0, true
    local is_closed = false
    repeat
      local now = socket.now()
      local due = math.floor((now - began) * RATE)
      is_steady = is_steady and now - before < HELD_UP
      before = now
      for _, s in ipairs(list) do
        if due > taken then s:try_receive(due - taken) end
        is_closed = is_closed or s.is_closed
      end
      taken = math.max(due, taken)
      socket.sleep(0.01)
    until taken > 4 * SLOW_TIMEOUT * RATE or is_closed or not is_steady
    return is_steady
  end

  it("that is slow stays, though its socket is full", function()
    socket.eventually(function()
      server:becomes("photon_streams", 0)
      local ended = server:metric "photon_timeout_write_total"
      local list = { open("/full", 2048), open("/news", 2048) }
      server:request("POST", "/publish")
      local is_steady = read_slowly(list)
      local streams, later = server:metric "photon_streams", server:metric "photon_timeout_write_total"
      for _, s in ipairs(list) do s:close() end
      if not is_steady then return false end
      assert.equal(2, streams)
      assert.equal(ended, later)
      return true
    end, "the spec is not held up")
  end)
end)

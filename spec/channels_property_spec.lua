-- While every worker publishes, hundreds of subscribers connect, drop and resume at random: each gets
-- every event once and in order, but for exactly the gaps that it is told of.
local clients = require "spec.soak.clients"
local live = require "spec.live"
local socket = require "spec.socket"

local SEED = tonumber(os.getenv "PHOTON_SEED") or os.time()
local WORKERS, EVENTS, SUBSCRIBERS = 3, 400, 300 -- events of each worker

local SOURCE = ([[
local photon = require "photon"
local app = photon.app()
local state, number = photon.shared "state", 0
local channels = {
  long = photon.channel("long", { replay = 100000 }),
  short = photon.channel("short", { replay = 25, backlog = 0 }),
}
app:subscribe("/long", { from = "start" }, channels.long)
app:subscribe("/short", channels.short)
app:every(0.005, function()
  if not state:get "go" or number == %d then return end
  for _ = 1, 2 do
    number = number + 1
    for _, channel in pairs(channels) do channel:publish(photon.worker.id .. "." .. number) end
  end
end)
app:post("/go", function() state:set("go", true) end)
app:get("/last/:name", function(req) return channels[req.params.name]:last_id() end)
app:metrics "/metrics"
return app
]]):format(EVENTS)

local server

-- Those who are not there come once more, and all read on to the end, but for those who begin at what
-- comes next and have seen nothing.
local function read_to_end(list)
  local last = { long = server:get("/last/long").body, short = server:get("/last/short").body }
  socket.eventually(function()
    local missing = 0
    for _, client in ipairs(list) do
      local has_begun = client.cursor.id or client.name == "long"
      if has_begun and client.cursor.id ~= last[client.name] then
        missing = missing + 1
        if not client.socket then client:act() end
      end
    end
    if missing > 0 then clients.turn(list) end
    return missing == 0
  end, "the last event of every subscriber")
end

local function sequence_of(id)
  return tonumber(id:match "%-(%d+)$")
end

-- Each worker's events are in the order in which it published them.
local function check_order(seen)
  local ids, last = {}, {}
  for id in pairs(seen) do ids[#ids + 1] = id end
  table.sort(ids, function(a, b) return sequence_of(a) < sequence_of(b) end)
  for _, id in ipairs(ids) do
    local worker, number = seen[id]:match "^(%d+)%.(%d+)$"
    assert.is_true(tonumber(number) > (last[worker] or 0), id)
    last[worker] = tonumber(number)
  end
end

local function new_clients()
  local list, shared = {}, {}
  for _, name in ipairs { "long", "short" } do
    shared[name] = { seen = {}, events = 0, gaps = 0, forgets = 0, connect = function(buffer)
      return server:connect(buffer)
    end }
    for _ = 1, SUBSCRIBERS / 2 do
      local client = clients.reader(shared[name], "/" .. name, true)
      client.name, client.due = name, socket.now() + math.random() * 0.2
      list[#list + 1] = client
    end
  end
  return list, shared
end

describe("events of several workers", function()
  before_each(function() server = live.start { source = SOURCE, flags = "--workers " .. WORKERS } end)
  after_each(function() server:stop() end)

  it("reach hundreds who come and go, once and in order, but for the gaps they are told of", function()
    math.randomseed(SEED)
    local list, shared = new_clients()
    server:request("POST", "/go")
    local total = WORKERS * EVENTS
    local ok, problem = pcall(function()
      local looks_at = 0
      repeat
        clients.turn(list, true)
        local is_over = false
        if socket.now() > looks_at then
          is_over = server:metric "photon_channel_events_total" == 2 * total
          looks_at = socket.now() + 0.1
        end
      until is_over
      read_to_end(list)
    end)
    assert.is_true(ok, ("seed %d: %s"):format(SEED, tostring(problem)))
    for _, client in ipairs(list) do
      local cursor = client.cursor
      if client.name == "long" then
        assert.equal(0, cursor.gaps)
        assert.equal(total, cursor.events)
      elseif cursor.id then
        assert.equal(total, cursor.first - 1 + cursor.events + cursor.missed)
      end
      client:stop()
    end
    assert.is_true(shared.short.gaps > 0)
    check_order(shared.long.seen)
    check_order(shared.short.seen)
    clients.sweep(true)
    server:becomes("photon_channel_subscribers", 0)
  end)
end)

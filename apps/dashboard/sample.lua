-- sample: makes of two readings of photon.metrics() what the charts show: rates, quantiles, sums.

local photon = require "photon"
local uv = require "luv"

local ROUTES = 12 -- at most that many are shown, the busiest

-- Counters that say that something went wrong, or met a limit.
local TROUBLES = { "connections_refused", "accept_errors", "streams_refused", "channels_refused", "channel_gaps",
  "channel_slow_closed", "bad_requests", "limit_header", "limit_target", "limit_body", "timeout_header",
  "timeout_body", "timeout_write", "lua_errors", "lua_slow", "lua_stopped", "vms_abandoned", "vms_full",
  "tasks_refused", "log_dropped", "reload_failures" }

local sample = {}

-- Four digits are enough for a chart, and keep what is sent small.
local function round(value)
  return value and tonumber(("%.4g"):format(value))
end

local function failures(metrics)
  local sum = 0
  for _, route in ipairs(metrics.routes) do sum = sum + route["4xx"] + route["5xx"] end
  return sum
end

-- The numbers of this moment.
function sample.read()
  local metrics = photon.metrics()
  metrics.at, metrics.resident, metrics.failed = os.time(), uv.resident_set_memory(), failures(metrics)
  return metrics
end

-- The time, in milliseconds, that a share of the requests between two readings did not exceed: even
-- within a bucket of the histogram. Nil when there were none.
function sample.quantile(before, now, share)
  local total = now[#now].count - before[#now].count
  if total <= 0 then return nil end
  local wanted, below, low = share * total, 0, 0
  for i, bucket in ipairs(now) do
    local up_to = bucket.count - before[i].count
    if up_to >= wanted then
      if bucket.le == math.huge then break end
      return round(1000 * (low + (bucket.le - low) * (wanted - below) / (up_to - below)))
    end
    below, low = up_to, bucket.le
  end
  return round(1000 * low)
end

local function rate(before, now, name)
  local seconds = now.uptime - before.uptime
  return seconds > 0 and round(math.max(0, now[name] - before[name]) / seconds) or 0
end

-- One point of every chart.
function sample.make(before, now)
  local old, new = before.request_seconds.buckets, now.request_seconds.buckets
  return {
    at = now.at,
    requests = rate(before, now, "requests"), failed = rate(before, now, "failed"),
    events = rate(before, now, "stream_events"), deliveries = rate(before, now, "channel_deliveries"),
    p50 = sample.quantile(old, new, 0.5), p99 = sample.quantile(old, new, 0.99),
    connections = now.connections, subscribers = now.channel_subscribers,
    streams = math.max(0, now.streams - now.channel_subscribers), -- those that a handler writes to
    heap = now.lua_heap_bytes, resident = now.resident,
    lua = rate(before, now, "lua_entries"),
    bytes_in = rate(before, now, "bytes_in"), bytes_out = rate(before, now, "bytes_out"),
  }
end

local function name_of(route)
  return (route.method .. " " .. route.pattern):match "%S.*" or "no route matched"
end

-- The routes with the most requests.
local function busiest(before, now)
  local seconds, earlier, list = now.uptime - before.uptime, {}, {}
  for _, route in ipairs(before.routes) do earlier[name_of(route)] = route.requests end
  for i, route in ipairs(now.routes) do
    list[i] = { name = name_of(route), requests = route.requests, failed = route["4xx"] + route["5xx"],
      rate = seconds > 0 and round((route.requests - (earlier[name_of(route)] or 0)) / seconds) or 0 }
  end
  table.sort(list, function(a, b)
    if a.requests ~= b.requests then return a.requests > b.requests end
    return a.name < b.name
  end)
  for i = #list, ROUTES + 1, -1 do list[i] = nil end
  return list
end

-- What is known besides the charts: the server, its routes, what went wrong.
function sample.state(before, now)
  local troubles = {}
  for _, name in ipairs(TROUBLES) do
    if now[name] > 0 then troubles[#troubles + 1] = { name = name, count = now[name] } end
  end
  return { version = now.version, workers = now.workers, uptime = now.uptime, generation = now.generation,
    routes = photon.array(busiest(before, now)), troubles = photon.array(troubles) }
end

return sample

local photon = require "photon"
local test = require "photon.test"

describe("dashboard", function()
  local client = test.app "apps/dashboard"

  it("shows a page that needs nothing else", function()
    local res = client:get "/"
    assert.equal(200, res.status)
    assert.equal("text/html; charset=utf-8", res.headers["content-type"])
    assert.truthy(res.body:find("<title>Dashboard</title>", 1, true))
    local rest = res.body:gsub("http://www%.w3%.org/[%w/]+", "") -- names, not addresses
    assert.falsy(rest:find "https?://")
    assert.falsy(rest:find "<link[^>]*href=\"[^d]")
    assert.falsy(rest:find "<script[^>]+src")
  end)

  it("gives a sample and the state each second", function()
    test.clock.freeze()
    local stream = client:sse "/events"
    assert.falsy(stream:next(0))
    test.clock.advance(1) -- the first reading has nothing to be compared with
    assert.falsy(stream:next(0))
    client:get "/"
    test.clock.advance(1)
    local first, second = stream:next(), stream:next()
    assert.same({ "sample", "state" }, { first.event, second.event })
    local sample, state = first:json(), second:json()
    assert.truthy(sample.requests > 0 and sample.p99 > 0, first.data)
    assert.equal(1, sample.subscribers)
    assert.equal(1, state.workers)
    local names = {}
    for _, route in ipairs(state.routes) do names[route.name] = route.requests end
    assert.truthy(names["GET /"] >= 1, second.data)
    stream:close()
  end)

  it("gives what was missed, and to a new page all that is kept", function()
    test.clock.freeze()
    local stream = client:sse "/events"
    test.clock.advance(1)
    while stream:next(0) do end
    test.clock.advance(1)
    local seen = stream:events(2)
    stream:close()
    test.clock.advance(1)
    local resumed = client:sse("/events", { last_event_id = seen[2].id })
    assert.equal("sample", resumed:next().event)
    assert.equal("state", resumed:next().event)
    assert.falsy(resumed:next(0))
    resumed:close()
    local fresh, counts = client:sse "/events", { sample = 0, state = 0 }
    for event in function() return fresh:next(0) end do counts[event.event] = counts[event.event] + 1 end
    assert.truthy(counts.sample >= 2)
    assert.equal(1, counts.state)
    fresh:close()
  end)

  it("enters Lua to take the sample, not to give it to readers", function()
    test.clock.freeze()
    local function entries_of_a_second()
      local before = photon.metrics().lua_entries
      test.clock.advance(1)
      return photon.metrics().lua_entries - before
    end
    test.clock.advance(1)
    local alone, readers = entries_of_a_second(), {}
    for i = 1, 20 do readers[i] = client:sse "/events" end
    assert.truthy(entries_of_a_second() < alone + 20)
    for _, reader in ipairs(readers) do reader:close() end
  end)
end)

describe("a sample", function()
  local client = test.app "apps/dashboard"
  local sample = client:module "sample"

  local function buckets(...)
    local list, bounds = {}, { 0.001, 0.01, 0.1, math.huge }
    for i, count in ipairs { ... } do list[i] = { le = bounds[i], count = count } end
    return list
  end

  local function near(expected, value)
    assert.truthy(value and math.abs(value - expected) < 0.001 * expected, tostring(value))
  end

  it("finds quantiles within buckets", function()
    near(0.5, sample.quantile(buckets(0, 0, 0, 0), buckets(100, 100, 100, 100), 0.5))
    near(5.5, sample.quantile(buckets(0, 0, 0, 0), buckets(0, 100, 100, 100), 0.5))
    near(10, sample.quantile(buckets(0, 0, 0, 0), buckets(50, 99, 100, 100), 0.99))
  end)

  it("of the requests since the reading before", function()
    near(55, sample.quantile(buckets(900, 900, 900, 900), buckets(900, 900, 902, 902), 0.5))
    assert.is_nil(sample.quantile(buckets(1, 2, 3, 4), buckets(1, 2, 3, 4), 0.5))
  end)

  it("says the last bound of what took longer than all", function()
    near(100, sample.quantile(buckets(0, 0, 0, 0), buckets(0, 0, 0, 7), 0.5))
  end)

  local function reading(uptime, counts)
    local metrics = sample.read()
    metrics.uptime, metrics.requests, metrics.failed = uptime, counts[1], counts[2]
    return metrics
  end

  it("has rates per second", function()
    local made = sample.make(reading(10, { 100, 5 }), reading(12, { 150, 5 }))
    assert.equal(25, made.requests)
    assert.equal(0, made.failed)
  end)

  it("survives two readings at one moment", function()
    assert.equal(0, sample.make(reading(10, { 100, 5 }), reading(10, { 150, 5 })).requests)
  end)

  it("names the busiest routes first, and what went wrong", function()
    local function with(metrics, troubles)
      metrics.routes = {}
      for i = 1, 20 do
        metrics.routes[i] = { method = "GET", pattern = "/" .. i, requests = i, ["4xx"] = 1, ["5xx"] = 2 }
      end
      metrics.routes[21] = { method = "", pattern = "", requests = 15.5, ["4xx"] = 15, ["5xx"] = 0 }
      for name, value in pairs(troubles) do metrics[name] = value end
      return metrics
    end
    local before, now = with(reading(1, { 0, 0 }), {}), with(reading(2, { 0, 0 }), { limit_body = 3 })
    now.routes[20].requests = 27
    local state = sample.state(before, now)
    assert.equal(12, #state.routes)
    assert.same({ name = "GET /20", requests = 27, failed = 3, rate = 7 }, state.routes[1])
    assert.equal("no route matched", state.routes[6].name)
    local found
    for _, trouble in ipairs(state.troubles) do found = found or trouble.name == "limit_body" and trouble.count end
    assert.equal(3, found)
  end)
end)

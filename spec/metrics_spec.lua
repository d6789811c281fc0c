-- photon.metrics(): the same numbers as /metrics, for Lua.
local live = require "spec.live"
local photon = require "photon"
local test = require "photon.test"

local function route_of(metrics, method, pattern)
  for _, route in ipairs(metrics.routes) do
    if route.method == method and route.pattern == pattern then return route end
  end
end

describe("photon.metrics", function()
  local app = photon.app()
  app:get("/counted/:id", function(req)
    if req.params.id == "0" then error(photon.problem(404, "none")) end
    return "here"
  end)
  app:sse("/events-counted", function(stream)
    for i = 1, 3 do stream:send(i) end
    photon.sleep(60)
  end)
  local client = test.app(app)

  it("tells each route's requests by class of status", function()
    assert.is_nil(route_of(photon.metrics(), "GET", "/counted/:id"))
    for id = 0, 2 do client:get("/counted/" .. id) end
    local before = photon.metrics()
    assert.same({ method = "GET", pattern = "/counted/:id", requests = 3, gone = 0, ["2xx"] = 2, ["3xx"] = 0,
      ["4xx"] = 1, ["5xx"] = 0 }, route_of(before, "GET", "/counted/:id"))
    client:get "/counted/3"
    local after = photon.metrics()
    assert.equal(4, route_of(after, "GET", "/counted/:id").requests)
    assert.equal(before.requests + 1, after.requests)
    assert.equal(before.reply_body_bytes + 4, after.reply_body_bytes)
  end)

  it("tells apart what no route matched", function()
    client:get "/nowhere"
    assert.truthy(route_of(photon.metrics(), "", "")["4xx"] >= 1)
  end)

  it("has the histogram, each bucket with all below it", function()
    local before = photon.metrics().request_seconds
    client:get "/counted/1"
    local now = photon.metrics().request_seconds
    assert.equal(before.count + 1, now.count)
    assert.truthy(now.sum > before.sum)
    assert.equal(now.count, now.buckets[#now.buckets].count)
    assert.equal(math.huge, now.buckets[#now.buckets].le)
    for i = 2, #now.buckets do
      assert.truthy(now.buckets[i].le > now.buckets[i - 1].le)
      assert.truthy(now.buckets[i].count >= now.buckets[i - 1].count)
    end
  end)

  it("counts streams and their events", function()
    local before = photon.metrics()
    local stream = client:sse "/events-counted"
    assert.equal(3, #stream:events(3))
    local open = photon.metrics()
    assert.equal(before.streams + 1, open.streams)
    assert.equal(before.stream_events + 3, open.stream_events)
    stream:close()
    assert.equal(before.streams, photon.metrics().streams)
  end)

  it("has what is known of the server", function()
    local metrics = photon.metrics()
    assert.truthy(metrics.version:find "^%d+%.%d+%.%d+$")
    assert.equal(1, metrics.workers)
    assert.truthy(metrics.uptime > 0)
    assert.truthy(metrics.lua_entries > 0)
  end)

  it("gives a table of the caller's own", function()
    photon.metrics().routes = nil
    assert.truthy(photon.metrics().routes)
  end)
end)

describe("photon.metrics of a server with two workers", function()
  local server
  setup(function()
    server = live.start { flags = "--workers 2", source = [[
      local photon = require "photon"
      local app = photon.app()
      app:metrics "/metrics"
      app:get("/who", function() return tostring(photon.worker.id) end)
      app:get("/table", function()
        local metrics = photon.metrics()
        metrics.request_seconds = nil
        return metrics
      end)
      return app
    ]] }
  end)
  teardown(function() server:stop() end)

  -- Requests over connections that stay open, so that both workers answer.
  local function ask_both()
    local workers, connections = {}, {}
    while not (workers["1"] and workers["2"]) do
      local connection = server:connect()
      connections[#connections + 1] = connection
      connection:send "GET /who HTTP/1.1\r\nhost: a\r\n\r\n"
      assert(connection:receive_until(function(text) return text:find "\r\n\r\n%d" end))
      workers[connection.received:match "\r\n\r\n(%d)"] = true
      assert.truthy(#connections < 20, "one worker answers everything")
    end
    for _, connection in ipairs(connections) do connection:close() end
    return #connections
  end

  it("says what /metrics says", function()
    local asked = ask_both()
    local metrics = photon.json.decode(server:get("/table").body)
    local text = server:get("/metrics").body
    assert.equal(asked, route_of(metrics, "GET", "/who")["2xx"])
    assert.equal(asked + 1, tonumber(text:match '\nphoton_requests_total{method="GET",route="/who",status="2xx"} (%d+)')
      + tonumber(text:match '\nphoton_requests_total{method="GET",route="/table",status="2xx"} (%d+)'))
    assert.equal(2, metrics.workers)
    assert.equal(1, metrics.generation)
    assert.truthy(metrics.lua_heap_bytes > 0)
    local missing = {}
    for name in text:gmatch "\nphoton_([%w_]+) [%d.e+]+" do
      local short = name:gsub("_total$", "")
      local is_other = name:find "^request_seconds" or name == "uptime_seconds"
      if not is_other and type(metrics[short]) ~= "number" then missing[#missing + 1] = name end
    end
    assert.same({}, missing)
  end)
end)

-- Who gets a connection, and what happens when there are too many.
local live = require "spec.live"
local replies = require "spec.replies"
local socket = require "spec.socket"

local SOURCE = [[
local photon = require "photon"
local app = photon.app()
app:get("/", function() return "ok" end)
app:get("/worker", function() return tostring(photon.worker.id) end)
app:metrics("/metrics")
return app
]]

local GET = "GET %s HTTP/1.1\r\nhost: photon.test\r\n\r\n"

local function reply_on(s, target)
  s.received = ""
  s:send(GET:format(target))
  local list
  assert(s:receive_until(function(got)
    list = replies.read(got, { "GET" }, s.is_closed)
    return list[1] and list[1].is_complete
  end), "no reply")
  return list[1]
end

local function close_all(list)
  for _, s in ipairs(list) do s:close() end
end

-- The value of a metric, from a connection that is open already.
local function metric(s, name)
  return tonumber(reply_on(s, "/metrics").body:match("\n" .. name .. " (%d+)"))
end

describe("accepting", function()
  local server, open

  before_each(function()
    open = {}
  end)

  after_each(function()
    close_all(open)
    if server then server:stop() end
    server = nil
  end)

  local function connect()
    local s = server:connect()
    open[#open + 1] = s
    return s
  end

  local function count_workers(list)
    local count = { ["1"] = 0, ["2"] = 0 }
    for _, s in ipairs(list) do
      local id = reply_on(s, "/worker").body
      count[id] = count[id] + 1
    end
    return count
  end

  it("spreads connections that stay evenly over the workers", function()
    server = live.start { source = SOURCE, flags = "--workers 2" }
    for _ = 1, 200 do connect() end
    local count = count_workers(open)
    assert.equal(200, count["1"] + count["2"])
    assert.truthy(count["1"] >= 95 and count["1"] <= 105, count["1"] .. " to " .. count["2"])
  end)

  it("fills up the worker that has lost its connections", function()
    server = live.start { source = SOURCE, flags = "--workers 2" }
    local first, second = {}, {}
    for _ = 1, 100 do
      local s = connect()
      local of = reply_on(s, "/worker").body == "1" and first or second
      of[#of + 1] = s
    end
    local watcher = table.remove(second)
    close_all(first)
    socket.eventually(function() return metric(watcher, "photon_connections") <= #second + 1 end, "connections end")
    local more = {}
    for i = 1, #first do more[i] = connect() end
    assert.equal(#first, count_workers(more)["1"])
  end)

  for _, workers in ipairs { 1, 2 } do
    it(("answers 503 over max_connections (%d workers)"):format(workers), function()
      server = live.start { source = SOURCE, flags = "--max-connections 4 --workers " .. workers }
      for _ = 1, 4 do assert.equal(200, reply_on(connect(), "/").status) end
      for _ = 1, 100 do
        local s = connect()
        local reply = reply_on(s, "/")
        assert.equal(503, reply.status)
        assert.equal("1", reply:get "retry-after")
        assert.truthy(s:closes())
      end
      assert.equal(100, metric(open[1], "photon_connections_refused_total"))
      open[2]:close()
      socket.eventually(function() return reply_on(connect(), "/").status == 200 end, "there is room again")
      assert.equal(200, reply_on(open[1], "/").status)
    end)

    it(("survives having no descriptors left (%d workers)"):format(workers), function()
      server = live.start { source = SOURCE, flags = "--workers " .. workers }
      server:limit_descriptors(40)
      local watcher = connect()
      assert.equal(200, reply_on(watcher, "/").status)
      for _ = 1, 60 do connect() end
      socket.eventually(function() return metric(watcher, "photon_accept_errors_total") > 0 end, "an error is counted")
      assert.truthy(server:has_logged "cannot accept connections on http://127.0.0.1:")
      while #open > 1 do table.remove(open):close() end
      -- Until the server has seen them go, a connection that comes is shed.
      local reply
      socket.eventually(function()
        local s = connect()
        s:send(GET:format "/")
        s:receive_until(function(got) return got:find "ok$" end)
        reply = replies.read(s.received, { "GET" }, s.is_closed)[1]
        return reply
      end, "a connection is served")
      assert.equal(200, reply.status)
    end)
  end
end)

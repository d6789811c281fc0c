-- Where photon's own code calls an app's, the time guard can stop that too.
local build = require "spec.build"
local live = require "spec.live"
local socket = require "spec.socket"

local APP = [[
local photon = require "photon"
local app = photon.app{ lua_budget = 0.2 }
local endless = setmetatable({}, { __tostring = function() while true do end end })
app:get("/error", function() error(endless) end)
app:get("/log", function() photon.log.info(endless) return "never" end)
app:sse("/closed", function(stream)
  stream:on_close(function() photon.shared("closed"):incr("n", 1, { init = 0 }) end)
  while true do stream:send "a" end
end)
app:get("/closed-count", function() return tostring(photon.shared("closed"):get("n") or 0) end)
app:get("/join", function()
  local t
  t = photon.spawn(function() return t:join() end)
  local ok, err = t:join()
  return tostring(ok) .. err
end)
app:get("/ok", function() return "ok" end)
app:metrics("/metrics")
return app
]]

local STARTING = [[
local photon = require "photon"
local app = photon.app{ lua_budget = 0.2 }
app:on_start(function() return (("a"):rep(40)):find(("a?"):rep(40) .. ("a"):rep(40)) end)
app:get("/ok", function() return "ok" end)
app:metrics("/metrics")
return app
]]

describe("the time guard and photon's own code", function()
  local it_stops = build.stopping(it, pending)
  local server

  after_each(function()
    if server then server:stop() end
    server = nil
  end)

  it_stops("stops a __tostring that does not end", function()
    server = live.start { source = APP }
    for _, path in ipairs { "/error", "/log" } do
      assert.equal(503, server:get(path).status, path)
      assert.equal("ok", server:get("/ok").body)
    end
  end)

  it("ends a loop of sends to a client that has gone, at no cost to others", function()
    server = live.start { source = APP }
    local s = server:connect()
    s:send "GET /closed HTTP/1.1\r\nHost: a\r\n\r\n"
    assert.truthy(s:receive())
    s:close()
    socket.eventually(function() return server:get("/closed-count").body == "1" end, "on_close has run")
    assert.equal(0, server:metric "photon_vms_abandoned_total")
  end)

  it_stops("fails a first start whose on_start does not end", function()
    local ok, message = pcall(live.start, { source = STARTING })
    assert.is_false(ok)
    assert.truthy(tostring(message):find "app:on_start ran over lua_budget", message)
  end)

  it_stops("runs an on_start that does not end only once after a reload", function()
    server = live.start { source = APP }
    server:replace(STARTING)
    server:signal "HUP"
    server:becomes("photon_vms_abandoned_total", 1)
    for _ = 1, 3 do assert.equal("ok", server:get("/ok").body) end
    assert.equal(1, server:metric "photon_vms_abandoned_total")
  end)

  it("refuses a task that waits for its own end", function()
    server = live.start { source = APP }
    assert.truthy(server:get("/join").body:find "cannot wait for its own end")
  end)
end)

-- A VM that what its app keeps has filled (lua_memory) would refuse every request: a fresh one takes over, and its
-- memory comes back.
local live = require "spec.live"
local socket = require "spec.socket"

local APP = [[
local photon = require "photon"
local app = photon.app { lua_memory = 8 * 1024 * 1024 }
local birth = photon.shared("births"):incr("n", 1, { init = 0 })
photon.log.warn("birth " .. birth)
local kept = {}
local function fill() while true do kept[#kept + 1] = ("x"):rep(1000) .. #kept end end
app:get("/birth", function() return tostring(birth) end)
app:get("/fill", function() fill() end)
app:get("/keep", function()
  for _ = 1, 300 do kept[#kept + 1] = ("x"):rep(1000) .. #kept end
  return "kept"
end)
app:get("/string", function() return #("x"):rep(3e7) .. "" end)
app:get("/garbage", function() local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end end)
app:get("/waits", function() photon.sleep(600) return "late" end)
app:get("/holds", function()
  local mine = {}
  collectgarbage()
  pcall(function() while true do mine[#mine + 1] = ("x"):rep(1000) .. #mine end end)
  photon.sleep(0.01)
  return "let go of " .. type(mine)
end)
app:sse("/stream", function(stream) stream:send "first" photon.sleep(600) end)
app:metrics("/metrics")
]]

local function counted(server, name)
  return tonumber(server:get("/metrics").body:match("\n" .. name .. " (%d+)"))
end

-- The body of the first answer that is no refusal: after much garbage that is collected half of the time only.
local function answered(server, target)
  return socket.eventually(function()
    local reply = server:get(target)
    return reply.status == 200 and reply.body
  end, target .. " is answered")
end

describe("a VM that is full of what its app keeps", function()
  local server

  after_each(function()
    if server then server:stop() end
    server = nil
  end)

  it("is replaced after the request that has filled it", function()
    server = live.start { source = APP .. "return app" }
    for birth = 1, 20 do
      assert.equal(tostring(birth), server:get("/birth").body)
      assert.equal(500, server:get("/fill").status)
    end
    assert.equal("21", server:get("/birth").body)
    assert.equal(20, counted(server, "photon_vms_full_total"))
    assert.equal(0, counted(server, "photon_vms_abandoned_total"))
  end)

  it("gives its memory back", function()
    server = live.start { source = APP .. "return app" }
    for _ = 1, 4 do server:get "/fill" end
    socket.eventually(function()
      server:get "/birth"
      return counted(server, "photon_lua_heap_bytes") < 4 * 1024 * 1024
    end, "little is in use again")
  end)

  it("is replaced when it has been filled bit by bit", function()
    server = live.start { source = APP .. "return app" }
    local count = 0
    repeat
      count = count + 1
      local status = server:get("/keep").status
    until status ~= 200 or count == 1000
    assert.is_true(count > 10 and count < 1000)
    assert.equal("2", server:get("/birth").body)
    assert.equal("kept", server:get("/keep").body)
  end)

  it("is replaced while others wait in it, whose requests get 503 and whose streams break", function()
    server = live.start { source = APP .. "return app" }
    local waiting, streaming = server:connect(), server:connect()
    streaming:send "GET /stream HTTP/1.1\r\nhost: x\r\n\r\n"
    assert.is_true(streaming:receive_until(function(text) return text:find("data: first", 1, true) end))
    waiting:send "GET /waits HTTP/1.1\r\nhost: x\r\n\r\n"
    local tries = 0
    repeat
      tries = tries + 1
      server:get "/fill"
    until counted(server, "photon_vms_full_total") == 1 or tries == 100
    assert.is_true(tries > 1 and tries < 100)
    assert.is_true(waiting:receive_until(function(text) return text:find "^HTTP/1.1 503 " end))
    assert.is_true(streaming:closes())
    assert.is_nil(streaming.received:find("\r\n0\r\n\r\n", 1, true))
    waiting:close()
    streaming:close()
    assert.equal("2", server:get("/birth").body)
    assert.equal(0, counted(server, "photon_tasks"))
  end)

  it("says where, how much and what to do", function()
    server = live.start { source = APP .. "return app" }
    server:get "/fill"
    assert.is_true(server:has_logged "GET /fill (")
    assert.is_true(server:has_logged "of 8388608 bytes: keep less (in tables that outlive a request), or raise lua_")
    assert.is_true(server:has_logged "a fresh Lua VM takes over in worker 1")
  end)

  it("is not what a request makes that asks for too much", function()
    server = live.start { source = APP .. "return app" }
    for _ = 1, 20 do
      assert.equal(500, server:get("/string").status)
      assert.equal(500, server:get("/garbage").status)
    end
    assert.equal("1", answered(server, "/birth"))
    assert.equal(0, counted(server, "photon_vms_full_total"))
  end)

  it("is not what a request makes that holds much while it waits", function()
    server = live.start { source = APP .. "return app" }
    for _ = 1, 10 do assert.equal("let go of table", answered(server, "/holds")) end
    assert.equal("1", answered(server, "/birth"))
  end)

  it("goes on as it is when the app's files alone take most of it", function()
    server = live.start { source = APP .. [[
      for i = 1, 6600 do kept[i] = ("x"):rep(1000) .. i end
      return app
    ]] }
    for _ = 1, 20 do assert.equal(500, server:get("/fill").status) end
    assert.is_true(server:has_logged "no fresh VM for worker 1: the app's files alone take")
    assert.equal(0, counted(server, "photon_vms_full_total"))
    assert.truthy(server:log():find("birth 2", 1, true))
    assert.is_nil(server:log():find("birth 3", 1, true))
  end)

  it("goes on as it is when on_start has filled it", function()
    server = live.start { source = APP .. "return app" }
    local file = assert(io.open(server.folder .. "/app.lua", "wb"))
    file:write(APP, "app:on_start(fill) return app")
    file:close()
    server:signal "HUP"
    assert.is_true(server:has_logged "app:on_start: ")
    for _ = 1, 20 do server:get "/fill" end
    assert.equal(0, counted(server, "photon_vms_full_total"))
  end)
end)

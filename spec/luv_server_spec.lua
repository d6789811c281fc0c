-- luv in a server: handles and callbacks across reloads, at the end, and abused.
local build = require "spec.build"
local live = require "spec.live"
local socket = require "spec.socket"

local APP = [[
local photon = require "photon"
local uv = require "luv"
local ok, err = pcall(uv.new_timer)
local app = photon.app{ lua_budget = 0.2, max_generations = 3, lua_memory = 16 * 1024 * 1024 }
local started
app:on_start(function()
  started = uv.new_timer()
  started:start(1, 1, function() end)
end)
app:get("/load-error", function() return tostring(ok) .. " " .. tostring(err) end)
app:get("/error", function()
  local timer = uv.new_timer()
  timer:start(1, 0, function() timer:close() error "from a callback" end)
  photon.sleep(0.02)
  return "survived"
end)
app:get("/yield", function()
  local timer = uv.new_timer()
  timer:start(1, 0, function() timer:close() coroutine.yield() end)
  photon.sleep(0.02)
  return "survived"
end)
local function mess()
  for i = 1, 20 do
    local timer = uv.new_timer()
    timer:start(i, i, function() photon.sleep(0.001) end)
    uv.fs_stat("/", function() end)
    local pipe = uv.new_pipe(false)
    if i % 2 == 0 then pipe:close(function() end) end
  end
  local server = uv.new_tcp()
  server:bind("127.0.0.1", 0)
  server:listen(8, function() local c = uv.new_tcp() server:accept(c) end)
  local client = uv.new_tcp()
  client:connect("127.0.0.1", server:getsockname().port, function()
    client:write(("x"):rep(20000000), function() end)
    client:shutdown(function() end)
  end)
  uv.getaddrinfo("localhost", nil, nil, function() end)
  photon.sleep(0.02)
  uv.fs_stat("/", function() end)
end
app:get("/mess", function() mess() return "left open" end)
local function loop() return (("a"):rep(40)):find(("a?"):rep(40) .. ("a"):rep(40)) end
app:get("/mess-and-loop", function() mess() loop() end)
app:get("/callback-loop", function()
  uv.new_timer():start(1, 0, loop)
  photon.sleep(60)
end)
local ticks = photon.shared "ticks"
local me = tostring({})
local function tick(timer, is_bound)
  timer:start(1, 1, function()
    ticks:incr(me)
    if ticks:get("stop " .. me) then timer:close() end
  end)
  if not is_bound then timer:unref() end
end
app:get("/awaited", function()
  return photon.await(function(resume)
    local timer = uv.new_timer()
    timer:start(1, 0, function()
      timer:close()
      ticks:set("called", true)
      while not ticks:get "go on" do photon.sleep(0.005) end
      resume "the callback's"
    end)
  end)
end)
app:get("/called", function() return tostring(ticks:get "called") end)
app:get("/go-on", function() ticks:set("go on", true) return "ok" end)
app:get("/tick", function() tick(uv.new_timer(), true) return me end)
app:get("/tick-unref", function() tick(uv.new_timer(), false) return me end)
app:get("/ticks/:of", function(req) return tostring(ticks:get(req.params.of) or 0) end)
app:get("/stop/:of", function(req) ticks:set("stop " .. req.params.of, true) return "ok" end)
app:on_stop(function() started:close() end)
local kept = {}
app:get("/sink", function()
  local server = uv.new_tcp()
  server:bind("127.0.0.1", 0)
  server:listen(8, function()
    local c = uv.new_tcp()
    server:accept(c)
    c:read_start(function(_, bytes) kept[#kept + 1] = bytes end)
  end)
  return tostring(server:getsockname().port)
end)
app:get("/forget", function() kept = {} return "ok" end)
app:get("/ok", function() return "ok" end)
app:get("/exit", function() os.exit(3) end)
return app
]]

describe("luv in a server", function()
  local server
  before_each(function() server = live.start{ source = APP } end)
  after_each(function() server:stop() end)

  it("makes no handles while the app loads", function()
    assert.truthy(server:get("/load-error").body:find("false luv handles cannot be made while the app loads", 1, true))
  end)

  it("logs the errors of callbacks", function()
    assert.equal("survived", server:get("/error").body)
    assert.is_true(server:has_logged "from a callback")
    assert.equal("survived", server:get("/yield").body)
    assert.equal("ok", server:get("/ok").body)
  end)

  it("may be left in a mess at a reload", function()
    assert.equal("left open", server:get("/mess").body)
    for _ = 1, 3 do
      assert.is_true(server:reload())
      assert.equal("ok", server:get("/ok").body)
      assert.equal("left open", server:get("/mess").body)
    end
  end)

  local function encoded(text)
    return (text:gsub("[^%w]", function(c) return ("%%%02X"):format(c:byte()) end))
  end

  local function ticks(of)
    return tonumber(server:get("/ticks/" .. encoded(of)).body)
  end

  -- Waits until the count of a generation grows.
  local function ticks_on(of)
    local before = ticks(of)
    return socket.eventually(function() return ticks(of) > before end, "it ticks")
  end

  -- Waits until the count of an old generation stands still while that of a new one grows.
  local function ticks_no_more(of)
    local other = server:get("/tick").body
    return socket.eventually(function()
      local before = ticks(of)
      for _ = 1, 5 do ticks_on(other) end
      return ticks(of) == before
    end, "it ticks no more")
  end

  local function reload()
    assert.is_true(server:reload())
  end

  it("lets callbacks that have begun end after a reload, for requests wait for them", function()
    local s = server:connect()
    s:send "GET /awaited HTTP/1.1\r\nhost: t\r\n\r\n"
    socket.eventually(function() return server:get("/called").body == "true" end, "the callback begins")
    reload()
    server:get "/go-on"
    s:comes "the callback's"
    s:close()
  end)

  it("keeps the code of an active handle alive across reloads, until it is closed", function()
    local old = server:get("/tick").body
    assert.is_true(ticks_on(old))
    reload()
    assert.is_true(ticks_on(old))
    server:get("/stop/" .. encoded(old))
    assert.is_true(ticks_no_more(old))
  end)

  it("does not keep it alive for handles without a reference", function()
    local old = server:get("/tick-unref").body
    assert.is_true(ticks_on(old))
    reload()
    assert.is_true(ticks_no_more(old))
  end)

  it("ends the oldest when there are more than max_generations", function()
    local old = server:get("/tick").body
    for _ = 1, 2 do reload() server:get("/tick") end
    assert.is_true(ticks_on(old))
    reload()
    assert.is_true(ticks_no_more(old))
    assert.equal("ok", server:get("/ok").body)
  end)

  it("may be left in a mess at the end", function()
    assert.equal("left open", server:get("/mess").body)
    server:signal "TERM"
    assert.equal(0, server:wait())
  end)

  build.stopping(it, pending)("never calls into a VM that was given up", function()
    assert.equal(503, server:get("/mess-and-loop").status)
    assert.equal("ok", server:get("/ok").body)
    assert.equal(503, server:get("/callback-loop").status)
    socket.sleep(0.1)
    assert.equal("ok", server:get("/ok").body)
    assert.equal("left open", server:get("/mess").body)
    server:signal "TERM"
    assert.equal(0, server:wait())
  end)

  it("keeps to lua_memory when peers send more than that", function()
    local port = assert(tonumber(server:get("/sink").body))
    local s = assert(socket.connect(port))
    local random = assert(io.open("/dev/urandom", "rb"))
    for _ = 1, 40 do s:send(random:read(1000000)) end
    random:close()
    assert.is_true(server:has_logged "a callback of luv was dropped")
    server:get "/forget"
    s:send "x"
    assert.equal("ok", server:get("/ok").body)
    s:close()
  end)

  it("cannot end the process by os.exit", function()
    assert.equal(500, server:get("/exit").status)
    assert.equal("ok", server:get("/ok").body)
  end)
end)

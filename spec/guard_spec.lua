-- The time guard, seen from outside: what runs on without waiting is stopped, its request gets 503,
-- and everything else goes on. Whether by the hook or by the jump is the machine's business, except
-- where only one of them can do it.
local build = require "spec.build"
local live = require "spec.live"
local programs = require "spec.programs"
local socket = require "spec.socket"

local APP = [[
local photon = require "photon"
local app = photon.app{ lua_budget = 0.2 }
local ways = {
  ["empty-loop"] = function() while true do end end,
  ["counting-loop"] = function() local n = 0 while true do n = n + 1 end end,
  ["table-loop"] = function() local t = {} while true do t[#t % 100 + 1] = { #t } end end,
  ["string-rep"] = function() while true do local _ = ("abc"):rep(100000) end end,
  ["tail-calls"] = function() local function f(n) return f(n + 1) end return f(1) end,
  ["pcall-error"] = function() while true do pcall(error) end end,
  ["pcall-loop"] = function() while true do pcall(function() while true do end end) end end,
  ["pattern"] = function() return (("a"):rep(40)):find(("a?"):rep(40) .. ("a"):rep(40)) and "x" end,
  ["pattern-after-errors"] = function()
    for i = 1, 200 do pcall(error, {}) pcall(string.rep) xpcall(error, debug.traceback, i) end
    return (("a"):rep(40)):find((".-"):rep(20) .. "b") and "x"
  end,
  ["coroutine"] = function() coroutine.wrap(function() while true do end end)() end,
}
for name, fn in pairs(ways) do
  app:get("/" .. name, fn)
  app:get("/spawned/" .. name, function() photon.spawn(fn):join() return "", 503 end)
end
app:get("/interpreted", function()
  jit.off(true, true)
  while true do end -- line 24
end)
app:get("/caught", function()
  jit.off(true, true)
  local ok, err = pcall(function() while true do end end)
  return tostring(ok) .. err
end)
app:get("/ok", function() return "ok" end)
local waiting = photon.shared "waiting"
app:get("/waits", function() waiting:set("is_there", true) photon.sleep(3600) return "late" end)
app:get("/waiting", function() return tostring(waiting:get "is_there") end)
app:get("/wrapped", function() return "never" end)
app:sse("/stream", function(stream) stream:send("first") photon.sleep(0.01) while true do end end)
app:group("/in", function(g)
  g:use(function(req, inner) while true do end return inner(req) end)
  g:get("/middleware", function() return "never" end)
end)
app:get("/timer", function()
  photon.after(0.01, ways.pattern)
  photon.sleep(3600)
end)
app:get("/slow", function()
  local till = os.clock() + 0.08
  while os.clock() < till do end
  return "slow"
end)
return app
]]

local WAYS = { "empty-loop", "counting-loop", "table-loop", "string-rep", "tail-calls", "pcall-error",
  "pcall-loop", "pattern", "pattern-after-errors", "coroutine" }

describe("the time guard", function()
  local it_stops = build.stopping(it, pending)
  local server
  setup(function() server = live.start{ source = APP } end)
  teardown(function() server:stop() end)

  local function assert_stopped(target)
    assert.equal(503, server:get(target).status)
    local ok = server:get "/ok"
    assert.equal(200, ok.status)
    assert.equal("ok", ok.body)
  end

  for _, way in ipairs(WAYS) do
    it_stops("stops a handler's " .. way, function() assert_stopped("/" .. way) end)
  end

  it_stops("stops what a handler has spawned", function()
    assert_stopped "/spawned/empty-loop"
    assert_stopped "/spawned/pattern"
  end)

  it_stops("stops a timer's function", function() assert_stopped "/timer" end)
  it_stops("stops middleware", function() assert_stopped "/in/middleware" end)

  it_stops("names the line where the hook has stopped it", function()
    assert_stopped "/interpreted"
    assert.is_true(server:has_logged "app.lua:24: handler ran over lua_budget (0.2 s) without waiting")
  end)

  it_stops("names the route where only the jump has", function()
    assert_stopped "/pattern"
    assert.is_true(server:has_logged "GET /pattern (")
  end)

  it_stops("is not outlived by a pcall", function() assert_stopped "/caught" end)

  it_stops("breaks a stream off, without a clean end", function()
    local s = server:connect()
    s:send "GET /stream HTTP/1.1\r\nhost: x\r\n\r\n"
    assert.is_true(s:closes())
    assert.truthy(s.received:find("data: first", 1, true))
    assert.is_nil(s.received:find("\r\n0\r\n\r\n", 1, true))
    s:close()
    assert.equal("ok", server:get("/ok").body)
  end)

  it_stops("answers the other requests of a lost VM", function()
    local s = server:connect()
    s:send "GET /waits HTTP/1.1\r\nhost: x\r\n\r\n"
    socket.eventually(function() return server:get("/waiting").body == "true" end, "the request is there")
    assert_stopped "/pattern"
    assert.is_true(s:receive_until(function(text) return text:find "^HTTP/1.1 503 " end))
    s:close()
  end)

  it("only logs what is slow", function()
    assert.equal("slow", server:get("/slow").body)
    assert.is_true(server:has_logged "GET /slow")
  end)

  it_stops("leaves other connections alone", function()
    local s = server:connect()
    s:send "GET /ok HTTP/1.1\r\nhost: x\r\n\r\n"
    assert.is_true(s:receive_until(function(text) return text:find("\r\n\r\nok", 1, true) end))
    assert_stopped "/counting-loop"
    s.received = ""
    s:send "GET /ok HTTP/1.1\r\nhost: x\r\n\r\n"
    assert.is_true(s:receive_until(function(text) return text:find("\r\n\r\nok", 1, true) end))
    s:close()
  end)
end)

describe("the time guard at load", function()
  local it_stops = build.stopping(it, pending)

  local function load_error(source)
    local folder = live.folder()
    local file = assert(io.open(folder .. "/app.lua", "wb"))
    file:write(source)
    file:close()
    local pipe = assert(io.popen(live.command("check " .. folder .. " 2>&1", "PHOTON_LUA_BUDGET=0.2")
      .. "; echo exit $?"))
    local text = pipe:read "*a"
    pipe:close()
    os.execute("rm -rf " .. folder)
    return text
  end

  for name, code in pairs {
    ["a loop"] = "while true do end",
    ["a pattern"] = "(('a'):rep(40)):find(('a?'):rep(40) .. ('a'):rep(40))",
    ["a loop in a pcall"] = "while true do pcall(function() while true do end end) end",
  } do
    it_stops("stops " .. name, function()
      local text = load_error(code .. "\nreturn require 'photon'.app()")
      assert.truthy(text:find("ran over lua_budget", 1, true), text)
      assert.truthy(text:find("exit 1\n", 1, true), text)
    end)
  end
end)

describe("the jump out of Lua", function()
  if build.stops_loops then return programs.define("guard_stress", it) end
  build.stopping(it, pending) "leaves every state sound"
end)

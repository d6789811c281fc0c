-- A heap at its limit (lua_memory) costs the request that meets it, wherever that is; the next ones
-- are answered.
local survive = require "spec.survive"

local HEAD = [[
local photon = require "photon"
local app = photon.app { lua_memory = 6 * 1024 * 1024, max_body = 64 * 1024 * 1024 }
local function eat() local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end end
local function eat_tables() local t = {} while true do t[#t + 1] = { {}, {}, #t } end end
local function nothing() end
local kept
app:get("/ok", function() return "ok" end)
app:get("/pace", function()
  local pace = collectgarbage("setstepmul", 200)
  collectgarbage("setstepmul", pace)
  return ("%d"):format(pace)
end)
app:get("/ok/:a", function(req) return { a = req.params.a } end)

local function deep(n) return 1 + deep(n + 1) end
jit.off(deep)
local finalized, without_room, overflows = 0, 0, 0
local function finalize()
  finalized = finalized + 1
  if not pcall(unpack, {}, 1, 500) then without_room = without_room + 1 end
end
local function overflow(kept_kb)
  local keep = {}
  while collectgarbage "count" < kept_kb do keep[#keep + 1] = ("x"):rep(200) .. #keep end
  for _ = 1, 10 do getmetatable(newproxy(true)).__gc = finalize end
  return deep(1), keep
end
-- With a full stack, half a MB, some come to where the collector is hurried while the error is handled.
app:get("/overflows", function()
  local hurried = 6 * 1024 * 3 / 4
  for kb = hurried - 768, hurried - 384, 4 do
    collectgarbage()
    local _, err = photon.spawn(overflow, kb):join()
    if tostring(err):find ":%d+: stack overflow" then overflows = overflows + 1 end
  end
  collectgarbage()
  return table.concat({ overflows, finalized, without_room }, " ")
end)
]]

-- Name, handler, status (false: whatever; the connection may break).
local ways = {
  { "strings", [[eat()]], 500 },
  { "tables", [[eat_tables()]], 500 },
  { "one string", [[return ("x"):rep(3e7)]], 500 },
  { "a string that doubles", [[local s = "x" while true do s = s .. s end]], 500 },
  { "one table", [[local t = {} for i = 1, 1e8 do t[i] = i end]], 500 },
  { "coroutines", [[local t = {} while true do t[#t + 1] = coroutine.create(print) end]], 500 },
  { "closures", [[local t = {} while true do t[#t + 1] = function() return t end end]], 500 },
  { "cdata", [[local t = {} while true do t[#t + 1] = require("ffi").new("char[?]", 1000) end]], 500 },
  { "a call stack", [[local function f(...) return f(1, ...) + 1 end return f()]], 500 },
  { "code",
    [[local t = {} while true do t[#t + 1] = assert(load("return function() return " .. #t .. " end")) end]], 500 },
  { "what pcall catches", [[for _ = 1, 3 do pcall(eat) end return "x"]], false },
  { "what pcall catches, kept", [[kept = {} pcall(function() while true do kept[#kept + 1] = {} end end) kept = nil
    return "x"]], false },
  { "a table of JSON", [[local t = {} for i = 1, 2e5 do t[i] = i end kept = nil return photon.json.encode(t)]], false },
  { "decoded JSON", [=[return type(photon.json.decode("[" .. ("[],"):rep(3e5) .. "[]]"))]=], false },
  { "a big reply", [[return ("x"):rep(2e6)]], 200 },
  { "a big table as a reply",
    [[local t = {} while true do t[#t + 1] = { x = #t } if #t > 1e6 then return t end end]], 500 },
  { "the body", [[return tostring(#req:body())]], false, body = ("x"):rep(2e7) },
  { "the body as JSON", [[return tostring(req:json())]], false, body = "[" .. ("[1],"):rep(4e5) .. "1]",
    type = "application/json" },
  { "a task", [[photon.spawn(eat) photon.sleep(0.05) return "x"]], 200 },
  { "a joined task", [[return tostring(photon.spawn(eat):join())]], false },
  { "many tasks", [[for _ = 1, 1e5 do photon.spawn(photon.sleep, 5) end]], 500 },
  { "many timers", [[for _ = 1, 1e5 do photon.after(5, nothing) end]], 500 },
  { "many deferred", [[while true do photon.defer(nothing) end]], 500 },
  { "deferred", [[photon.defer(eat) return "x"]], 200 },
  { "a timer", [[photon.after(0, eat) photon.sleep(0.05) return "x"]], 200 },
  { "req:on_close", [[req:on_close(eat) return "x"]], 200 },
  { "many functions of req:on_close", [[while true do req:on_close(nothing) end]], 500 },
  { "a stream before its head", [[return photon.stream(eat)]], 500 },
  { "a stream", [[return photon.stream(function(s) s:send "x" s:flush() eat() end)]], 200 },
  { "one event", [[return photon.stream(function(s) s:send(("x"):rep(3e7)) end)]], false },
  { "an event of JSON", [[return photon.stream(function(s) local t = {} for i = 1, 3e5 do t[i] = i end s:send(t) end)]],
    false },
  { "stream:on_close", [[return photon.stream(function(s) s:on_close(eat) s:send "x" end)]], 200 },
  { "a luv callback", [[local t = require("luv").new_timer() t:start(0, 0, function() t:close() eat() end)
    photon.sleep(0.05) return "x"]], 200 },
  { "a coroutine", [[return coroutine.wrap(eat)()]], 500 },
  { "a coroutine that waited", [[return coroutine.wrap(function() photon.sleep(0) eat() end)()]], 500 },
  { "an error handler", [[xpcall(error, eat) return "x"]], false },
  { "__tostring of an error", [[error(setmetatable({}, { __tostring = eat }))]], 500 },
  { "__gc", [[getmetatable(newproxy(true)).__gc = eat pcall(collectgarbage) return "x"]], false },
  { "a collector that is stopped", [[collectgarbage "stop" for i = 1, 1e5 do local _ = ("x"):rep(1000) .. i end
    collectgarbage "restart" return "x"]], 200 },
  { "garbage beside much that lives", [[local t = {} for i = 1, 2000 do t[i] = ("x"):rep(1000) .. i end
    for i = 1, 1e5 do local _ = ("y"):rep(1000) .. i end return #t .. ""]], 200 },
  { "garbage of code that is not compiled", [[jit.off(true, true) collectgarbage "stop"
    for i = 1, 1e5 do local _ = ("x"):rep(1000) .. i end collectgarbage "restart" return "x"]], 200 },
  { "middleware", [[return "x"]], 500, scope = "g:use(eat)" },
  { "on_error", [[error "first"]], 500, scope = "g:on_error(eat)" },
}

local function source()
  local text = { HEAD }
  for i, way in ipairs(ways) do
    text[#text + 1] = ("app:group('/%d', function(g) %s g:any('/x', function(req) %s end) end)"):format(i,
      way.scope or "", way[2])
  end
  text[#text + 1] = "return app"
  return table.concat(text, "\n")
end

describe("a heap at its limit, by", function()
  local server

  before_each(function() server = survive.revive(server, source()) end)
  teardown(function() server:stop() end)

  for index, way in ipairs(ways) do
    it(way[1] .. ", is no more after it", function()
      survive.try(server, way, "/" .. index .. "/x")
      survive.answers(server)
    end)
  end

  it("anything, has the usual pace of the collector after it: few long steps, that few events meet", function()
    survive.try(server, ways[1], "/1/x")
    survive.answers(server)
    assert.equal("2000", server:get("/pace").body)
  end)

  it("the handling of a full stack, is met without finalizers, which would find no room there", function()
    assert.equal("97 970 0", server:get("/overflows").body)
  end)

  it("anything, does not keep the server from stopping cleanly", function()
    server:signal "TERM"
    assert.equal(0, server:wait())
  end)
end)

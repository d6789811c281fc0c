-- Each function of LuaJIT's own library that calls Lua, and some of photon's: code that does not end is stopped under
-- each, interpreted or compiled.
local build = require "spec.build"
local live = require "spec.live"

local WAYS = {
  { "load", [[load(spin)]] },
  { "load, whose reader loads", [[local function f() return load(f) and f() end f()]] },
  { "load, in a loop", [[while true do load(spin) end]] },
  { "loadstring", [[loadstring("local spin = ... spin()")(spin)]] },
  { "require", [[package.preload[req.path] = spin require(req.path)]] },
  { "a package loader", [[table.insert(package.loaders, 1, spin) require "spec.none"]] },
  { "module", [[module("spec_module", spin)]] },
  { "pcall", [[while true do pcall(spin) end]] },
  { "xpcall", [[xpcall(spin, print)]] },
  { "xpcall's handler", [[xpcall(error, spin)]] },
  { "xpcall's handler, in a loop", [[while true do xpcall(error, spin) end]] },
  { "coroutine.wrap", [[coroutine.wrap(spin)()]] },
  { "coroutine.resume", [[coroutine.resume(coroutine.create(spin))]] },
  { "coroutines in coroutines",
    [[local function f(n) if n == 0 then spin() end coroutine.wrap(f)(n - 1) end f(20)]] },
  { "coroutines without end", [[while true do coroutine.wrap(function() coroutine.yield() end)() end]] },
  { "string.gsub", [[("a"):gsub("a", spin)]] },
  { "string.gsub with a table", [[("a"):gsub("a", setmetatable({}, { __index = spin }))]] },
  { "string.format", [[("%s"):format(setmetatable({}, { __tostring = spin }))]] },
  { "tostring", [[tostring(setmetatable({}, { __tostring = spin }))]] },
  { "table.sort", [[table.sort({ 3, 1, 2 }, spin)]] },
  { "table.sort with metamethods", [[local m = { __lt = spin }
    table.sort { setmetatable({}, m), setmetatable({}, m), setmetatable({}, m) }]] },
  { "table.foreach", [[table.foreach({ 1 }, spin)]] },
  { "table.foreachi", [[table.foreachi({ 1 }, spin)]] },
  { "os.time", [[os.time(setmetatable({}, { __index = spin }))]] },
  { "metamethods", [[return setmetatable({}, { __concat = spin }) .. setmetatable({}, { __index = spin }).x]] },
  { "an iterator", [[for _ in spin do end]] },
  { "a finalizer", [[getmetatable(newproxy(true)).__gc = spin while true do collectgarbage() end]] },
  { "a finalizer of cdata",
    [[require("ffi").gc(require("ffi").new "int[1]", spin) collectgarbage() collectgarbage()]] },
  { "a finalizer, at a step of the collector",
    [[getmetatable(newproxy(true)).__gc = spin while true do collectgarbage("step", 100) end]] },
  { "a metatype", [[return require("ffi").metatype("struct { int guard_calls; }", { __index = spin })().x]] },
  { "jit.attach", [[jit.attach(spin, "bc") load "return 1"]] },
  { "jit.attach to traces", [[jit.attach(spin, "trace") local n = 0 for i = 1, 1e6 do n = n + i end]],
    compiles = true },
  { "debug.sethook", [[debug.sethook(spin, "l") local _ = 1
    _ = 2]] },
  { "debug.sethook, counting", [[jit.off(true, true) debug.sethook(spin, "", 10) for _ = 1, 1e9 do end]] },
  { "debug.sethook, taken away in a loop", [[jit.off(true, true) while true do debug.sethook() end]] },
  { "photon.json", [[while true do photon.json.decode(photon.json.encode { 1, { x = 1 } }) end]] },
  { "photon.log", [[photon.log.debug(setmetatable({}, { __tostring = spin }))]] },
  { "photon.defer", [[photon.defer(spin)]], 200 },
  { "req:on_close", [[req:on_close(spin)]], 200 },
}

local HEAD = [[
local photon = require "photon"
local app = photon.app { lua_budget = 0.15 }
local compiled = function() while true do end end
local interpreted = function() while true do end end
jit.off(interpreted)
app:get("/ok", function() return "ok" end)
]]

local function source()
  local text = { HEAD }
  for i, way in ipairs(WAYS) do
    for kind in pairs { compiled = true, interpreted = true } do
      text[#text + 1] = ("app:get('/%s/%d', function(req) local spin = %s %s return 'ended' end)"):format(kind, i, kind,
        way[2]:gsub("return (.*)$", "local _ = %1"))
    end
  end
  text[#text + 1] = "return app"
  return table.concat(text, "\n")
end

describe("the time guard stops what does not end under", function()
  local server
  setup(function() server = live.start { source = source() } end)
  teardown(function() server:stop() end)

  for i, way in ipairs(WAYS) do
    build.stopping(it, pending)(way[1], function()
      if way.compiles and build.is_hostile then return pending "a hostile build compiles nothing" end
      for _, kind in ipairs { "interpreted", "compiled" } do
        assert.equal(way[3] or 503, server:get(("/%s/%d"):format(kind, i)).status, kind)
        assert.equal("ok", server:get("/ok").body, kind)
      end
    end)
  end
end)

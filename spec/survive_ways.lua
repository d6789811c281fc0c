-- Ways to go wrong in Lua, each a route of one app: { name, code of the handler (it gets req), the
-- status that the client gets; false: whatever, the connection may break }. `before` is code before
-- the routes, `fields` are request headers.
return {
  -- Errors, and what is no usual error value
  { "error with a string", [[error "boom"]], 500 },
  { "error with a table", [[error { code = 7 }]], 500 },
  { "error with nil", [[error(nil)]], 500 },
  { "error with false", [[error(false)]], 500 },
  { "error with a number", [[error(404)]], 500 },
  { "error with a function", [[error(print)]], 500 },
  { "error with a coroutine", [[error(coroutine.create(print))]], 500 },
  { "error with the request", [[error(req)]], 500 },
  { "error with a userdata whose __tostring raises",
    [[local u = newproxy(true) getmetatable(u).__tostring = function() error "no" end error(u)]], 500 },
  { "error with a table whose __tostring raises itself",
    [[local t t = setmetatable({}, { __tostring = function() error(t) end }) error(t)]], 500 },
  { "error with a table whose __tostring returns a table",
    [[error(setmetatable({}, { __tostring = function() return {} end }))]], 500 },
  { "error with a table whose __index raises",
    [[error(setmetatable({}, { __index = function() error "no" end }))]], 500 },
  { "error with a cdata whose __tostring raises", [[local ffi = require "ffi"
    local T = ffi.metatype("struct { int x; }", { __tostring = function() error "no" end }) error(T(1))]], 500 },
  { "error with an int64", [[error(1LL)]], 500 },
  { "error with a huge string", [[error(("x"):rep(1e6))]], 500 },
  { "error with bytes of no encoding", [[error "\0\r\n\255"]], 500 },
  { "error with a message of percent signs", [[error "%s%n%d"]], 500 },
  { "a call of nil", [[local f f()]], 500 },
  { "arithmetic on a table", [[return {} + 1]], 500 },
  { "a problem with an odd status", [[error(photon.problem(99, "x"))]], 500 },
  { "a problem whose extra cannot be encoded", [[error(photon.problem(400, "x", { f = print }))]], 500 },

  -- Results
  { "a function as a result", [[return print]], 500 },
  { "a cyclic table", [[local t = {} t.t = t return t]], 500 },
  { "a table with NaN", [[return { 0 / 0 }]], 500 },
  { "a header with a line feed", [[return "x", 200, { ["x-a"] = "1\r\nx-b: 2" }]], 500 },
  { "a header of a function", [[return "x", 200, { ["x-a"] = print }]], 500 },
  { "headers whose __index raises",
    [[return "x", 200, setmetatable({}, { __index = function() error "no" end })]], 200 },
  { "a thousand headers", [[local h = {} for i = 1, 1000 do h["x-" .. i] = "v" end return "x", 200, h]], 500 },
  { "a huge status", [[return "x", 1e300]], 500 },
  { "very many results", [[local t = {} for i = 1, 5000 do t[i] = i end return unpack(t)]], 500 },
  { "a very deep table", [[local t = {} for _ = 1, 1e5 do t = { t } end return t]], 500 },

  -- Stacks
  { "endless recursion", [[local function f() return 1 + f() end return f()]], 500 },
  { "endless recursion in an error handler", [[local function f() return 1 + f() end xpcall(f, f) error "x"]], 500 },
  { "deep nesting of pcall", [[local function f(n) if n == 0 then error "deep" end return pcall(f, n - 1) end
    return tostring(f(1e5))]], 200 },
  { "recursion through gsub", [[local function f(s) return (s:gsub(".", f)) end return f "x"]], 500 },
  { "recursion through gsub on a stack that was full before", [[
    local function fill() return 1 + fill() end
    local function f(s) return string.gsub(s, s, f) end
    pcall(fill)
    return f "x"]], 500 },
  { "recursion through sort",
    [[local function f() table.sort({ 1, 2, 3 }, f) return true end f() return "x"]], 500 },
  { "recursion through metamethods",
    [[local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k .. "x"] end
    return t.a]], 500 },
  { "recursion through tostring",
    [[local t = setmetatable({}, { __tostring = function(t) return tostring(t) .. "x" end })
    return tostring(t)]], 500 },
  { "recursion through coroutines",
    [[local function f() return coroutine.wrap(f)() end return f()]], false },
  { "an unpack of too much", [[return unpack({}, 1, 1e8)]], 500 },
  { "a string of too much", [[return ("x"):rep(2e9)]], 500 },
  { "a comparator that raises", [[table.sort({ 3, 2, 1 }, function() error "no" end)]], 500 },
  { "a comparator without order", [[local t = {} for i = 1, 200 do t[i] = i % 7 end
    table.sort(t, function() return true end) return "x"]], false },
  { "a pattern too complex", [[return (("x"):rep(3e5):find(("x?"):rep(3e5) .. "y"))]], 500 },
  { "a pattern that ends too early", [[return ("x"):match "%"]], 500 },
  { "bytecode that is none", [[return load("\27LJ\2\2junk junk junk")()]], 500 },
  { "source nested too deep", [[return load("return " .. ("("):rep(1e5))()]], 500 },
  { "a __gc that raises", [[local function make() getmetatable(newproxy(true)).__gc = function() error "gc" end end
    for _ = 1, 20 do pcall(make) end for _ = 1, 40 do pcall(collectgarbage) end return "x"]], 200 },
  { "a __gc that raises nil, some day",
    [[for _ = 1, 20 do getmetatable(newproxy(true)).__gc = function() error() end end
    return "x"]], false, after = "collect" },
  { "a __gc that waits", [[getmetatable(newproxy(true)).__gc = function() photon.sleep(0.01) end
    pcall(collectgarbage) pcall(collectgarbage) return "x"]], 200 },
  { "a __gc that spawns", [[getmetatable(newproxy(true)).__gc = function() photon.spawn(error, "spawned") end
    pcall(collectgarbage) pcall(collectgarbage) return "x"]], 200 },
  { "a __gc when the server ends", [[local u = newproxy(true) getmetatable(u).__gc = function()
    photon.spawn(print) photon.after(1, print) require("luv").new_timer() error "late" end
    kept[#kept + 1] = u return "x"]], 200 },

  -- Waits where none can be
  { "a wait in gsub", [[return (("x"):gsub("x", function() photon.sleep(0) end))]], 500 },
  { "a wait in sort", [[table.sort({ 2, 1 }, function() photon.sleep(0) end)]], 500 },
  { "a wait in __index",
    [[return setmetatable({}, { __index = function() photon.sleep(0) return "waited" end }).x]], 200 },
  { "a wait in __lt", [[local m = { __lt = function() photon.sleep(0) return true end }
    return tostring(setmetatable({}, m) < setmetatable({}, m))]], 200 },
  { "a wait in __concat",
    [[return setmetatable({}, { __concat = function() photon.sleep(0) return "waited" end }) .. "x"]],
    200 },
  { "a wait in __tostring",
    [[return tostring(setmetatable({}, { __tostring = function() photon.sleep(0) return "" end }))]],
    200 },
  { "a wait in a for iterator", [[for x in function(_, i) photon.sleep(0) return not i or nil end do kept.x = x end
    return "waited"]], 200 },
  { "a wait in coroutine.wrap", [[for x in coroutine.wrap(function() photon.sleep(0) coroutine.yield(1) end) do
    kept.x = x end return "waited"]], 200 },
  { "a wait in a coroutine in gsub",
    [[return (("x"):gsub("x", coroutine.wrap(function() photon.sleep(0) return "y" end)))]], 500 },
  { "a wait in pcall", [[return tostring(pcall(photon.sleep, 0))]], 200 },
  { "a wait in an error handler", [[xpcall(error, function() photon.sleep(0) end) return "x"]], 200 },
  { "a wait in require", [[package.preload.waits = function() photon.sleep(0) end require "waits"]], 500 },
  { "a wait in load", [[return load(function() photon.sleep(0) end)()]], 204 },
  { "a wait in string.dump", [[return string.dump(function() end, photon.sleep(0)) and "x"]], 200 },
  { "a wait in a nested coroutine that then raises",
    [[coroutine.wrap(function() coroutine.wrap(function() photon.sleep(0) error "inner" end)() end)()]], 500 },
  { "a yield outside of a coroutine", [[coroutine.yield(1)]], 500 },
  { "a yield in gsub", [[("x"):gsub("x", coroutine.yield)]], 500 },
  { "a yield in an error handler", [[xpcall(error, coroutine.yield) return "x"]], 200 },
  { "a yield of what a wait yields", [[local co = coroutine.create(function() photon.sleep(0) return "waited" end)
    return select(2, coroutine.resume(co))]], 200 },
  { "a resume of the running coroutine", [[return tostring(coroutine.resume(coroutine.running()))]], 200 },
  { "a resume of a waiting task", [[local co photon.spawn(function() co = coroutine.running() photon.sleep(0.02) end)
    photon.sleep(0.005) return tostring(co and coroutine.resume(co))]], 200 },
  { "photon.wait by hand", [[require "photon.wait"()]], 500 },
  { "a sleep of NaN", [[photon.sleep(0 / 0)]], 500 },
  { "a sleep of minus infinity", [[photon.sleep(-math.huge)]], 204 },

  -- Tasks and callbacks
  { "an error in a task that nobody joins", [[photon.spawn(error, "alone") photon.sleep(0) return "x"]], 200 },
  { "an error in a joined task", [[local _, err = photon.spawn(error, { 1 }):join() return type(err)]], 200 },
  { "an error in defer", [[photon.defer(function() error "deferred" end) return "x"]], 200 },
  { "an endless recursion in defer", [[local function f() return 1 + f() end photon.defer(f) return "x"]], 200 },
  { "an error in req:on_close", [[req:on_close(function() error "closing" end) return "x"]], 200 },
  { "an error in photon.after", [[photon.after(0, function() error "timer" end) photon.sleep(0.005) return "x"]], 200 },
  { "an error in photon.every", [[local t = photon.every(0.001, function() error(nil) end) photon.sleep(0.01) t:stop()
    return "x"]], 200 },
  { "an error in photon.timeout", [[photon.timeout(1, error, "late")]], 500 },
  { "an error in photon.await", [[photon.await(function() error "awaiting" end)]], 500 },
  { "a resume called twice",
    [[return photon.await(function(resume) resume "x" resume "y" photon.after(0, resume) end)]],
    200 },
  { "a resume called long after", [[local r photon.await(function(resume) r = resume resume() end)
    photon.after(0.02, r) return "x"]], 200 },
  { "a task that joins itself", [[local t t = photon.spawn(function() t:join() end) photon.sleep(0.002) t:cancel()
    return "x"]], 200 },
  { "a task cancelled twice", [[local t = photon.spawn(photon.sleep, 9) t:cancel() t:cancel() photon.sleep(0) t:cancel()
    return "x"]], 200 },
  { "an error in a luv callback", [[local t = require("luv").new_timer()
    t:start(0, 0, function() t:close() error { "luv" } end) photon.sleep(0.01) return "x"]], 200 },
  { "an endless recursion in a luv callback",
    [[local t = require("luv").new_timer() local function f() return 1 + f() end
    t:start(0, 0, function() t:close() f() end) photon.sleep(0.02) return "x"]], 200 },
  { "a luv handle used after its end", [[local uv = require "luv" local h = uv.new_idle() h:close() photon.sleep(0.01)
    h:start(print) h:stop() h:close()]], 500 },
  { "a luv handle of the wrong kind", [[require("luv").timer_start(require("luv").new_idle(), 1, 1, print)]], 500 },
  { "a luv function given a file", [[require("luv").is_active(io.stdout)]], 500 },
  { "a luv callback that is no function", [[require("luv").new_timer():start(1, 1, 5)]], 500 },
  { "offloaded code that raises", [[return tostring(photon.offload("no.such.module", "f"))]], false },

  -- Handles
  { "a forged request", [[return tostring(setmetatable({ 12345 }, getmetatable(req)):body())]], 200 },
  { "a forged request with no number", [[return tostring(setmetatable({ "x" }, getmetatable(req)).path)]], 200 },
  { "a forged request with NaN", [[return tostring(setmetatable({ 0 / 0 }, getmetatable(req)).headers)]], 200 },
  { "forged handles by the thousand", [[local m, n = getmetatable(req), 0
    for i = 1, 5000 do if setmetatable({ i * 1048576 + i % 64 }, m).path then n = n + 1 end end
    return type(n)]], 200 },
  { "a method of streams on a request", [[return photon.stream(function(s) s.send(req, "x") end)]], 200 },
  { "a method of requests on nothing", [[return getmetatable(req).__index({}, "path")]], 204 },
  { "a method of requests on a number", [[return tostring(req.body(1))]], 500 },
  { "a metatable set on the request", [[setmetatable(req, { __index = error, __gc = error }) return "x"]], 200 },
  { "a request without its handle", [[req[1] = nil return tostring(req:body())]], 200 },
  { "a request whose handle was changed", [[req[1] = req[1] + 1 return tostring(req.path)]], 200 },
  { "the request after its end", [[photon.spawn({ detached = true }, function() photon.sleep(0.005)
    kept.late = { req.path, req:body(), req.headers, tostring(req) } req:on_close(print) end) return "x"]], 200 },
  { "the stream after its end", [[return photon.stream(function(s) photon.spawn({ detached = true }, function()
    photon.sleep(0.005) s:send "x" s:flush() s:close() s:on_close(print) s:event { data = "x" } end) end)]], 200 },
  { "a task object that was forged", [[local t = photon.spawn(print) local T = getmetatable(t)
    T.cancel(setmetatable({ io.stdout, 1 }, T)) T.join(setmetatable({ 5, 5, is_done = true }, T))]], 500 },

  -- Streams
  { "an error before a stream's head", [[return photon.stream(function() error "early" end)]], 500 },
  { "an error after a stream's head",
    [[return photon.stream(function(s) s:send "x" s:flush() error "late" end)]], 200 },
  { "an endless recursion in a stream", [[return photon.stream(function(s) s:send "x" s:flush()
    local function f() return 1 + f() end f() end)]], 200 },
  { "a stream of no function", [[return photon.stream(5)]], 500 },
  { "a stream with odd settings",
    [[return photon.stream({ heartbeat = math.huge, buffer = math.huge, max_duration = 1e300, retry = 1e15 },
    function(s) s:send "x" end)]], 200 },
  { "a stream with a setting of NaN", [[return photon.stream({ heartbeat = 0 / 0 }, print)]], 500 },
  { "a stream with a type of two lines", [[return photon.stream({ type = "a/b\r\nx: y" }, print)]], 500 },
  { "an event with a line feed", [[return photon.stream(function(s) s:send("a\nb", "x") end)]], 500 },
  { "an event that cannot be encoded", [[return photon.stream(function(s) s:send { print } end)]], 500 },
  { "an error in stream:on_close", [[return photon.stream(function(s) s:on_close(error) s:send "x" end)]], 200 },
  { "a stream closed twice", [[return photon.stream(function(s) s:close() s:close() s:send "x" end)]], 200 },
  { "a yield in a stream", [[return photon.stream(function(s) s:send "x" coroutine.yield() end)]], false },

  -- The library underneath
  { "os.exit", [[os.exit(1)]], 500 },
  { "collectgarbage stop", [[collectgarbage "stop" return "x"]], 200 },
  { "a hook that raises", [[debug.sethook(function() error "hook" end, "l") return "x"]], false },
  { "a hook that stays", [[debug.sethook(function() end, "crl") return "x"]], 200 },
  { "the hook is taken away", [[debug.sethook() return "x"]], 200 },
  { "a write to the registry", [[debug.getregistry()[1] = nil]], 500 },
  { "an upvalue of a C function", [[return tostring((debug.setupvalue(require("photon.core").sleep, 1, nil)))]], 200 },
  { "a metatable of a userdata", [[debug.setmetatable(io.stdout, {})]], 500 },
  { "a metatable for strings", [[local m = getmetatable "" local old = m.__index m.__index = nil
    local ok = pcall(function() return ("x"):upper() end) m.__index = old return tostring(ok)]], 200 },
  { "locals of the callers",
    [[for level = 2, 6 do for i = 1, 9 do pcall(debug.setlocal, level, i, false) end end]], false },
  { "globals that are gone", [[local p, t = pcall, tostring pcall, tostring = nil, nil
    local ok = p(error, {}) pcall, tostring = p, t return t(ok)]], 200 },
  { "an error without pcall and tostring", [[local p, t = pcall, tostring
    photon.after(0.01, function() pcall, tostring = p, t end) pcall, tostring = nil, nil error {}]], 500 },
  { "package.loaded without the library", [[package.loaded["photon.task"], package.loaded["photon.core"] = nil, nil
    return "x"]], 200 },
  { "a middleware that raises", [[return "x"]], 500, path = "/raising/one" },
  { "a middleware that returns nothing", [[return "x"]], 500, path = "/empty/one" },
  { "an on_error that raises", [[error "first"]], 500, path = "/worse/one" },
  { "an on_error that recurses for ever", [[error "first"]], 500, path = "/deeper/one" },
  { "a body that is no JSON", [[req:json() return "x"]], 415, method = "POST", body = "{" },
}

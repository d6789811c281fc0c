-- Errors and what becomes of them: problems, bare 500s, on_error, not_found.
local build = require "spec.build"
local photon = require "photon"
local test = require "photon.test"

local function client_of(fn, prepare)
  local app = photon.app()
  if prepare then prepare(app) end
  app:get("/x", fn)
  return test.app(app)
end

local function get(fn, prepare)
  return client_of(fn, prepare):get("/x", { raise = false })
end

describe("a problem", function()
  local function check(res)
    assert.equal(404, res.status)
    assert.equal("application/problem+json", res.headers["content-type"])
    local body = res:json()
    assert.equal(res.headers["x-request-id"], body.request_id)
    body.request_id = nil
    assert.same({ type = "about:blank", title = "Not Found", status = 404, detail = "no such user",
      code = "user_missing" }, body)
  end

  it("is the same raised and returned", function()
    check(get(function() error(photon.problem(404, "no such user", { code = "user_missing" })) end))
    check(get(function() return photon.problem(404, "no such user", { code = "user_missing" }) end))
  end)

  it("may be made once for all requests", function()
    local missing = photon.problem(404, "gone")
    local client = client_of(function() error(missing) end)
    assert.equal("gone", client:get("/x"):json().detail)
    local first, second = client:get("/x"):json(), client:get("/x"):json()
    assert.not_equal(first.request_id, second.request_id)
  end)

  it("has a type and a title of its own when told", function()
    local body = get(function() return photon.problem(409, nil, { type = "/clash", title = "Clash" }) end):json()
    assert.equal("/clash", body.type)
    assert.equal("Clash", body.title)
    assert.is_nil(body.detail)
  end)

  it("is no 500 when its detail is not UTF-8", function()
    assert.equal(400, get(function() return photon.problem(400, "bad \255\192") end).status)
  end)

  it("is checked where it is made", function()
    assert.has_error(function() photon.problem(200) end)
    assert.has_error(function() photon.problem(400, {}) end)
    assert.has_error(function() photon.problem(400, "x", { status = 3 }) end)
  end)

  it("reads as text", function()
    assert.equal("404 Not Found: no such user", tostring(photon.problem(404, "no such user")))
  end)
end)

describe("a Lua error", function()
  it("is a bare 500", function()
    local res = get(function() error "secret" end)
    assert.equal(500, res.status)
    assert.equal("application/problem+json", res.headers["content-type"])
    assert.is_nil(res.body:find("secret", 1, true))
    assert.same({ "request_id", "status", "title", "type" }, (function()
      local names = {}
      for name in pairs(res:json()) do names[#names + 1] = name end
      table.sort(names)
      return names
    end)())
  end)

  it("may be any value", function()
    local bad = setmetatable({}, { __tostring = function() error "no" end })
    local worse = setmetatable({}, { __tostring = function() return {} end })
    for _, value in ipairs { 12, true, bad, worse, print, { code = 1 }, coroutine.create(print) } do
      assert.equal(500, get(function() error(value) end).status)
    end
    assert.equal(500, get(function() error() end).status)
  end)

  it("may be an overflow of the stack, wherever that is noticed, and names the line", function()
    local function deep(n) return 1 + deep(n + 1) end
    local function wide(a, b, c, d, e) return wide(b, c, d, e, a) + a + b + c + d + e end
    local through = setmetatable({}, { __index = function(t, k) return t[k] .. "x" end })
    local here = debug.getinfo(1, "l").currentline
    for line, fn in pairs {
      [here - 3] = function() return tostring(deep(1)) end,
      [here - 2] = function() return tostring(wide(1, 2, 3, 4, 5)) end,
      [here - 1] = function() return through.x end,
    } do
      local client = client_of(fn)
      assert.equal(500, client:get("/x", { raise = false }).status)
      for _ = 1, 10 do -- compiled by and by
        local ok, err = pcall(client.get, client, "/x")
        assert.is_false(ok)
        local message, place = err:match("^[^\n]*"), ("errors_spec.lua:%d: stack overflow"):format(line)
        assert.truthy(message:find(place, 1, true), message)
      end
    end
  end)

  it("of a full stack is handled without finalizers, which would find no room there", function()
    local function deep(n) return 1 + deep(n + 1) end
    jit.off(deep) -- compiled code may collect where it is left
    local finalized, on_full_stack = 0, 0
    local function finalize()
      finalized = finalized + 1
      if debug.getinfo(100, "l") then on_full_stack = on_full_stack + 1 end
    end
    local client = client_of(function()
      for _ = 1, 100 do getmetatable(newproxy(true)).__gc = finalize end
      local before = finalized
      repeat collectgarbage("step") until finalized > before -- so that whatever collects runs some
      return tostring(deep(1))
    end)
    for _ = 1, 10 do
      local _, err = pcall(client.get, client, "/x")
      local message = err:match("^[^\n]*")
      assert.truthy(message:find("errors_spec.lua:%d+: stack overflow"), message)
    end
    assert.equal(0, on_full_stack)
    collectgarbage()
    assert.equal(1000, finalized)
  end)

  it("of a full stack reaches who joins the task, with its line", function()
    local function wide(a, b, c, d, e) return wide(b, c, d, e, a) + a + b + c + d + e end
    local place = ("errors_spec.lua:%d: stack overflow"):format(debug.getinfo(1, "l").currentline - 1)
    for _ = 1, 20 do -- compiled by and by
      local joined, err = photon.spawn(wide, 1, 2, 3, 4, 5):join()
      assert.is_nil(joined)
      assert.equal(place, tostring(err):match "errors_spec.*", err)
    end
  end)

  -- The app's own, raised where the stack has room for `depth` calls: near its end the message handler
  -- finds too little. The ways differ in a slot.
  it("that finds no room to be handled holds no collection", function()
    local depth, enter, is_running
    local error = error -- busted finds a global by a function
    local function down(n)
      if n == 0 then error("stack overflow, says the app", 0) end
      return 1 + down(n - 1)
    end
    jit.off(down)
    local client = client_of(function()
      photon.defer(function()
        is_running = collectgarbage "isrunning"
        collectgarbage "stop"
      end)
      return tostring(enter())
    end)
    local function message_at(n)
      depth = n
      local _, err = pcall(client.get, client, "/x")
      local was_stopped = not collectgarbage "isrunning"
      collectgarbage "restart"
      assert.is_true(is_running, n)
      assert.is_true(was_stopped or build.is_hostile, n) -- what the app has said holds, unless we collect ourselves
      return err:match "^[^\n]*"
    end
    for _, way in ipairs {
      function() return 1 + down(depth) end,
      function() return 1, 2 + down(depth) end,
      function() return 1, 2, 3 + down(depth) end,
    } do
      enter = way
      local most, over = 0, 65536
      while over - most > 1 do
        local middle = math.floor((most + over) / 2)
        if message_at(middle):find("says the app", 1, true) then most = middle else over = middle end
      end
      assert.truthy(most > 1000, most)
      for n = most - 20, most + 20 do message_at(n) end
    end
  end)

  it("is raised in the spec with its traceback", function()
    local client = client_of(function() error "boom" end)
    local ok, err = pcall(client.get, client, "/x")
    assert.is_false(ok)
    assert.truthy(tostring(err):find("boom", 1, true))
    assert.truthy(tostring(err):find("errors_spec.lua", 1, true))
  end)
end)

describe("on_error", function()
  it("gets what went wrong, and its result follows the rules of handlers", function()
    local seen
    local res = get(function() error "boom" end, function(app)
      app:on_error(function(err, req)
        seen = { err.status, err.message, type(err.trace), req.path }
        return { sorry = true }
      end)
    end)
    assert.equal(500, res.status)
    assert.same({ sorry = true }, res:json())
    assert.equal(500, seen[1])
    assert.truthy(seen[2]:find("boom", 1, true))
    assert.equal("string", seen[3])
    assert.equal("/x", seen[4])
  end)

  it("may give another status, or nothing for the default", function()
    assert.equal(418, get(function() error "x" end, function(app)
      app:on_error(function() return "tea", 418 end)
    end).status)
    local res = get(function() error(photon.problem(403, "no")) end, function(app)
      app:on_error(function() end)
    end)
    assert.equal(403, res.status)
    assert.equal("no", res:json().detail)
  end)

  it("sees problems by status and detail", function()
    local res = get(function() error(photon.problem(409, "clash")) end, function(app)
      app:on_error(function(err) return photon.html("<h1>" .. err.detail .. "</h1>") end)
    end)
    assert.equal(409, res.status)
    assert.equal("<h1>clash</h1>", res.body)
  end)

  it("is a bare 500 when it fails itself", function()
    for _, fail in ipairs { function() error "again" end, function() error(photon.problem(403)) end,
      function() return true end } do
      local res = get(function() error "x" end, function(app) app:on_error(fail) end)
      assert.equal(500, res.status)
      assert.equal("application/problem+json", res.headers["content-type"])
    end
  end)

  it("is asked of the nearest group", function()
    local app = photon.app()
    app:on_error(function() return "outer" end)
    app:group("/a", function(group)
      group:on_error(function() return "inner" end)
      group:get("/x", function() error "x" end)
      group:group("/b", function(deeper) deeper:get("/x", function() error "x" end) end)
    end)
    app:get("/x", function() error "x" end)
    local client = test.app(app)
    assert.equal("inner", client:get("/a/x").body)
    assert.equal("inner", client:get("/a/b/x").body)
    assert.equal("outer", client:get("/x").body)
  end)

  it("answers for a stream whose function fails before anything has left", function()
    local app = photon.app()
    local function who(name) return function(err) return name .. " " .. err.status, err.status end end
    app:on_error(who "outer")
    app:sse("/refused", function() error(photon.problem(401, "who are you?")) end)
    app:sse("/staged", function(stream) stream:send "x" error "too late for nobody" end)
    app:get("/returned", function() return photon.stream(function() error(photon.problem(403, "no")) end) end)
    app:group("/in", function(group)
      group:on_error(who "inner")
      group:use(function(_, inner) return inner(_) end)
      group:sse("/refused", function() error(photon.problem(401, "who are you?")) end)
    end)
    app:sse("/begun", function(stream)
      stream:send "x"
      photon.sleep(0)
      error "too late"
    end)
    local client = test.app(app)
    local function answer(path)
      local res = client:get(path, { raise = false })
      return res.status, res.body
    end
    assert.same({ 401, "outer 401" }, { answer "/refused" })
    assert.same({ 500, "outer 500" }, { answer "/staged" })
    assert.same({ 403, "outer 403" }, { answer "/returned" })
    assert.same({ 401, "inner 401" }, { answer "/in/refused" })
    local begun = client:sse("/begun", { raise = false })
    assert.equal(200, begun.status)
    assert.equal("x", begun:next().data)
    assert.is_nil(begun:next())
  end)

  it("answers for unknown paths and methods, which keep their Allow", function()
    local app = photon.app()
    app:on_error(function(err) return "sorry " .. err.status end)
    app:get("/x", function() return "x" end)
    local client = test.app(app)
    local res = client:get("/y")
    assert.equal(404, res.status)
    assert.equal("sorry 404", res.body)
    res = client:post("/x")
    assert.equal(405, res.status)
    assert.equal("sorry 405", res.body)
    assert.truthy(res.headers.allow:find("GET", 1, true))
  end)

  it("does not see what handlers answer in good order", function()
    local function prepare(app) app:on_error(function() return "seen", 500 end) end
    assert.equal(404, get(function() return nil, 404 end, prepare).status)
    assert.equal(303, get(function() error(photon.redirect "/y") end, prepare).status)
  end)
end)

describe("not_found", function()
  local function missing(fn)
    local app = photon.app()
    app:not_found(fn)
    app:get("/x", function() return "x" end)
    return test.app(app):get("/y", { raise = false })
  end

  it("is 404 unless it says otherwise", function()
    assert.equal(404, missing(function() return "no" end).status)
    assert.equal(404, missing(function() return photon.html "no" end).status)
    assert.equal("no /y", missing(function(req) return "no " .. req.path end).body)
    assert.equal(200, missing(function() return "yes", 200 end).status)
    assert.equal(404, missing(function() end):json().status)
    assert.equal(500, missing(function() error "x" end).status)
  end)

  it("leaves 405 alone", function()
    local app = photon.app()
    app:not_found(function() return "no" end)
    app:get("/x", function() return "x" end)
    local res = test.app(app):post("/x")
    assert.equal(405, res.status)
    assert.truthy(res.headers.allow)
  end)
end)

-- What apps register: routes, groups, mounts, fixed replies, settings; and mistakes found at load.
local photon = require "photon"
local compile = require "photon.compile"
local test = require "photon.test"

local function refused(message, fn)
  local ok, err = pcall(fn)
  assert.is_false(ok, "nothing was refused")
  assert.truthy(tostring(err):find(message, 1, true), "another message: " .. tostring(err))
  return tostring(err)
end

local function line_here()
  return debug.getinfo(2, "l").currentline
end

describe("routes", function()
  local app = photon.app()
  app:get("/users/:id", function(req) return { id = req.params.id } end)
  app:get("/users/me", function() return "me" end)
  app:delete("/users/:key", function(req) return req.params end)
  app:any("/any", function(req) return req.method end)
  app:route("PURGE", "/cache/*rest", function(req) return req.params.rest end)
  app:get("/plain", function(req) return { has = next(req.params) ~= nil } end)
  app:group("/api", function(group)
    group:get("", function() return "root" end)
    group:get("/", function() return "slash" end)
    group:group("/v1/:team", function(inner)
      inner:get("/:id", function(req) return req.params.team .. "/" .. req.params.id end)
    end)
  end)
  local client = test.app(app)

  it("give parameters, decoded after the path was split", function()
    assert.same({ id = "42" }, client:get("/users/42"):json())
    assert.same({ id = "a/b c" }, client:get("/users/a%2Fb%20c"):json())
    assert.equal("me", client:get("/users/me").body)
  end)

  it("keep the parameter names of each method apart", function()
    assert.same({ key = "7" }, client:delete("/users/7"):json())
  end)

  it("answer any method, other tokens, and the rest of a path", function()
    assert.equal("PUT", client:request("PUT", "/any").body)
    assert.equal("a/b", client:request("PURGE", "/cache/a/b").body)
    assert.same({ has = false }, client:get("/plain"):json())
  end)

  it("stand under the prefixes of their groups", function()
    assert.equal("root", client:get("/api").body)
    assert.equal("slash", client:get("/api/").body)
    assert.equal("red/9", client:get("/api/v1/red/9").body)
  end)

  it("answer HEAD like GET without a body", function()
    local res = client:request("HEAD", "/users/me")
    assert.equal(200, res.status)
    assert.equal("2", res.headers["content-length"])
    assert.equal("", res.body)
  end)

  it("answer 404 and 405 by themselves", function()
    assert.equal(404, client:get("/nowhere").status)
    assert.equal(405, client:post("/users/me").status)
  end)
end)

describe("compiled routes", function()
  local function find(compiled, pattern)
    for _, route in ipairs(compiled.routes) do
      if route.pattern == pattern then return route end
    end
  end

  it("call the app's own function where nothing stands before it", function()
    local app = photon.app()
    local function handler() return "x" end
    app:get("/x", handler)
    assert.equal(handler, find(compile(app), "/x").handler)
  end)

  it("name the line of their registration, through groups and mounts", function()
    local inner, app, lines = photon.app(), photon.app(), {}
    inner:get("/m", function() end) lines.mounted = line_here()
    app:get("/a", function() end) lines.direct = line_here()
    app:group("/g", function(group)
      group:get("/b", function() end) lines.grouped = line_here()
    end)
    app:mount("/in", inner)
    local compiled = compile(app)
    assert.truthy(find(compiled, "/a").place:find("routes_spec.lua:" .. lines.direct .. "$"))
    assert.truthy(find(compiled, "/g/b").place:find("routes_spec.lua:" .. lines.grouped .. "$"))
    assert.truthy(find(compiled, "/in/m").place:find("routes_spec.lua:" .. lines.mounted .. "$"))
  end)

  it("tell kinds, limits and whether Lua is entered", function()
    local app = photon.app()
    app:static("/s", "text")
    app:sse("/e", function() end)
    app:post("/p", { max_body = "2 MiB" }, function() end)
    app:metrics("/metrics")
    app:health("/healthz")
    local compiled = compile(app)
    assert.equal("fixed", find(compiled, "/s").kind)
    assert.is_false(find(compiled, "/s").enters_lua)
    assert.equal("stream", find(compiled, "/e").kind)
    assert.is_true(find(compiled, "/e").enters_lua)
    assert.equal(2 * 1024 * 1024, find(compiled, "/p").max_body)
    assert.equal("metrics", find(compiled, "/metrics").kind)
    assert.equal("health", find(compiled, "/healthz").kind)
    assert.is_nil(compiled.fallback)
  end)

  it("keep the hooks of mounted apps, each once", function()
    local inner, app = photon.app(), photon.app()
    inner:on_start(function() end)
    inner:every(5, { once = true }, function() end)
    app:mount("/a", inner)
    app:mount("/b", inner)
    local compiled = compile(app)
    assert.equal(1, #compiled.on_start)
    assert.equal(5, compiled.every[1].seconds)
    assert.is_true(compiled.every[1].once)
    assert.equal(1, #compiled.every)
  end)
end)

describe("static routes", function()
  local function fixed(...)
    local app = photon.app()
    app:static("/s", ...)
    return compile(app).routes[1].fixed
  end

  it("are text, or JSON for tables", function()
    assert.same({ status = 200, body = "hi", headers = { { "content-type", "text/plain; charset=utf-8" } } },
      fixed "hi")
    local json = fixed { a = 1 }
    assert.equal('{"a":1}', json.body)
    assert.equal("application/json", json.headers[1][2])
  end)

  it("take status, headers and type", function()
    local made = fixed("<p>", { status = 201, type = "text/html", headers = { ["X-A"] = "1" } })
    assert.equal(201, made.status)
    assert.same({ "content-type", "text/html" }, made.headers[1])
    assert.same({ "x-a", "1" }, made.headers[2])
  end)

  it("may be empty, in an app of any folder", function()
    local loader = require "photon.loader"
    local file = loader.file
    loader.file = "apps/hello/app.lua"
    local ok, made = pcall(fixed, "")
    loader.file = file
    assert.is_true(ok, made)
    assert.equal("", made.body)
  end)

  it("refuse directories and what is no body", function()
    refused("app:files", function() fixed "spec" end)
    refused("the body is a string or a table", function() fixed(12) end)
    refused("control byte", function() fixed("x", { headers = { ["x-a"] = "a\nb" } }) end)
    refused("did you mean status?", function() fixed("x", { statsu = 201 }) end)
  end)
end)

describe("a mistake at load", function()
  it("names the line and what was given", function()
    local app, line = photon.app(), nil
    local err = refused("needs a handler function(req), got nothing", function()
      line = line_here() app:get("/x")
    end)
    assert.truthy(err:find("routes_spec.lua:" .. line .. ":", 1, true), err)
    refused("got a string", function() app:get("/x", "text") end)
    refused("app:static", function() app:get("/x", "text") end)
    refused("app:use", function() app:get("/x", print, print) end)
  end)

  it("is a pattern without a slash, an unknown option, a lower-case method", function()
    local app = photon.app()
    refused('does not begin with "/"', function() app:get("x", print) end)
    refused("did you mean max_body?", function() app:get("/x", { maxbody = 1 }, print) end)
    refused('"GET"', function() app:route("get", "/x", print) end)
    refused("with a colon", function() app.get("/x", print) end)
  end)

  it("is middleware after a route", function()
    local app = photon.app()
    app:get("/x", print)
    refused("late = true", function() app:use(function() end) end)
    app:use(function() end, { late = true })
  end)

  it("is a wrong or unknown setting", function()
    refused("did you mean max_body?", function() photon.app { max_bdy = 1 } end)
    refused("setting drain is a number of seconds", function() photon.app { drain = "soon" } end)
    refused("setting max_headers is a whole number", function() photon.app { max_headers = 1.5 } end)
    refused("setting trusted_proxies is a list", function() photon.app { trusted_proxies = { 1 } } end)
    refused("10.0.0.0/33", function() compile(photon.app { trusted_proxies = { "10.0.0.0/33" } }) end)
    assert.equal(1536, compile(photon.app { max_header = "1.5 KiB" }).settings.max_header)
  end)

  it("is a mount of what is no app, or of an app within itself", function()
    local app = photon.app()
    refused("takes an app", function() app:mount("/x", {}) end)
    refused("within itself", function() app:mount("/x", app) end)
  end)

  it("is a registration when the app has been compiled", function()
    local app = photon.app()
    compile(app)
    refused("comes too late", function() app:get("/x", print) end)
  end)
end)

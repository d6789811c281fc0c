-- What went wrong in the routing of other servers, and must be impossible here.
local photon = require "photon"
local test = require "photon.test"

local function reporter(name)
  return function(req) return { route = name, params = req.params } end
end

-- A client of an app with these routes ("GET /x"), each of which tells its pattern and parameters.
local function serve(...)
  local app = photon.app()
  for _, route in ipairs { ... } do
    local method, pattern = route:match "^(%u+) (.*)$"
    app:route(method, pattern, reporter(route))
  end
  return test.app(app)
end

local function reversed(list)
  local result = {}
  for i, item in ipairs(list) do result[#list + 1 - i] = item end
  return unpack(result)
end

local function methods_of(allow)
  local methods = {}
  for name in (allow or ""):gmatch "[^, ]+" do methods[name] = true end
  return methods
end

describe("a parameter's name belongs to its own route:", function()
  local routes = { "GET /items/:lang", "DELETE /items/:id", "GET /items/:ref/pending" }

  local function check(client)
    assert.same({ route = "DELETE /items/:id", params = { id = "42" } }, client:request("DELETE", "/items/42"):json())
    assert.same({ route = "GET /items/:lang", params = { lang = "42" } }, client:get("/items/42"):json())
    assert.same({ ref = "42" }, client:get("/items/42/pending"):json().params)
  end

  it("in one order of registration", function() check(serve(unpack(routes))) end)
  it("and in the other", function() check(serve(reversed(routes))) end)
end)

describe("a parameter is never empty:", function()
  local client = serve("GET /:id", "GET /users/:id")

  for _, target in ipairs { "/", "/users/", "//", "/users//" } do
    it(target .. " is not found", function() assert.equal(404, client:get(target).status) end)
  end
  it("the path of a prefix is the other route's", function()
    assert.same({ route = "GET /:id", params = { id = "users" } }, client:get("/users"):json())
  end)
end)

describe("a malformed escape", function()
  local client = serve "GET /users/:id"

  for _, id in ipairs { "%", "%z", "%zz", "%4", "%E0%A4%A", "a%" } do
    it(id .. " is a bad request", function() assert.equal(400, client:get("/users/" .. id).status) end)
  end
  it("but bytes that are not UTF-8 come as they are", function()
    local app, seen = photon.app(), nil
    app:get("/users/:id", function(req) seen = req.params.id end)
    assert.equal(204, test.app(app):get("/users/%C0%80").status)
    assert.equal("\192\128", seen)
  end)
  it("and what follows is served", function()
    assert.equal(400, client:get("/users/%").status)
    assert.equal(200, client:get("/users/x").status)
  end)
end)

describe("another method", function()
  local client = serve("GET /users/me", "PATCH /users/:id", "DELETE /users/:id")

  local function check_allow(res)
    local methods = methods_of(res.headers.allow)
    for _, name in ipairs { "GET", "HEAD", "PATCH", "DELETE" } do assert.truthy(methods[name], name) end
    assert.falsy(methods.POST)
  end

  it("is answered by all methods of all patterns that match", function()
    local res = client:post "/users/me"
    assert.equal(405, res.status)
    check_allow(res)
  end)
  it("lists fewer where fewer match", function()
    local methods = methods_of(client:post("/users/7").headers.allow)
    assert.falsy(methods.GET)
    assert.truthy(methods.PATCH and methods.DELETE)
  end)
  it("is told by OPTIONS too", function()
    local res = client:request("OPTIONS", "/users/me")
    assert.equal(204, res.status)
    check_allow(res)
  end)
  it("of an unknown path is not found", function() assert.equal(404, client:post("/nowhere").status) end)
end)

describe("routes side by side", function()
  local routes = { "GET /assets/*rest", "GET /:code", "GET /:first/tail", "GET /rooms/:id",
    "GET /rooms/:name/inspect", "POST /copy", "POST /:id/run" }

  local function check(client)
    local function route_of(target) return client:get(target):json().route end
    assert.equal("GET /assets/*rest", route_of "/assets/x.css")
    assert.equal("GET /:code", route_of "/abc")
    assert.equal("GET /:code", route_of "/assets")
    assert.equal("GET /rooms/:name/inspect", route_of "/rooms/9/inspect")
    assert.equal("GET /rooms/:id", route_of "/rooms/9")
    assert.equal("GET /:first/tail", route_of "/abc/tail")
    assert.equal("POST /:id/run", client:post("/copy/run"):json().route)
  end

  it("are all taken in one order", function() check(serve(unpack(routes))) end)
  it("and in the other", function() check(serve(reversed(routes))) end)
  it("but the same one twice is refused by both places", function()
    local app = photon.app()
    app:get("/rooms/:id", reporter "first")
    local line = debug.getinfo(1, "l").currentline
    app:get("/rooms/:name", reporter "second")
    local ok, message = pcall(test.app, app)
    assert.is_false(ok)
    message = tostring(message)
    assert.truthy(message:find(":" .. line - 1, 1, true), message)
    assert.truthy(message:find(":" .. line + 1, 1, true), message)
  end)
end)

-- app:use: what stands before the routes of an app or group.
local photon = require "photon"
local test = require "photon.test"

local function client_of(middleware, fn)
  local app = photon.app()
  app:use(middleware)
  app:get("/x", fn or function() return "x" end)
  return test.app(app)
end

local function get(middleware, fn)
  return client_of(middleware, fn):get("/x", { raise = false })
end

describe("middleware", function()
  it("runs around the handler, the outermost first", function()
    local app, order = photon.app(), {}
    local function note(name)
      return function(req, inner)
        order[#order + 1] = name .. " in"
        inner(req)
        order[#order + 1] = name .. " out"
      end
    end
    app:use(note "a")
    app:use(note "b")
    app:group("/g", function(group)
      group:use(note "c")
      group:get("/x", function() order[#order + 1] = "handler" return "x" end)
    end)
    assert.equal("x", test.app(app):get("/g/x").body)
    assert.same({ "a in", "b in", "c in", "handler", "c out", "b out", "a out" }, order)
  end)

  it("gets a response whose headers and body it may change", function()
    local res = get(function(req, inner)
      local res = inner(req)
      assert.equal(200, res.status)
      assert.equal("text/plain; charset=utf-8", res.headers["Content-Type"])
      res.headers["X-Took"] = "1"
      res.body = res.body .. "!"
      res.status = 202
    end)
    assert.equal(202, res.status)
    assert.equal("1", res.headers["x-took"])
    assert.equal("x!", res.body)
  end)

  it("sees JSON as the text that will be sent, and may put a table in its place", function()
    local seen
    local res = get(function(req, inner)
      local res = inner(req)
      seen = res.body
      res.body = { changed = true }
    end, function() return { a = 1 } end)
    assert.equal('{"a":1}', seen)
    assert.same({ changed = true }, res:json())
  end)

  it("may answer by itself, by the rules of handlers", function()
    local called = false
    local res = get(function() return { no = true }, 401, { ["www-authenticate"] = "Basic" } end, function()
      called = true
    end)
    assert.equal(401, res.status)
    assert.equal("Basic", res.headers["www-authenticate"])
    assert.is_false(called)
    assert.equal(403, get(function() error(photon.problem(403)) end).status)
    assert.equal(303, get(function() return photon.redirect "/login" end).status)
  end)

  it("may return what inner gave, or something else", function()
    assert.equal("x", get(function(req, inner) return inner(req) end).body)
    assert.equal(201, get(function(req, inner) return inner(req), 201 end).status)
    assert.equal("other", get(function(req, inner) inner(req) return "other" end).body)
  end)

  it("sees errors as replies: inner never raises", function()
    local status, message
    local res = get(function(req, inner)
      local res = inner(req)
      status, message = res.status, res.error and res.error.message
    end, function() error "boom" end)
    assert.equal(500, status)
    assert.truthy(message:find("boom", 1, true))
    assert.equal(500, res.status)
    get(function(req, inner) status = inner(req).error.detail end, function() error(photon.problem(409, "clash")) end)
    assert.equal("clash", status)
    get(function(req, inner) status = inner(req).error end)
    assert.is_nil(status)
  end)

  it("cannot break the server by what it writes into a response", function()
    for _, value in ipairs { "x", 3, true, print, {}, { spec = {} }, { spec = 1, fn = print } } do
      for _, name in ipairs { "headers", "body", "status", "stream", "error" } do
        local res = get(function(req, inner)
          local reply = inner(req)
          reply[name] = value
        end)
        assert.truthy(res.status >= 200, name)
      end
    end
    assert.equal("x", get(function(req, inner) inner(req).stream = { spec = {} } end).body)
    assert.equal(500, get(function(req, inner) inner(req).headers = "x" end).status)
  end)

  it("is an error when it neither answers nor calls inner, or calls it twice", function()
    assert.equal(500, get(function() end).status)
    assert.equal(500, get(function(req, inner) inner(req) inner(req) end).status)
    local client = client_of(function() end)
    local ok, err = pcall(client.get, client, "/x")
    assert.is_false(ok)
    assert.truthy(tostring(err):find("did not call inner", 1, true))
  end)

  it("hands over errors of its own to on_error, and inner ones only once", function()
    local app, count = photon.app(), 0
    app:on_error(function(err)
      count = count + 1
      return "error " .. err.status
    end)
    app:use(function(req, inner)
      if req.query.fail then error "mine" end
      return inner(req), 502
    end)
    app:get("/x", function() error "x" end)
    local client = test.app(app)
    assert.equal("error 500", client:get("/x?fail=1").body)
    assert.equal(1, count)
    local res = client:get("/x")
    assert.equal(502, res.status)
    assert.equal("error 500", res.body)
    assert.equal(2, count)
  end)

  it("runs for unknown paths, unknown methods and automatic OPTIONS", function()
    local seen = {}
    local client = client_of(function(req, inner)
      local res = inner(req)
      seen[#seen + 1] = res.status
      res.headers["x-seen"] = "1"
    end)
    assert.equal("1", client:get("/y").headers["x-seen"])
    local res = client:post("/x")
    assert.equal(405, res.status)
    assert.truthy(res.headers.allow:find("GET", 1, true))
    res = client:request("OPTIONS", "/x")
    assert.equal(204, res.status)
    assert.truthy(res.headers.allow:find("GET", 1, true))
    assert.same({ 404, 405, 204 }, seen)
  end)

  it("stands before fixed replies, unless they opt out", function()
    local app = photon.app()
    app:use(function(req, inner)
      local res = inner(req)
      res.headers["x-seen"] = (res.headers["x-seen"] or "") .. "1"
    end)
    app:static("/s", "text", { headers = { ["x-a"] = "b" } })
    local client = test.app(app)
    for _ = 1, 2 do
      local res = client:get("/s")
      assert.equal("text", res.body)
      assert.equal("1", res.headers["x-seen"])
      assert.equal("b", res.headers["x-a"])
      assert.equal("text/plain; charset=utf-8", res.headers["content-type"])
    end
    local etag = client:get("/s").headers.etag
    local res = client:get("/s", { headers = { ["if-none-match"] = 'W/"x", ' .. etag } })
    assert.equal(304, res.status)
    assert.equal("", res.body)
    assert.equal(etag, res.headers.etag)

    local open = photon.app()
    open:use(function() return "no", 401 end)
    open:static("/s", "text", { middleware = false })
    local routes = require "photon.compile"(open).routes
    assert.equal("fixed", routes[1].kind)
  end)

  it("sees streams before their head is sent", function()
    local body
    local app = photon.app()
    app:use(function(req, inner)
      local res = inner(req)
      body = res.body
      res.headers["x-seen"] = res.headers["content-type"]
    end)
    app:sse("/e", function(stream) stream:send "hi" end)
    local res = test.app(app):get("/e")
    assert.is_nil(body)
    assert.equal("text/event-stream", res.headers["x-seen"])
    assert.equal("text/event-stream", res.headers["content-type"])
  end)

  it("may wait", function()
    assert.equal("x", get(function(req, inner)
      photon.sleep(0)
      return inner(req)
    end, function()
      photon.sleep(0)
      return "x"
    end).body)
  end)
end)

-- What a handler sees of a request.
local photon = require "photon"
local test = require "photon.test"

local see -- what the handler does
local app = photon.app { trusted_proxies = { "127.0.0.0/8", "10.0.0.1" } }
app:any("/see/*rest", { max_body = 64 * 1024 }, function(req) return see(req) end)
local client = test.app(app)

-- What fn makes of the request.
local function seen(fn, target, options)
  local value
  see = function(req)
    value = fn(req)
    return "ok"
  end
  local res = client:request(options and options.method or "GET", target or "/see/it", options)
  return value, res
end

describe("a request", function()
  it("has a method, a path, a target", function()
    assert.equal("PATCH", seen(function(req) return req.method end, "/see/a", { method = "PATCH" }))
    assert.equal("/see/a b/c", seen(function(req) return req.path end, "/see/a%20b/c?d=e"))
    assert.equal("/see/a%20b/c?d=e", seen(function(req) return req.target end, "/see/a%20b/c?d=e"))
  end)

  it("has a query: the first value of each name, and all of them", function()
    local target = "/see/q?a=1&b=x+y&a=2&c&d=%C3%A9&=e&%61=3&bad=5%&&f=a%3Db"
    assert.same({ a = "1", b = "x y", c = "", d = "é", [""] = "e", bad = "5%", f = "a=b" },
      seen(function(req) return req.query end, target))
    assert.same({ "1", "2", "3" }, seen(function(req) return req:query_all "a" end, target))
    assert.same({}, seen(function(req) return req:query_all "none" end, target))
    assert.same({}, seen(function(req) return req.query end))
  end)

  it("has headers, found in any case", function()
    local function read(req) return { req.headers["X-One"], req.headers["x-one"], req.headers.missing } end
    assert.same({ "1", "1" }, seen(read, nil, { headers = { ["x-one"] = "1" } }))
    assert.equal("a, b", seen(function(req) return req.headers["accept"] end, nil,
      { headers = { accept = { "a", "b" } } }))
  end)

  local function cookies(...)
    return seen(function(req) return req.cookies end, nil, { headers = { cookie = { ... } } })
  end

  it("has cookies, read tolerantly", function()
    assert.same({ a = "dGVzdA==", b = "hello", c = '"q v"', f = "%41+b", g = "1" },
      cookies 'a=dGVzdA==; b=hello ; c="q v"; d; =e; a=2; f=%41+b;;g=1\t')
    assert.same({ foo = "bar", baz = "raz" }, cookies "foo=bar;baz  =  raz")
    assert.same({ foo = "1", bar = "" }, cookies("foo=1", "bar="))
    assert.same({ a = "1", A = "2" }, cookies "a=1; A=2")
    assert.same({ a = '"B' }, cookies 'a="B')
    assert.same({ __index = "1", ["!a"] = "x" }, cookies "__index=1; !a=x")
    assert.same({}, cookies "")
    assert.same({}, seen(function(req) return req.cookies end))
  end)

  it("has an id that its reply bears", function()
    local id, res = seen(function(req) return req.id end)
    assert.truthy(id:find "^%x+$")
    assert.equal(id, res.headers["x-request-id"])
  end)

  it("has a context of its own and a host", function()
    assert.same({ true, nil, 1 }, seen(function(req)
      req.ctx.user = 1
      return { next(req.ctx) == "user", nil, req.ctx.user }
    end))
    assert.equal("string", type(seen(function(req) return req.host end)))
  end)

  local function ip(list, proto)
    return seen(function(req) return req.ip .. " " .. req.scheme end, nil,
      { headers = { ["x-forwarded-for"] = list, ["x-forwarded-proto"] = proto } })
  end

  it("believes trusted proxies, and only these", function()
    assert.equal("127.0.0.1 http", ip())
    assert.equal("203.0.113.7 https", ip("203.0.113.7", "https"))
    assert.equal("203.0.113.7 http", ip("1.2.3.4, 203.0.113.7, 10.0.0.1"))
    assert.equal("2001:db8::1 http", ip "[2001:db8::1]:4711")
    assert.equal("10.0.0.1 http", ip "rubbish, 10.0.0.1")
    assert.equal("203.0.113.7 http", ip { "1.2.3.4", "203.0.113.7" })
  end)

  it("is inert when its exchange is over", function()
    local kept
    seen(function(req) kept = req end)
    assert.is_nil(kept.method)
    assert.is_nil(kept.query)
    local body, why = kept:body()
    assert.is_nil(body)
    assert.equal("closed", why)
  end)
end)

describe("the body of a request", function()
  local function body(options)
    options.method = "POST"
    return seen(function(req) return req:body() end, nil, options)
  end

  it("is a string of any size up to the limit, and the same again", function()
    for _, size in ipairs { 0, 1, 4096, 65536 } do
      local text = ("x"):rep(size)
      assert.equal(text, body { body = text })
    end
    assert.same({ "abc", "abc" }, seen(function(req) return { req:body(), req:body() } end, nil,
      { method = "POST", body = "abc" }))
  end)

  it("is 413 over the limit", function()
    local _, res = body { body = ("x"):rep(65537) }
    assert.equal(413, res.status)
    assert.equal("application/problem+json", res.headers["content-type"])
  end)

  it("is 415 when it is compressed", function()
    local _, res = body { body = "x", headers = { ["content-encoding"] = "gzip" } }
    assert.equal(415, res.status)
    assert.equal("identity", res.headers["accept-encoding"])
    assert.equal("x", (body { body = "x", headers = { ["content-encoding"] = "identity" } }))
  end)
end)

-- What a handler returns, and what the client gets.
local photon = require "photon"
local test = require "photon.test"

-- A client of an app whose one handler returns what fn returns.
local function client_of(fn)
  local app = photon.app()
  app:get("/x", fn)
  return test.app(app)
end

local function get(fn, options)
  return client_of(fn):get("/x", options)
end

local function fails(message, fn)
  local client = client_of(fn)
  local ok, err = pcall(client.get, client, "/x")
  assert.is_false(ok, "no error was raised")
  assert.truthy(tostring(err):find(message, 1, true), "another message: " .. tostring(err))
  local res = client:get("/x", { raise = false })
  assert.equal(500, res.status)
  return res
end

describe("a handler's result", function()
  it("is text for a string", function()
    local res = get(function() return "hello" end)
    assert.equal(200, res.status)
    assert.equal("text/plain; charset=utf-8", res.headers["content-type"])
    assert.equal("5", res.headers["content-length"])
    assert.equal("hello", res.body)
    assert.truthy(res.headers["x-request-id"]:match "^%x+$")
  end)

  it("is JSON for a table", function()
    local res = get(function() return { a = { 1, 2 } } end)
    assert.equal("application/json", res.headers["content-type"])
    assert.equal('{"a":[1,2]}', res.body)
    assert.equal("[]", get(function() return photon.array {} end).body)
  end)

  it("is 204 for nothing", function()
    for _, fn in ipairs { function() end, function() return nil end } do
      local res = get(fn)
      assert.equal(204, res.status)
      assert.is_nil(res.headers["content-type"])
      assert.equal("", res.body)
    end
  end)

  it("takes a status and headers", function()
    local res = get(function() return "made", 201, { Location = "/y", ["x-n"] = 3 } end)
    assert.equal(201, res.status)
    assert.equal("/y", res.headers.location)
    assert.equal("3", res.headers["x-n"])
    assert.equal("text/x", get(function() return "x", nil, { ["Content-Type"] = "text/x" } end).headers["content-type"])
  end)

  it("is empty for nil and a status", function()
    local res = get(function() return nil, 404 end)
    assert.equal(404, res.status)
    assert.equal("0", res.headers["content-length"])
    assert.is_nil(res.headers["content-type"])
  end)

  it("sends a list of values as several fields", function()
    local res = get(function() return "", 200, { ["set-cookie"] = { "a=1", "b=2" } } end)
    assert.same({ "a=1", "b=2" }, res.headers["set-cookie"])
  end)

  it("never sends a body with a status that has none", function()
    local res = get(function() return { a = 1 }, 204 end)
    assert.equal(204, res.status)
    assert.equal("", res.body)
    assert.is_nil(res.headers["content-type"])
  end)

  it("raises nil and a message", function()
    fails("no such file", function() return nil, "no such file" end)
  end)

  it("is refused with value and place when it is no reply", function()
    fails("a boolean (true) as its body", function() return true end)
    fails("results_spec.lua:", function() return true end)
    fails("a number (42) as its body", function() return 42 end)
    fails("a function as its body", function() return print end)
    fails("returned the request itself", function(req) return req end)
    fails("a number (2) as its second value", function() return (" a a"):gsub("a", "b") end)
    fails("a number (600) as its second value", function() return "x", 600 end)
    fails("a number (200.5) as its second value", function() return "x", 200.5 end)
    fails('a string ("created") as its second value', function() return "x", "created" end)
    fails("a boolean (false) as its second value", function() return "x", false end)
    fails("headers are a table", function() return "x", 200, "a: b" end)
  end)

  it("is refused with what cannot be encoded, before anything is sent", function()
    fails("nan at .v", function() return { v = 0 / 0 } end)
    fails("mixes", function() return { 1, a = 2 } end)
    local cycle = {}
    cycle.cycle = cycle
    fails("nested deeper", function() return cycle end)
  end)
end)

describe("headers of a result", function()
  it("with control bytes are errors and never sent", function()
    for _, bad in ipairs { "a\r\nset-cookie: s=1", "a\rb", "a\nb", "a\0b" } do
      local res = fails("header x-n", function() return "x", 200, { ["X-N"] = bad } end)
      assert.is_nil(res.headers["set-cookie"])
      assert.is_nil(res.headers["x-n"])
    end
    fails("no name for a header", function() return "x", 200, { ["a\r\nb"] = "x" } end)
    fails("no name for a header", function() return "x", 200, { [""] = "x" } end)
    fails("the name of a header is a number", function() return "x", 200, { "a" } end)
    fails("header x-n is a boolean", function() return "x", 200, { ["x-n"] = true } end)
  end)

  it("cannot claim what is the protocol's", function()
    for _, name in ipairs { "Connection", "Transfer-Encoding", "date", "upgrade" } do
      fails(name:lower(), function() return "x", 200, { [name] = "x" } end)
    end
    fails("content-length", function() return "x", 200, { ["content-length"] = 3 } end)
    assert.equal("1", get(function() return "x", 200, { ["content-length"] = "1" } end).headers["content-length"])
  end)
end)

describe("response objects", function()
  it("are html, text and json", function()
    local res = get(function() return photon.html "<p>" end)
    assert.equal("text/html; charset=utf-8", res.headers["content-type"])
    assert.equal("<p>", res.body)
    assert.equal("text/plain; charset=utf-8", get(function() return photon.text "x" end).headers["content-type"])
    res = get(function() return photon.json "x" end)
    assert.equal('"x"', res.body)
    assert.equal("application/json", res.headers["content-type"])
    assert.equal("null", get(function() return photon.json(photon.null) end).body)
  end)

  it("take a status and headers beside them", function()
    local res = get(function() return photon.html "x", 202, { ["x-a"] = "1" } end)
    assert.equal(202, res.status)
    assert.equal("1", res.headers["x-a"])
    assert.equal("text/html; charset=utf-8", res.headers["content-type"])
  end)

  it("redirect", function()
    local res = get(function() return photon.redirect "/y" end)
    assert.equal(303, res.status)
    assert.equal("/y", res.headers.location)
    assert.equal(308, get(function() return photon.redirect("/y", 308) end).status)
    fails("control byte", function() return photon.redirect "/x\r\n\r\n<b>" end)
    fails("the status is", function() return photon.redirect("/x", 200) end)
  end)

  it("can be made once and returned often", function()
    local made = photon.html "x"
    local client = client_of(function() return made end)
    assert.equal("x", client:get("/x").body)
    assert.equal(client:get("/x").status, 200)
  end)

  it("are refused with a body that is none", function()
    fails("the body of a response", function()
      local res = photon.text "x"
      res.body = 12
      return res
    end)
  end)
end)

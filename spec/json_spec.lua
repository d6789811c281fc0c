-- req:json() and photon.json.
local photon = require "photon"
local test = require "photon.test"

local value, count
local app = photon.app()
app:any("/x", function(req)
  local function keep(...)
    count = select("#", ...)
    value = ...
  end
  keep(req:json())
  return "ok"
end)
local client = test.app(app)

local function post(body, content_type, method)
  value = "unset"
  return client:request(method or "POST", "/x", { body = body, headers = { ["content-type"] = content_type } })
end

describe("req:json", function()
  it("decodes JSON, whatever its media type is spelled like", function()
    for _, kind in ipairs { "application/json", "application/json; charset=utf-8",
      'Application/JSON;charset="UTF-8"', "application/vnd.x+json", "application/json; utf-8" } do
      assert.equal(200, post('{"a":1}', kind).status)
      assert.same({ a = 1 }, value)
    end
  end)

  it("is 415 for other media types", function()
    for _, kind in ipairs { "text/plain", "application/json; charset=latin1", "application/x-json" } do
      local res = post('{"a":1}', kind)
      assert.equal(415, res.status)
      assert.equal("application/problem+json", res.headers["content-type"])
    end
    assert.equal(415, post('{"a":1}').status)
  end)

  it("is nil for an empty body", function()
    assert.equal(200, post("", "application/json").status)
    assert.is_nil(value)
    assert.equal(1, count)
    assert.equal(200, post("", nil, "DELETE").status)
    assert.is_nil(value)
  end)

  it("is 400 for what is no JSON, and says where", function()
    for _, body in ipairs { '{"v":NaN}', '{"v":Infinity}', '{"v":0x10}', '{"v":01}', "{", "[1,]", '"\255"', "{} x",
      " ", ("["):rep(100000), ('{"a":'):rep(50000) } do
      local res = post(body, "application/json")
      assert.equal(400, res.status)
      assert.truthy(res:json().detail:find "%d", res.body)
    end
  end)

  it("gives null as photon.null", function()
    post('{"name":null}', "application/json")
    assert.equal(photon.null, value.name)
    assert.equal('{"name":null}', photon.json.encode(value))
    post("null", "application/json")
    assert.equal(photon.null, value)
  end)

  it("keeps empty arrays and objects apart", function()
    local text = '{"n":[[],{}]}'
    post(text, "application/json")
    assert.equal(text, photon.json.encode(value))
  end)
end)

describe("photon.json", function()
  it("encodes, decodes, and makes responses when called", function()
    assert.equal("[1,2]", photon.json.encode { 1, 2 })
    assert.same({ 1, 2 }, photon.json.decode "[1,2]")
    local none, message = photon.json.decode "[1,"
    assert.is_nil(none)
    assert.equal("string", type(message))
    assert.equal("[1]", photon.json({ 1 }).body)
    assert.has_error(function() photon.json(print) end)
  end)
end)

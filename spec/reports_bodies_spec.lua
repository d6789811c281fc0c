-- What went wrong with bodies, JSON and header values in other servers.
local live = require "spec.live"

local server

setup(function() server = live.start { app = "spec/reports/app.lua" } end)
teardown(function() server:stop() end)

local JSON = "content-type: application/json"

local function post(target, body, ...)
  return server:request("POST", target, { ... }, body)
end

describe("an empty body that says it is JSON", function()
  it("is none", function()
    assert.truthy(post("/json", "", JSON).body:find('"kind":"nil"', 1, true))
  end)
  it("also without a length", function()
    assert.truthy(server:request("DELETE", "/json", { JSON }).body:find('"kind":"nil"', 1, true))
  end)
end)

describe("a content type", function()
  for _, given in ipairs { "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"',
    "application/vnd.x+json", "application/json; utf-8", "APPLICATION/PROBLEM+JSON" } do
    it(given .. " is JSON", function()
      local reply = post("/json", '{"a":1}', "content-type: " .. given)
      assert.equal(200, reply.status)
      assert.truthy(reply.body:find('"value":{"a":1}', 1, true), reply.body)
    end)
  end
  for _, given in ipairs { "text/plain", "application/jsonp", "application/json; charset=latin1", "json" } do
    it(given .. " is not", function()
      assert.equal(415, post("/json", '{"a":1}', "content-type: " .. given).status)
    end)
  end
  it("that is missing is not", function() assert.equal(415, post("/json", '{"a":1}').status) end)
end)

describe("a body is the same at each size:", function()
  for _, size in ipairs { 0, 1, 16383, 16384, 16385, 65535, 65536, 65537, 1048577, 5 * 1048576 } do
    it(size .. " bytes", function()
      local unit = "0123456789abcdef-"
      local body = unit:rep(math.ceil(size / #unit)):sub(1, size)
      local reply = post("/twice", body)
      assert.equal(200, reply.status)
      assert.is_true(reply.body == body)
    end)
  end
end)

describe("a compressed body", function()
  for _, coding in ipairs { "gzip", "gzip, gzip", "br", "made-up" } do
    it("is refused: " .. coding, function()
      local reply = post("/json", "\31\139\8", JSON, "content-encoding: " .. coding)
      assert.equal(415, reply.status)
      assert.equal("identity", reply:get "accept-encoding")
    end)
  end
  it("is no reason to find a path", function()
    assert.equal(404, post("/nowhere", "\31\139\8", JSON, "content-encoding: gzip").status)
  end)
  it("but identity is none", function()
    assert.equal(200, post("/json", "{}", JSON, "content-encoding: identity").status)
  end)
end)

describe("a line break in a header", function()
  for _, value in ipairs { "a%0d%0aSet-Cookie:%20s=1", "a%0dSet-Cookie:%20s=1", "a%0aSet-Cookie:%20s=1", "a%00b" } do
    for _, target in ipairs { "/name?value=", "/field?name=", "/to?to=/" } do
      it("is an error, never sent: " .. target .. value, function()
        local list, _, received = server:exchange("GET " .. target .. value .. " HTTP/1.1\r\nhost: a\r\n\r\n")
        assert.equal(500, list[1].status)
        assert.same({}, list[1].faults)
        assert.falsy(received:lower():find("set-cookie", 1, true))
      end)
    end
  end
  it("is no question for what is sound", function()
    assert.equal("a b", server:get("/name?value=a%20b"):get "x-name")
    assert.equal("/x", server:get("/to?to=/x"):get "location")
  end)
end)

describe("JSON", function()
  it("keeps arrays and objects apart", function()
    local text = '{"list":[],"info":{},"n":[[],{}]}'
    local reply = post("/back", text, JSON).body
    for _, part in ipairs { '"list":[]', '"info":{}', '"n":[[],{}]' } do
      assert.truthy(reply:find(part, 1, true), reply)
    end
  end)
  for _, kind in ipairs { "nan", "infinity", "deep", "cycle" } do
    it("has no value for " .. kind, function()
      local list = server:exchange("GET /unsound/" .. kind .. " HTTP/1.1\r\nhost: a\r\n\r\n")
      assert.equal(500, list[1].status)
      assert.equal("application/problem+json", list[1]:get "content-type")
    end)
  end
  for _, text in ipairs { '{"v":NaN}', '{"v":Infinity}', '{"v":-Infinity}', '{"v":1e999}', '{"v":0x10}', '{"v":01}',
    '{"v":nan}', "[1,]", "{} {}", "'a'" } do
    it("does not take " .. text, function() assert.equal(400, post("/json", text, JSON).status) end)
  end
  it("is bounded in depth", function()
    local function status(depth) return post("/back", ("["):rep(depth) .. ("]"):rep(depth), JSON).status end
    assert.equal(200, status(127))
    assert.equal(200, status(128))
    assert.equal(400, status(129))
    assert.equal(400, post("/json", ("["):rep(100000), JSON).status)
    assert.equal(400, post("/json", ('{"a":'):rep(50000), JSON).status)
    assert.equal(200, server:get("/").status)
  end)
  it("tells null from nothing", function()
    local function name(text) return server:request("PATCH", "/names", { JSON }, text).body end
    assert.equal('{"name":"null"}', name '{"name":null,"age":3}')
    assert.equal('{"name":"absent"}', name '{"age":3}')
    assert.equal('{"name":"x"}', name '{"name":"x"}')
  end)
  it("gives null back", function()
    assert.equal('{"a":null}', post("/back", '{"a":null}', JSON).body)
    assert.equal("[null,1]", post("/back", "[null,1]", JSON).body)
  end)
end)

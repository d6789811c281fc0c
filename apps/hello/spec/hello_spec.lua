local test = require "photon.test"

describe("hello", function()
  local client = test.app "apps/hello"

  it("greets", function()
    local res = client:get "/"
    assert.equal(200, res.status)
    assert.equal("Hello from Photon\n", res.body)
  end)

  it("gives the id of a user", function()
    local res = client:get "/users/42"
    assert.equal(200, res.status)
    assert.same({ id = "42" }, res:json())
  end)

  it("ticks", function()
    local stream = client:sse "/clock"
    local first, second = stream:next(2), stream:next(3)
    assert.truthy(first.data:find "%d+:%d+:%d+")
    assert.not_equal(first.data, second.data)
    stream:close()
  end)
end)

local test = require "photon.test"

local function read_all(stream)
  local tokens, ids = {}, {}
  while true do
    local event = stream:next(2)
    if event.event == "done" then return tokens, ids end
    assert.equal("token", event.event)
    tokens[#tokens + 1] = event.data
    ids[#ids + 1] = event.id
  end
end

describe("tokens", function()
  local client = test.app "apps/tokens"

  it("shows a page that needs nothing else", function()
    local res = client:get "/"
    assert.equal(200, res.status)
    assert.equal("text/html; charset=utf-8", res.headers["content-type"])
    assert.truthy(res.body:find("<title>Tokens</title>", 1, true))
    assert.falsy(res.body:find "https?://")
  end)

  it("sends numbered tokens, then done", function()
    local tokens, ids = read_all(client:sse "/tokens?prompt=hello")
    assert.truthy(#tokens > 20)
    assert.truthy(table.concat(tokens):find("hello", 1, true))
    for number, id in ipairs(ids) do assert.equal(tostring(number), id) end
  end)

  it("takes its time over each token", function()
    local stream = client:sse "/tokens?prompt=hello"
    stream:next(2)
    assert.falsy(stream:next(0))
    stream:close()
  end)

  it("goes on after the last token that was seen", function()
    local stream = client:sse("/tokens?prompt=hello", { headers = { ["last-event-id"] = "7" } })
    assert.equal("8", stream:next(2).id)
    stream:close()
  end)

  it("wants a prompt", function()
    assert.equal(422, client:get("/tokens").status)
    assert.equal(422, client:post("/tokens", { json = { prompt = " " } }).status)
    assert.equal(400, client:post("/tokens", { body = "{", headers = { ["content-type"] = "application/json" } }).status)
  end)

  it("answers a prompt in a body", function()
    local res = client:post("/tokens", { json = { prompt = "a long one" } })
    assert.equal(200, res.status)
    assert.equal("text/event-stream", res.headers["content-type"])
    assert.truthy(res.body:find("event: token", 1, true))
    assert.truthy(res.body:find("event: done", 1, true))
  end)
end)

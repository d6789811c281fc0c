local test = require "photon.test"

local function read_all(stream)
  local tokens, ids = {}, {}
  while true do
    local event = stream:next(1)
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

  it("takes its time over each token", function()
    test.clock.freeze()
    local stream = client:sse "/tokens?prompt=hello"
    assert.falsy(stream:next(0))
    test.clock.advance(0.04)
    assert.equal("1", stream:next(1).id)
    assert.falsy(stream:next(0))
    test.clock.advance(0.04)
    assert.equal("2", stream:next(1).id)
    stream:close()
  end)

  it("goes on after the last token that was seen", function()
    local stream = client:sse("/tokens?prompt=hello", { headers = { ["last-event-id"] = "7" } })
    assert.equal("8", stream:next(1).id)
    stream:close()
  end)

  it("wants a prompt", function()
    local headers = { ["content-type"] = "application/json" }
    assert.equal(422, client:get("/tokens").status)
    assert.equal(422, client:post("/tokens", { json = { prompt = " " } }).status)
    assert.equal(400, client:post("/tokens", { body = "{", headers = headers }).status)
  end)
end)

describe("with a model that is quick", function()
  local model = {}
  function model.tokens(prompt, seen)
    local words = { prompt, " and", " more" }
    return function(_, number)
      if words[number + 1] then return number + 1, words[number + 1] end
    end, nil, seen
  end
  local client = test.app("apps/tokens", { modules = { model = model } })

  it("sends numbered tokens, then done", function()
    local tokens, ids = read_all(client:sse "/tokens?prompt=hello")
    assert.same({ '{"text":"hello"}', '{"text":" and"}', '{"text":" more"}' }, tokens)
    assert.same({ "1", "2", "3" }, ids)
  end)

  it("answers a prompt in a body", function()
    local res = client:post("/tokens", { json = { prompt = "a long one" } })
    assert.equal(200, res.status)
    assert.equal("text/event-stream", res.headers["content-type"])
    assert.truthy(res.body:find('event: token\ndata: {"text":"a long one"}', 1, true), res.body)
    assert.truthy(res.body:find("event: done", 1, true))
  end)
end)

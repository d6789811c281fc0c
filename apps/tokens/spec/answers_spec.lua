local test = require "photon.test"

local KEY = "0123456789abcdef"

local function texts(events)
  local list = {}
  for i, event in ipairs(events) do list[i] = event.event == "token" and event:json().text or event.event end
  return list
end

describe("an answer with a key", function()
  local made = 0
  local model = {}
  function model.tokens(prompt, seen)
    local words = { prompt, " and", " more", " of", " it" }
    made = made + 1
    return function(_, number)
      require("photon").sleep(1)
      if words[number + 1] then return number + 1, words[number + 1] end
    end, nil, seen
  end
  local client = test.app("apps/tokens", { modules = { model = model } })
  local whole = { "hi", " and", " more", " of", " it", "done" }
  before_each(function()
    made = 0
    test.clock.freeze()
  end)

  it("is made once, for whoever comes again", function()
    local path = "/answers/" .. KEY .. "a?prompt=hi"
    local s = client:sse(path)
    test.clock.advance(2)
    local events = s:events(2)
    assert.same({ "hi", " and" }, texts(events))
    s:drop()
    test.clock.advance(1)
    s = client:sse(path, { last_event_id = events[2].id })
    test.clock.advance(10)
    assert.same({ " more", " of", " it", "done" }, texts(s:events(4)))
    assert.same({ nil, "closed" }, { s:next() })
    assert.same(whole, texts(client:sse(path):events(6)))
    assert.equal(1, made)
  end)

  it("may be asked for by a body", function()
    local options = { method = "POST", json = { prompt = "hi" } }
    local s = client:sse("/answers/" .. KEY .. "b", options)
    test.clock.advance(10)
    assert.same(whole, texts(s:events(6)))
    assert.same(whole, texts(client:sse("/answers/" .. KEY .. "b", options):events(6)))
    assert.equal(1, made)
  end)

  it("wants a key and a prompt", function()
    assert.equal(422, client:get("/answers/short?prompt=hi").status)
    assert.equal(422, client:get("/answers/" .. KEY .. "%20?prompt=hi").status)
    assert.equal(422, client:get("/answers/" .. KEY).status)
    assert.equal(422, client:post("/answers/" .. KEY, { json = { prompt = "" } }).status)
    assert.equal(0, made)
  end)
end)

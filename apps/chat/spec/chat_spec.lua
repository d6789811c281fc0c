local test = require "photon.test"

local function datas(events)
  local list = {}
  for i, event in ipairs(events) do list[i] = event.event .. " " .. (event:json().text or event:json().name) end
  return list
end

describe("chat", function()
  local client
  before_each(function() client = test.app "apps/chat" end)

  local function enter(name, room, options)
    options = options or {}
    options.query = { name = name }
    return client:sse(("/rooms/%s/events"):format(room or "lobby"), options)
  end

  local function say(name, text, room)
    return client:post(("/rooms/%s/messages"):format(room or "lobby"), { json = { name = name, text = text } })
  end

  it("shows a page that needs nothing else", function()
    local res = client:get "/"
    assert.equal(200, res.status)
    assert.equal("text/html; charset=utf-8", res.headers["content-type"])
    assert.falsy(res.body:find "https?://")
  end)

  it("brings what is said to everybody in the room", function()
    local ann, bob, cy = enter "ann", enter "bob", enter("cy", "tea")
    ann:events(2)
    bob:events(2)
    cy:events(1)
    local res = say("ann", "hello <b>you</b>")
    assert.equal(201, res.status)
    for _, s in ipairs { ann, bob } do
      local event = s:next()
      assert.equal("message", event.event)
      assert.equal(res:json().id, event.id)
      assert.equal("hello <b>you</b>", event:json().text)
      assert.equal("ann", event:json().name)
      assert.is_number(event:json().at)
    end
    assert.is_nil(cy:next(0.01))
  end)

  it("tells who comes and goes, and who is there", function()
    local ann = enter "ann"
    assert.same({ "join ann" }, datas(ann:events(1)))
    local bob = enter "bob"
    assert.same({ "join bob" }, datas(ann:events(1)))
    assert.same({ "ann", "bob" }, client:get("/rooms/lobby/members"):json())
    assert.equal(2, client:get("/rooms"):json()[1].present)
    bob:close()
    assert.same({ "leave bob" }, datas(ann:events(1)))
    assert.same({ "ann" }, client:get("/rooms/lobby/members"):json())
  end)

  it("shows the last that was said, and more on asking", function()
    for i = 1, 70 do say("ann", "n" .. i) end
    local bob = enter "bob"
    local events = bob:events(51)
    assert.equal("message n21", datas(events)[1])
    assert.equal("join bob", datas(events)[51])
    local list = client:get("/rooms/lobby/history", { query = { before = events[1].id } }):json()
    assert.equal(20, #list)
    assert.equal("n1", list[1].data.text)
    assert.equal("n20", list[20].data.text)
    assert.same({}, client:get("/rooms/lobby/history", { query = { before = list[1].id } }):json())
  end)

  it("misses nothing while a connection is lost", function()
    local ann = enter "ann"
    say("bob", "one")
    local events = ann:events(2)
    ann:drop()
    test.settle()
    say("bob", "two")
    ann = enter("ann", "lobby", { last_event_id = events[2].id })
    assert.same({ "leave ann", "message two", "join ann" }, datas(ann:events(3)))
  end)

  it("counts characters, not bytes, and takes no text that is not UTF-8", function()
    local name = ("\228\189\160"):rep(30)
    local s = enter(name)
    assert.same({ "join " .. name }, datas(s:events(1)))
    assert.equal(201, say(name, ("\228\189\160"):rep(2000)).status)
    assert.equal(422, say(name .. "x", "x").status)
    assert.equal(422, client:get("/rooms/lobby/events?name=%ff").status)
    assert.equal(422, client:get("/rooms/lobby/events?name=a%80").status)
    assert.same({ name }, client:get("/rooms/lobby/members"):json())
  end)

  it("wants a name, a text and a room", function()
    assert.equal(422, client:get("/rooms/lobby/events").status)
    assert.equal(422, client:get("/rooms/lobby/events", { query = { name = " " } }).status)
    assert.equal(422, say("", "x").status)
    assert.equal(422, say("ann", "").status)
    assert.equal(422, say("ann", ("x"):rep(2001)).status)
    assert.equal(422, say("a\0b", "x").status)
    assert.equal(422, client:post("/rooms/lobby/messages", { json = 7 }).status)
    assert.equal(404, say("ann", "x", "attic").status)
    assert.equal(404, client:get("/rooms/attic/events", { query = { name = "ann" } }).status)
    assert.equal(404, client:get("/rooms/lobby/history", { query = { before = "x-1" } }).status)
  end)
end)

-- Who may listen to channels: admission, limits; and the channels of apps under test.
local live = require "spec.live"
local photon = require "photon"
local test = require "photon.test"

local function datas(events)
  local list = {}
  for i, event in ipairs(events) do list[i] = event.data end
  return list
end

describe("admission", function()
  local asked = 0
  local app = photon.app()
  app:use(function(req, inner)
    local res = inner(req)
    res.headers["x-through"] = "yes"
    return res
  end)
  local plain = photon.channel "plain"
  app:subscribe("/plain", plain)
  app:subscribe("/open", { middleware = false }, plain)
  app:subscribe("/rooms/:room", function(req)
    asked = asked + 1
    if req.query.key ~= "k" then error(photon.problem(401, "who are you?")) end
    return photon.channel("room:" .. req.params.room, { replay = 5 }),
      req.query.name and { member = req.query.name, info = { shown = req.query.name:upper() } }
  end)
  app:subscribe("/both", function() return { photon.channel "left", photon.channel "right" } end)
  app:subscribe("/fixed-both", { photon.channel "left", photon.channel "right" })
  app:subscribe("/elsewhere", function() return photon.redirect "/plain" end)
  app:subscribe("/wrong", function() return "text" end)
  app:subscribe("/nothing", function() end)
  app:subscribe("/odd", function() return plain, { name = "x" } end)
  local client = test.app(app)

  it("may refuse", function()
    local res = client:get "/rooms/a"
    assert.equal(401, res.status)
    assert.equal("who are you?", res:json().detail)
  end)

  it("happens once, and then C is alone", function()
    asked = 0
    local s = client:sse("/rooms/a", { query = { key = "k" } })
    assert.equal("yes", s.headers["x-through"])
    assert.equal(1, asked)
    local tasks = test.counts().tasks
    photon.channel("room:a"):publish "hello"
    assert.equal("hello", s:next().data)
    assert.equal(1, asked)
    assert.equal(tasks, test.counts().tasks)
    s:close()
    assert.equal(0, photon.channel("room:a"):subscribers())
  end)

  it("stands behind middleware unless it opts out", function()
    local s = client:sse "/plain"
    assert.equal("yes", s.headers["x-through"])
    s:close()
    s = client:sse "/open"
    assert.is_nil(s.headers["x-through"])
    s:close()
  end)

  it("may join channels, with ids that resume each of them", function()
    local left, right = photon.channel "left", photon.channel "right"
    for _, path in ipairs { "/both", "/fixed-both" } do
      local s = client:sse(path)
      left:publish "l1"
      right:publish "r1"
      local got = s:events(2)
      table.sort(got, function(a, b) return a.data < b.data end)
      assert.same({ "l1", "r1" }, datas(got))
      local id = s.parser.last_id
      s:close()
      left:publish "l2"
      right:publish "r2"
      s = client:sse(path, { last_event_id = id })
      got = datas(s:events(2))
      table.sort(got)
      assert.same({ "l2", "r2" }, got)
      assert.is_nil(s:next(0.01))
      s:close()
    end
  end)

  it("may answer otherwise", function()
    assert.equal(303, client:get("/elsewhere").status)
  end)

  it("must return a channel", function()
    assert.equal(500, client:get("/wrong", { raise = false }).status)
    assert.equal(500, client:get("/nothing", { raise = false }).status)
    assert.equal(500, client:get("/odd", { raise = false }).status)
  end)

  it("may wait for its end", function()
    local closed = false
    local own = photon.app()
    own:subscribe("/", function(req)
      req:on_close(function() closed = true end)
      return photon.channel "watched"
    end)
    local s = test.app(own):sse "/"
    assert.equal(200, s.status)
    assert.is_false(closed)
    s:close()
    assert.is_true(closed)
  end)

  it("answers HEAD after asking", function()
    assert.equal(401, client:head("/rooms/a").status)
    local res = client:head("/rooms/a", { query = { key = "k" } })
    assert.equal(200, res.status)
    assert.equal("text/event-stream", res.headers["content-type"])
  end)
end)

describe("app:subscribe refuses", function()
  it("what it cannot serve", function()
    local app = photon.app()
    local ch = photon.channel "z"
    for _, wrong in ipairs { { "/", "text" }, { "/", {} }, { "/", { from = "end" }, ch }, { "/", { slow = "gap" }, ch },
      { "/", { hartbeat = 1 }, ch }, { "/", { retry = "x" }, ch }, { "/", { type = "text/html" }, ch },
      { "/", { headers = { a = "\r\n" } }, ch }, { "/", { from = { last = -1 } }, ch }, { "x", ch } } do
      assert.has_error(function() app:subscribe(unpack(wrong)) end)
    end
  end)
end)

describe("limits on streams", function()
  it("are those of an address, by 429", function()
    local app = photon.app { max_streams_per_ip = 2 }
    app:subscribe("/c", photon.channel "c")
    app:sse("/s", function() photon.sleep(100) end)
    app:subscribe("/l", function() return photon.channel "c" end)
    local client = test.app(app)
    local one = client:sse("/c", { ip = "192.0.2.1" })
    local two = client:sse("/s", { ip = "192.0.2.1" })
    for _, path in ipairs { "/c", "/s", "/l" } do
      local res = client:get(path, { ip = "192.0.2.1" })
      assert.equal(429, res.status)
      assert.equal("5", res.headers["retry-after"])
    end
    assert.equal(200, client:head("/c", { ip = "192.0.2.1" }).status)
    local other = client:sse("/l", { ip = "192.0.2.2" })
    assert.equal(200, other.status)
    one:close()
    local again = client:sse("/l", { ip = "192.0.2.1" })
    assert.equal(200, again.status)
    two:close()
    client:sse("/c", { ip = "2001:db8:1:2::1" })
    client:sse("/c", { ip = "2001:db8:1:2::2" })
    assert.equal(429, client:get("/c", { ip = "2001:db8:1:2::3" }).status)
    assert.equal(200, client:sse("/c", { ip = "2001:db8:1:3::3" }).status)
  end)

  it("look behind trusted proxies", function()
    local app = photon.app { max_streams_per_ip = 1, trusted_proxies = { "10.0.0.0/8" } }
    app:subscribe("/c", photon.channel "c")
    local client = test.app(app)
    local function open(ip)
      return client:sse("/c", { ip = "10.1.1.1", headers = { ["x-forwarded-for"] = ip } })
    end
    assert.equal(200, open("192.0.2.1").status)
    assert.equal(200, open("192.0.2.2").status)
    assert.equal(429, open("192.0.2.2").status)
  end)

  it("are those of the server, by 503", function()
    local app = photon.app { max_streams = 1 }
    app:subscribe("/c", photon.channel "c")
    local client = test.app(app)
    local s = client:sse "/c"
    local res = client:get "/c"
    assert.equal(503, res.status)
    assert.equal("5", res.headers["retry-after"])
    s:close()
  end)
end)

describe("channels of apps under test", function()
  describe("of one", function()
    local app = photon.app()
    app:subscribe("/", { from = "start" }, photon.channel("same", { replay = 3 }))
    local client = test.app(app)
    it("are its own", function()
      photon.channel("same"):publish "one"
      assert.equal("one", client:sse("/"):next().data)
    end)
  end)
  describe("of another", function()
    local app = photon.app()
    app:subscribe("/", { from = "start" }, photon.channel("same", { replay = 4 }))
    local client = test.app(app)
    it("are others", function()
      assert.equal(0, #photon.channel("same"):history())
      assert.is_nil(client:sse("/"):next(0.01))
    end)
  end)
end)

describe("photon routes", function()
  it("tells which channel routes enter Lua", function()
    local folder = live.folder()
    local file = assert(io.open(folder .. "/app.lua", "wb"))
    file:write [[
      local photon = require "photon"
      local app = photon.app()
      local news = photon.channel "news"
      app:subscribe("/alone", news)
      app:subscribe("/asked", function() return news end)
      app:group("/in", function(group)
        group:use(function(req, inner) return inner(req) end)
        group:subscribe("/behind", news)
        group:subscribe("/open", { middleware = false }, { news })
      end)
      return app
    ]]
    file:close()
    local pipe = io.popen(live.command("routes " .. folder .. " --json"))
    local routes = photon.json.decode(pipe:read "*a")
    pipe:close()
    os.execute("rm -rf " .. folder)
    local enters = {}
    for i, route in ipairs(routes) do
      assert.equal("channel", route.kind)
      enters[i] = route.pattern .. " " .. tostring(route.enters_lua)
    end
    assert.same({ "/alone false", "/asked true", "/in/behind true", "/in/open false" }, enters)
  end)
end)

-- photon.test: clients of apps in the same process.
local photon = require "photon"
local test = require "photon.test"

local function app_with(method, pattern, ...)
  local app = photon.app()
  app[method](app, pattern, ...)
  return app
end

describe("a client", function()
  local see
  local app = photon.app()
  app:any("/see", { max_body = 4 * 1024 * 1024 }, function(req) return see(req) end)
  app:static("/fixed", "as it is")
  local client = test.app(app)

  it("has a function for each method", function()
    see = function(req) return req.method end
    for _, name in ipairs { "get", "post", "put", "patch", "delete", "options" } do
      assert.equal(name:upper(), client[name](client, "/see").body)
    end
    assert.equal("PURGE", client:request("PURGE", "/see").body)
    local res = client:head "/see"
    assert.equal("", res.body)
    assert.equal("4", res.headers["content-length"])
  end)

  it("gives status, headers and body", function()
    see = function() return { n = 1 }, 201, { ["X-One"] = "1", ["set-cookie"] = { "a=1", "b=2" } } end
    local res = client:post "/see"
    assert.equal(201, res.status)
    assert.same({ n = 1 }, res:json())
    assert.equal("1", res.headers["x-one"])
    assert.equal("1", res.headers["X-ONE"])
    assert.is_nil(res.headers.none)
    assert.same({ "a=1", "b=2" }, res.headers["set-cookie"])
    assert.same({ "a=1", "b=2" }, res:values "Set-Cookie")
    assert.same({ "1" }, res:values "x-one")
    assert.same({}, res:values "none")
    assert.is_true(res.is_complete)
    assert.equal(res.id, res.headers["x-request-id"])
  end)

  it("reaches routes that C serves", function()
    local res = client:get "/fixed"
    assert.equal("as it is", res.body)
    assert.equal(304, client:get("/fixed", { headers = { ["If-None-Match"] = res.headers.etag } }).status)
    assert.equal(405, client:post("/fixed").status)
    assert.equal(404, client:get("/none").status)
  end)

  it("sends queries, headers and bodies of every kind", function()
    see = function(req) return { query = req.query, kind = req.headers["content-type"], body = req:body() } end
    local function sent(options) return client:post("/see", options):json() end
    assert.same({ a = "1 &", b = "ü" }, sent({ query = { a = "1 &", b = "ü" } }).query)
    assert.same({ a = "b" }, sent({ query = "a=b" }).query)
    assert.same({ query = {}, kind = "application/json", body = '{"a":[1]}' }, sent { json = { a = { 1 } } })
    assert.same({ query = {}, kind = "application/x-www-form-urlencoded", body = "a=1&b=x%20y&b=z" },
      sent { form = { a = 1, b = { "x y", "z" } } })
    assert.same({ query = {}, kind = "text/css", body = "p{}" },
      sent { body = "p{}", headers = { ["Content-Type"] = "text/css" } })
    local upload = sent { files = { f = { data = "DATA", filename = 'a"b.txt', type = "text/plain" } }, form = { x = "1" } }
    local boundary = upload.kind:match "^multipart/form%-data; boundary=(.+)$"
    assert.truthy(upload.body:find("--" .. boundary .. '\r\ncontent-disposition: form-data; name="x"\r\n\r\n1\r\n', 1, true))
    assert.truthy(upload.body:find('name="f"; filename="a%22b.txt"\r\ncontent-type: text/plain\r\n\r\nDATA\r\n', 1, true))
  end)

  it("sends bodies of any size, announced or not", function()
    see = function(req) return tostring(#req:body()) end
    local body = ("x"):rep(1024 * 1024 + 7)
    assert.equal(tostring(#body), client:post("/see", { body = body }).body)
    assert.equal(tostring(#body), client:post("/see", { body = body, chunked = true }).body)
    assert.equal(413, client:post("/see", { body = ("x"):rep(4 * 1024 * 1024 + 1) }).status)
    assert.equal(413, client:post("/see", { body = ("x"):rep(4 * 1024 * 1024 + 1), chunked = true }).status)
  end)

  it("comes from an address", function()
    see = function(req) return req.ip end
    assert.equal("127.0.0.1", client:get("/see").body)
    assert.equal("10.1.2.3", client:get("/see", { ip = "10.1.2.3" }).body)
    assert.equal("2001:db8::1", client:get("/see", { ip = "2001:db8::1" }).body)
    assert.error(function() client:get("/see", { ip = "here" }) end)
  end)

  it("refuses what no client could send, and options that do not exist", function()
    local function refuses(pattern, ...)
      local ok, err = pcall(client.request, client, ...)
      assert.is_false(ok)
      assert.truthy(tostring(err):find(pattern), tostring(err))
    end
    refuses("escape it", "GET", "/a b")
    refuses("begins with", "GET", "see")
    refuses("CR, LF or NUL", "GET", "/see", { headers = { a = "b\r\nc: d" } })
    refuses("no name", "GET", "/see", { headers = { ["a b"] = "c" } })
    refuses("no option jason", "GET", "/see", { jason = {} })
    refuses("one body", "GET", "/see", { json = {}, body = "x" })
  end)

  it("waits for handlers that wait, with other requests between", function()
    see = function(req)
      photon.sleep(req.query.ms / 1000)
      return req.query.ms
    end
    local order, tasks = {}, {}
    for i, ms in ipairs { 30, 5 } do
      tasks[i] = photon.spawn(function()
        local res = client:get("/see?ms=" .. ms)
        order[#order + 1] = res.body
      end)
    end
    for _, t in ipairs(tasks) do assert.truthy(t:join()) end
    assert.same({ "5", "30" }, order)
  end)

  it("gives up after a timeout", function()
    see = function() photon.sleep(100) end
    assert.error_matches(function() client:get("/see", { timeout = 0.02 }) end, "no reply after 0.02 s")
  end)

  it("raises what a handler leaves unhandled, with its traceback", function()
    see = function() local t = nil; return t.x end
    local ok, err = pcall(client.get, client, "/see")
    assert.is_false(ok)
    assert.truthy(err:find "spec/testing_spec.lua:%d+: attempt to index")
    assert.truthy(err:find "stack traceback")
    local res = client:get("/see", { raise = false })
    assert.equal(500, res.status)
    assert.falsy(res.body:find "attempt")
  end)

  it("does not raise problems, nor errors that on_error has answered", function()
    see = function() error(photon.problem(418, "no coffee")) end
    assert.equal(418, client:get("/see").status)
  end)

  it("raises a failed assertion of a handler as a failure", function()
    see = function() assert.equal(1, 2) end
    local ok, err = pcall(client.get, client, "/see")
    assert.is_false(ok)
    assert.equal("failure", getmetatable(err).__type)
  end)
end)

describe("an event stream", function()
  local run, closed
  local client = test.app(app_with("sse", "/s", { heartbeat = 2 }, function(stream, req)
    stream:on_close(function() closed = true end)
    return run(stream, req)
  end))
  before_each(function() closed = false end)

  it("is there when its head is, without any event", function()
    run = function() photon.sleep(100) end
    local s = client:sse "/s"
    assert.equal(200, s.status)
    assert.equal("text/event-stream", s.headers["Content-Type"])
    local event, why = s:next(0.01)
    assert.is_nil(event)
    assert.equal("timeout", why)
    s:close()
    assert.is_true(closed)
    s:close()
  end)

  it("gives events one by one, and its clean end", function()
    run = function(stream)
      stream:send { n = 1 }
      stream:event { event = "two", data = "x\ny", id = "7", retry = 100 }
      stream:send "three"
    end
    local s = client:sse "/s"
    assert.same({ n = 1 }, s:next():json())
    local two = s:next()
    assert.same({ event = "two", data = "x\ny", id = "7", retry = 100 }, two)
    assert.same({ event = "message", data = "three", id = "7" }, s:next())
    assert.same({ nil, "closed" }, { s:next() })
    assert.is_false(s:is_open())
  end)

  it("gives several at once", function()
    run = function(stream)
      for i = 1, 3 do stream:send(i) end
      photon.sleep(100)
    end
    local s = client:sse "/s"
    assert.equal(2, #s:events(2))
    local rest, why = s:events(2, 0.01)
    assert.equal(1, #rest)
    assert.equal("timeout", why)
  end)

  it("is told its last event id", function()
    run = function(stream) stream:send(tostring(stream.last_event_id)) end
    assert.equal("9", client:sse("/s", { last_event_id = "9" }):next().data)
    assert.equal("nil", client:sse("/s"):next().data)
  end)

  it("raises the error that broke it", function()
    run = function(stream)
      stream:send "a"
      photon.sleep(0)
      error "broken here"
    end
    local s = client:sse "/s"
    assert.equal("a", s:next().data)
    assert.error_matches(function() s:next() end, "^broken here\n")
    s = client:sse("/s", { raise = false })
    s:next()
    assert.same({ nil, "broken" }, { s:next() })
  end)

  it("raises an error before the head at once", function()
    run = function() error "too early" end
    assert.error_matches(function() client:sse "/s" end, "too early")
    assert.equal(500, client:sse("/s", { raise = false }).status)
  end)

  it("notices a client that vanishes", function()
    local result
    run = function(stream)
      stream:send "a"
      photon.sleep(0.001)
      result = { stream:send "b" }
      photon.sleep(0)
    end
    local s = client:sse "/s"
    s:next()
    s:drop()
    test.settle()
    assert.is_true(closed)
    assert.is_nil(result) -- the sleep was cancelled
    assert.same({ nil, "closed" }, { s:next() })
  end)

  it("holds up a producer whose client reads slowly", function()
    local sent = 0
    run = function(stream)
      for _ = 1, 400 do
        if not stream:send(("x"):rep(1000)) then return end
        sent = sent + 1
      end
    end
    test.clock.freeze(1000)
    local s = client:sse("/s", { slow = 0 })
    test.settle()
    assert.truthy(sent < 100, "a stream's buffer is 64 KiB, " .. sent .. " events were sent")
    local before = sent
    s:slow(100000)
    test.clock.advance(2)
    local events = s:events(400, 0)
    assert.truthy(#events > 150 and #events <= 200, #events .. " events of 1 KB in 2 s at 100 KB/s")
    assert.truthy(sent > before)
    s:slow(nil)
    assert.equal(400 - #events, #s:events(400))
    assert.equal(400, sent)
  end)

  it("loses a client that reads nothing for write_timeout", function()
    run = function(stream)
      while stream:send(("x"):rep(10000)) do photon.sleep(0.01) end
    end
    test.clock.freeze(0)
    local s = client:sse "/s"
    s:slow(0)
    test.clock.advance(59)
    assert.is_false(closed)
    test.clock.advance(3)
    assert.is_true(closed)
  end)

  it("has heartbeats, governed by the clock", function()
    run = function() photon.sleep(1000) end
    test.clock.freeze()
    local s = client:sse "/s"
    assert.is_nil(s:comment(0))
    test.clock.advance(2)
    assert.equal("", s:comment(0))
    assert.is_nil(s:comment(0))
    test.clock.advance(4)
    assert.equal("", s:comment(0))
    assert.equal("", s:comment(0))
  end)
end)

describe("a plain stream", function()
  local app = photon.app()
  app:get("/lines", function()
    return photon.stream({ type = "application/x-ndjson" }, function(stream)
      for i = 1, 3 do
        stream:send { i = i }
        photon.sleep(0)
      end
    end)
  end)
  app:get("/bytes", function()
    return photon.stream({ type = "text/plain" }, function(stream)
      stream:write "one "
      photon.sleep(0.001)
      stream:write "two"
    end)
  end)
  local client = test.app(app)

  it("gives lines", function()
    local s = client:stream "/lines"
    assert.equal('{"i":1}', s:line())
    assert.same({ i = 2 }, s:json())
    assert.same({ i = 3 }, s:json())
    assert.same({ nil, "closed" }, { s:json() })
  end)

  it("gives bytes as they come, or all of them", function()
    local s = client:stream "/bytes"
    assert.equal("one ", s:read())
    assert.equal("two", s:read())
    assert.equal("one two", client:stream("/bytes"):all())
    assert.equal("one two", client:get("/bytes").body)
  end)

  it("has no events", function()
    assert.error_matches(function() client:stream("/bytes"):next() end, "client:sse")
    assert.error_matches(function() client:sse("/bytes"):read() end, "client:stream")
  end)
end)

describe("the clock", function()
  it("stands still, and is moved", function()
    test.clock.freeze(86400)
    assert.equal(86400, os.time())
    assert.equal("1970-01-02 00:00:00", os.date "!%Y-%m-%d %H:%M:%S")
    test.clock.advance(90.5)
    assert.equal(86490, os.time())
    assert.equal(0, os.time { year = 1970, month = 1, day = 1, hour = 0 } % 900)
    test.clock.release()
    assert.truthy(os.time() > 1e9)
  end)

  it("runs what comes due at its own time", function()
    test.clock.freeze(0)
    local seen = {}
    local function note(name) seen[#seen + 1] = name .. os.time() end
    photon.after(2, function() note "b" end)
    photon.every(1, function() note "a" end)
    test.clock.advance(0.999)
    assert.same({}, seen)
    test.clock.advance(2.001)
    assert.same({ "a1", "b2", "a2", "a3" }, seen)
  end)

  it("governs times to live, and dates of replies", function()
    test.clock.freeze(0)
    photon.shared("clock"):set("k", 1, { ttl = 10 })
    test.clock.advance(9)
    assert.equal(1, photon.shared("clock"):get "k")
    test.clock.advance(2)
    assert.is_nil(photon.shared("clock"):get "k")
    local client = test.app(app_with("get", "/", function() return "x" end))
    assert.equal("Thu, 01 Jan 1970 00:00:11 GMT", client:get("/").headers.date)
  end)

  it("must be frozen to be moved", function()
    assert.error_matches(function() test.clock.advance(1) end, "not frozen")
  end)
end)

describe("an app of test.app", function()
  it("has settings of the spec", function()
    local app = app_with("post", "/", function(req) return tostring(#req:body()) end)
    local client = test.app(app, { config = { max_body = 10 } })
    assert.equal(413, client:post("/", { body = ("x"):rep(11) }).status)
    assert.equal("11", test.app(app):post("/", { body = ("x"):rep(11) }).body)
    assert.error_matches(function() test.app(app, { config = { max_bodies = 1 } }) end, "no setting")
  end)

  it("starts, and stops with the scope it is made in", function()
    local app, ticks, started = photon.app(), 0, nil
    app:on_start(function()
      photon.sleep(0.001)
      started = true
    end)
    app:every(1, { once = true }, function() ticks = ticks + 1 end)
    app:get("/", function() return tostring(ticks) end)
    local client = test.app(app)
    assert.is_true(started)
    test.clock.freeze()
    test.clock.advance(3.5)
    assert.equal("3", client:get("/").body)
  end)

  it("may be none", function()
    assert.error_matches(function() test.app {} end, "takes an app")
    assert.error_matches(function() test.app "apps/none" end, "there is no app at apps/none")
    assert.error_matches(function() test.app("apps/hello", { module = {} }) end, "no option module")
  end)

  it("sees stubs and spies", function()
    local helper = { name = function() return "real" end }
    local client = test.app(app_with("get", "/", function() return helper.name() end))
    assert.equal("real", client:get("/").body)
    stub(helper, "name").returns "stubbed"
    assert.equal("stubbed", client:get("/").body)
    assert.stub(helper.name).was_called(1)
  end)
end)

describe("a server of test.server", function()
  it("is a process on a port of its own", function()
    local server = test.server("apps/hello", { workers = 2 })
    assert.truthy(server.port > 0)
    assert.equal("http://127.0.0.1:" .. server.port, server.url)
    local uv = require "luv"
    local reply = photon.await(function(resume)
      local tcp, text = uv.new_tcp(), ""
      tcp:connect("127.0.0.1", server.port, function(err)
        if err then return resume(err) end
        tcp:write "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        tcp:read_start(function(_, data)
          if data then
            text = text .. data
          else
            tcp:close()
            resume(text)
          end
        end)
      end)
    end)
    assert.truthy(reply:find "^HTTP/1.1 200 OK\r\n")
    assert.equal(0, server:stop())
    assert.equal(0, server:stop())
  end)

  it("says why it does not start", function()
    assert.error_matches(function() test.server "apps/none" end, "there is no app at apps/none")
    assert.error_matches(function() test.server(photon.app()) end, "process of its own")
  end)
end)

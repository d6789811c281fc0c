-- photon.test: clients of apps in the same process.
local photon = require "photon"
local test = require "photon.test"
local uv = require "luv"

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

  it("has a handler's recursion through C functions end in an error", function()
    local function deep(s) return (s:gsub(".", deep)) end
    see = function() return deep "x" end
    assert.equal(500, client:get("/see", { raise = false }).status)
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

  it("is told of a server that began with the run", function()
    local other = photon.app()
    other:health "/healthz"
    local health = test.app(other):get("/healthz"):json()
    assert.equal(1, health.generation)
    local since_boot = uv.hrtime() / 1e9
    assert.truthy(since_boot - health.uptime > 1, health.uptime)
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
    local file = { data = "DATA", filename = 'a"b.txt', type = "text/plain" }
    local upload = sent { files = { f = file }, form = { x = "1" } }
    local boundary = upload.kind:match "^multipart/form%-data; boundary=(.+)$"
    local function has(text) assert.truthy(upload.body:find(text, 1, true), upload.body) end
    has("--" .. boundary .. '\r\ncontent-disposition: form-data; name="x"\r\n\r\n1\r\n')
    has 'name="f"; filename="a%22b.txt"\r\ncontent-type: text/plain\r\n\r\nDATA\r\n'
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

  it("is not waited for where there is no time to wait", function()
    test.clock.freeze(0)
    local order = {}
    local other = photon.spawn(function()
      for i = 1, 3 do
        order[#order + 1] = "other " .. i
        photon.sleep(-1)
      end
    end)
    for i = 1, 3 do
      order[#order + 1] = "one " .. i
      photon.sleep(0)
    end
    other:join()
    assert.same({ "one 1", "other 1", "one 2", "other 2", "one 3", "other 3" }, order)
  end)

  it("must be frozen to be moved", function()
    for _, time in ipairs { 0 / 0, 1 / 0, -1e300, "noon" } do
      local ok, problem = pcall(test.clock.freeze, time)
      assert.is_false(ok)
      assert.truthy(problem:find("seconds since 1970, not " .. tostring(time), 1, true), problem)
    end
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

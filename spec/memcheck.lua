-- A server under valgrind's memcheck: some requests, streams, a full VM, a reload, a clean end. Slow, and not every
-- machine has valgrind, so not one of the suite's files: `build/photon test spec/memcheck.lua`.
local live = require "spec.live"

-- `env` starts the server in its own place.
local VALGRIND = "valgrind --quiet --trace-children=yes --error-exitcode=9 --num-callers=30 --leak-check=full "
  .. "--show-leak-kinds=definite,possible --errors-for-leak-kinds=definite,possible "

local APP = [[
local photon = require "photon"
local uv = require "luv"
local app = photon.app { lua_budget = 60, lua_memory = 8 * 1024 * 1024 }
local kept = {}
local news = photon.channel("news", { replay = 10 })
local function later() photon.shared("words"):set("later", "yes") end
app:static("/fixed", "fixed")
app:get("/users/:id", function(req) return { id = req.params.id, query = req.query, word = req.headers.accept } end)
app:post("/body", function(req) return { size = #req:body() } end)
app:get("/error", function() error "on purpose" end)
app:get("/sleep", function()
  photon.after(0.01, later)
  local t = photon.spawn(photon.sleep, 0.02)
  t:join()
  return photon.shared("words"):get "later"
end)
app:get("/luv", function()
  local timer = uv.new_timer()
  timer:start(1, 0, function() timer:close() end)
  photon.sleep(0.02)
  return uv.fs_stat("/").type
end)
app:sse("/stream", function(stream) for i = 1, 50 do stream:send("tick", { i = i }) photon.sleep(0) end end)
app:sse("/endless", function(stream) while stream:send(("x"):rep(1000)) do photon.sleep(0.01) end end)
app:subscribe("/news", news)
app:post("/news", function(req) news:publish(req:body()) end)
app:get("/fill", function() while true do kept[#kept + 1] = ("x"):rep(10000) .. #kept end end)
app:metrics "/metrics"
return app
]]

describe("memcheck finds nothing in a server that", function()
  it("answers, streams, reloads and ends", function()
    local server = live.start { source = APP, before = VALGRIND, flags = "--drain 1" }
    local function use(full)
      assert.equal("fixed", server:get("/fixed").body)
      assert.equal(200, server:get("/users/a%20b?x=1&y", "accept: text/html").status)
      assert.equal('{"size":100000}', server:request("POST", "/body", nil, ("b"):rep(100000)).body)
      assert.equal(500, server:get("/error").status)
      assert.equal(404, server:get("/nowhere").status)
      assert.equal(405, server:request("DELETE", "/fixed").status)
      assert.equal("yes", server:get("/sleep").body)
      assert.equal("directory", server:get("/luv").body)
      assert.truthy(server:get("/stream").body:find('"i":50', 1, true))
      assert.equal(400, server:exchange("GET / HTTP/1.1\r\n\r\n")[1].status)
      local reader, gone, broken = server:connect(), server:connect(), server:connect()
      reader:send "GET /news HTTP/1.1\r\nhost: x\r\n\r\n"
      assert.is_true(reader:comes "text/event-stream")
      assert.equal(204, server:request("POST", "/news", nil, "hello").status)
      assert.is_true(reader:comes "data: hello")
      gone:send "GET /endless HTTP/1.1\r\nhost: x\r\n\r\n"
      assert.is_true(gone:comes "data: x")
      gone:close()
      broken:send "GET /endless HTTP/1.1\r\nhost: x\r\n\r\n"
      assert.is_true(broken:comes "data: x")
      repeat server:get "/fill" until server:metric "photon_vms_full_total" > full
      assert.is_true(broken:closes())
      return reader
    end
    local first = use(0)
    server:signal "HUP"
    assert.is_true(server:has_logged "reloaded")
    local second = use(1)
    server:signal "TERM"
    assert.equal(0, server:wait(), server:log())
    first:close()
    second:close()
  end)
end)

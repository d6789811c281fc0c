-- New code takes over between two requests; broken code changes nothing.
local live = require "spec.live"
local replies = require "spec.replies"
local socket = require "spec.socket"

local VERSION = [[
local photon = require "photon"
local app = photon.app()
app:get("/", function() return "%s" end)
local state = photon.shared "state"
app:get("/held", function()
  state:set("is_held", true)
  while state:get "is_held" do photon.sleep(0.005) end
  return "%s"
end)
app:get("/is_held", function() return tostring(state:get "is_held") end)
app:post("/release", function() state:set("is_held", false) end)
app:sse("/stays", function(stream)
  while stream:send "%s" do photon.sleep(0.02) end
end)
app:sse("/goes", { reload = "reconnect" }, function(stream)
  while stream:send "%s" do photon.sleep(0.02) end
end)
app:metrics("/metrics")
return app
]]

local GET = "GET %s HTTP/1.1\r\nhost: photon.test\r\n\r\n"

local server

local function version(n)
  return (VERSION:gsub("%%s", n))
end

local function is_served(n)
  return socket.eventually(function() return server:get("/").body == n end, n .. " is served")
end

-- One client: sends a request as soon as it has the reply to the last one.
local function ask(client)
  client.received = ""
  assert.truthy(client:send(GET:format "/"), "the connection was lost")
end

local function take(client)
  client:try_receive()
  local reply = replies.read(client.received, { "GET" }, client.is_closed)[1]
  if client.is_closed then assert.truthy(reply, "closed without a reply") end
  if not reply or not reply.is_complete then return nil end
  assert.equal(200, reply.status)
  return reply.body
end

for _, workers in ipairs { 1, 2 } do
  describe(("a reload with %d worker%s"):format(workers, workers == 1 and "" or "s"), function()
    before_each(function()
      server = live.start { source = version "one", flags = "--workers " .. workers }
    end)

    after_each(function()
      server:stop()
    end)

    it("brings new code, and says what it did", function()
      assert.equal("one", server:get("/").body)
      server:replace(version "two")
      local is_done, text = server:reload()
      assert.is_true(is_done)
      assert.truthy(text:find "^photon: reloaded generation 2 in %d+ ms %(7 routes%)\n$", text)
      for _ = 1, 10 do assert.equal("two", server:get("/").body) end
      assert.truthy(server:get("/metrics").body:find("\nphoton_reloads_total 1\n", 1, true))
    end)

    it("comes with SIGHUP", function()
      server:replace(version "two")
      server:signal "HUP"
      assert.truthy(is_served "two")
      assert.truthy(server:has_logged "reloaded generation 2 in ")
    end)

    it("lets running requests and streams finish in the old code", function()
      local held, stays, goes = server:connect(), server:connect(), server:connect()
      held:send(GET:format "/held")
      stays:send(GET:format "/stays")
      goes:send(GET:format "/goes")
      for _, s in ipairs { stays, goes } do assert.truthy(s:comes "data: one") end
      socket.eventually(function() return server:get("/is_held").body == "true" end, "the request is there")
      server:replace(version "two")
      assert.is_true(server:reload())
      assert.equal(204, server:request("POST", "/release", nil, "").status)
      assert.truthy(held:receive_until(function(got) return got:find "one$" end))
      stays.received = ""
      assert.truthy(stays:comes "data: one")
      assert.truthy(goes:comes "\r\n0\r\n\r\n")
      held:close()
      stays:close()
      goes:close()
    end)

    it("fails no request under load", function()
      local clients, last, requests = {}, {}, 0
      for i = 1, 16 do
        clients[i] = server:connect()
        last[i] = 0
        ask(clients[i])
      end
      for n = 2, 12 do
        server:replace(version(tostring(n)))
        server:signal "HUP"
        local seen, limit = 0, socket.now() + socket.patience
        while seen < #clients and socket.now() < limit do
          local ready = {}
          for i, client in ipairs(clients) do ready[i] = { socket = client, events = socket.reading } end
          socket.poll(ready, 1)
          seen = 0
          for i, client in ipairs(clients) do
            local body = ready[i].ready and take(client)
            if body then
              local got = tonumber(body) or 1
              assert.truthy(got >= last[i], "old code after new code")
              last[i], requests = got, requests + 1
              ask(client)
            end
            if last[i] == n then seen = seen + 1 end
          end
        end
        assert.equal(#clients, seen)
      end
      assert.truthy(requests >= 11 * #clients)
      for _, client in ipairs(clients) do client:close() end
    end)

    it("of broken code changes nothing, names the place, and can be mended", function()
      local broken = {
        ["app%.lua:2:.*expected near"] = "local photon = require 'photon'\nlocal = 1\n",
        ["app%.lua:3: on purpose"] = "local photon = require 'photon'\n\nerror('on purpose')\n",
        ["GET / %(.*app%.lua:4%).*app%.lua:3"] = "local app = require('photon').app()\nlocal function f() end\n"
          .. "app:get('/', f)\napp:get('/', f)\nreturn app\n",
        ["app%.lua:2:.*photon%.sleep"] = "local photon = require 'photon'\nphoton.sleep(1)\nreturn photon.app()\n",
        ["app%.lua must return the app"] = "return 42\n",
      }
      for message, source in pairs(broken) do
        server:replace(source)
        local is_done, text = server:reload()
        assert.is_false(is_done)
        assert.truthy(text:find("^photon: reload failed: .*" .. message), text)
        assert.equal("one", server:get("/").body)
        assert.truthy(server:has_logged "reload failed, the old code serves on: ")
      end
      assert.truthy(server:get("/metrics").body:find("\nphoton_reload_failures_total 5\n", 1, true))
      server:replace(version "two")
      assert.is_true(server:reload())
      assert.equal("two", server:get("/").body)
    end)

    it("sees every change when many are asked for at once", function()
      local pipes = {}
      for i = 1, 8 do
        server:replace(version(tostring(i)))
        pipes[i] = io.popen(live.command(("reload %s 2>&1"):format(server.folder)))
      end
      for i = 1, 8 do
        assert.truthy(pipes[i]:read("*a"):find "^photon: reloaded generation %d")
        pipes[i]:close()
      end
      assert.equal("8", server:get("/").body)
    end)

    it("forgets the old generation", function()
      for n = 2, 6 do
        server:replace(version(tostring(n)))
        assert.is_true(server:reload())
      end
      server:becomes("photon_generations", 1)
    end)

    it("cuts off an on_start that still waits, and logs no error for it", function()
      server:replace [[
local photon = require "photon"
local app = photon.app()
app:get("/", function() return "2" end)
app:on_start(function() photon.log.info "it waits" photon.sleep(1000) end)
app:on_stop(function() photon.log.info "it stops" end)
return app]]
      assert.is_true(server:reload())
      assert.is_true(server:has_logged "it waits")
      server:replace(version "3")
      assert.is_true(server:reload())
      assert.is_true(server:has_logged "it stops")
      server:becomes("photon_generations", 1)
      assert.is_nil(server:log():find("cancelled", 1, true))
    end)

    it("starts no timers behind an on_start that was cut off", function()
      server:replace [[
local photon = require "photon"
local app = photon.app()
app:on_start(function()
  photon.log.info "it waits"
  pcall(photon.sleep, 1000)
  photon.spawn(photon.sleep, 1000)
end)
app:every(0.01, function() end)
return app]]
      assert.is_true(server:reload())
      assert.is_true(server:has_logged "it waits")
      server:replace(version "3")
      assert.is_true(server:reload())
      server:becomes("photon_generations", 1)
      server:becomes("photon_tasks", 0)
    end)
  end)
end

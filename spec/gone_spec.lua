-- A client that says that it sends no more, and one that vanishes: what each request's handler sees.
local live = require "spec.live"
local socket = require "spec.socket"

local SOURCE = [[
local photon = require "photon"
local app = photon.app()
local seen = {}

-- Waits until /go is asked for; what becomes of the wait is what /seen tells.
local function wait(name)
  seen[name] = "waits"
  photon.defer(function() if seen[name] == "waits" then seen[name] = "cancelled" end end)
  photon.await(function(resume) seen[name .. ".resume"] = resume end)
  seen[name] = "finished"
end

app:get("/go", function(req)
  seen[req.query.name .. ".resume"]()
end)
app:get("/seen", function(req) return seen[req.query.name] or "nothing" end)

app:get("/plain", function() wait "plain" return "reply" end)
app:sse("/stream", function(stream) stream:send "x" wait "stream" end)
app:sse("/detached", { detach = true }, function(stream) stream:send "x" wait "detached" end)
-- It does not look at what send returns; detached it goes on after thousands in vain.
local function produce(name)
  return function(stream)
    seen[name] = "waits"
    photon.defer(function() if seen[name] == "waits" then seen[name] = "cancelled" end end)
    local count, in_vain = 0, 0
    while in_vain < 5000 do
      if not stream:send(count) then in_vain = in_vain + 1 end
      count = count + 1
    end
    seen[name] = "finished"
  end
end
app:sse("/producer", produce "producer")
app:sse("/tireless", { detach = true }, produce "tireless")
app:get("/late", function()
  wait "late"
  return photon.stream(function(stream)
    stream:on_close(function() seen.late = "closed" end)
    stream:send "x"
    photon.await(function() end)
  end)
end)
local news = photon.channel "news"
app:subscribe("/news", function(req)
  wait "news"
  req:on_close(function() seen.news = "closed" end)
  return news
end)
return app
]]

describe("a client that goes", function()
  local server, s

  setup(function() server = live.start { source = SOURCE } end)
  teardown(function() server:stop() end)

  local function ask(name)
    s = server:connect()
    s:send(("GET /%s HTTP/1.1\r\nhost: x\r\n\r\n"):format(name))
    socket.eventually(function() return server:get("/seen?name=" .. name).body == "waits" end, name .. " waits")
  end

  local function becomes(name, what)
    socket.eventually(function() return server:get("/seen?name=" .. name).body == what end, name .. " " .. what)
  end

  local function go(name)
    assert.equal(204, server:get("/go?name=" .. name).status)
  end

  it("still gets its reply when it only sends no more", function()
    ask "plain"
    s:finish()
    assert.equal("waits", server:get("/seen?name=plain").body)
    go "plain"
    assert.is_true(s:closes())
    assert.truthy(s.received:find "reply$")
    becomes("plain", "finished")
    s:close()
  end)

  it("cancels a request by a reset", function()
    ask "plain"
    s:reset()
    becomes("plain", "cancelled")
  end)

  it("ends its stream by sending no more: nobody reads it any longer", function()
    ask "stream"
    s:finish()
    becomes("stream", "cancelled")
    s:close()
    ask "stream"
    s:close()
    becomes("stream", "cancelled")
    ask "stream"
    s:reset()
    becomes("stream", "cancelled")
  end)

  it("leaves a detached stream to its end", function()
    ask "detached"
    s:reset()
    go "detached"
    becomes("detached", "finished")
  end)

  it("cancels a producer that sends in vain, and not one that is detached", function()
    for name, what in pairs { producer = "cancelled", tireless = "finished" } do
      ask(name)
      s:reset()
      becomes(name, what)
    end
  end)

  it("ends a stream or a subscription that begins after that", function()
    for _, name in ipairs { "late", "news" } do
      ask(name)
      s:finish()
      go(name)
      assert.is_true(s:closes(), name)
      becomes(name, "closed")
      s:close()
    end
  end)
end)

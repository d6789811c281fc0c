-- No Lua error ends the process: a real server, one way to go wrong after another.
local survive = require "spec.survive"
local ways = require "spec.survive_ways"

local HEAD = [[
local photon = require "photon"
local app = photon.app { lua_budget = 2 }
kept = {}
app:get("/ok", function() return "ok" end)
app:get("/collect", function() for _ = 1, 40 do pcall(collectgarbage) end return "collected" end)
app:on_stop(function() error "stopping" end)
app:on_start(function() if photon.shared("starts"):incr("n", 1, { init = 0 }) > 1 then error "starting again" end end)
app:every(0.01, function() error { "every" } end)
app:not_found(function() error(false) end)
]]

local SCOPES = {
  raising = [[g:use(function() error { "middleware" } end)]],
  empty = [[g:use(function() end)]],
  worse = [[g:on_error(function() error(nil) end)]],
  deeper = [[g:on_error(function() local function f() return 1 + f() end return f() end)]],
}

local function source()
  local text = { HEAD }
  for i, way in ipairs(ways) do
    local scope = way.path and way.path:match "^/(%a+)/"
    local method = way.method or "GET"
    if scope then
      text[#text + 1] = ("app:group('/%s', function(g) %s g:get('/one', function(req) %s end) end)"):format(scope,
        SCOPES[scope], way[2])
    else
      text[#text + 1] = ("app:route('%s', '/%d', function(req) %s end)"):format(method, i, way[2])
    end
  end
  text[#text + 1] = "return app"
  return table.concat(text, "\n")
end

describe("a server", function()
  local server

  before_each(function() server = survive.revive(server, source()) end)
  teardown(function() server:stop() end)

  local function is_alive()
    local reply = server:get "/ok"
    assert.equal(200, reply.status)
    assert.equal("ok", reply.body)
  end

  for index, way in ipairs(ways) do
    it("survives " .. way[1], function()
      survive.try(server, way, way.path or "/" .. index)
      if way.after then server:get("/" .. way.after) end
      is_alive()
    end)
  end

  it("survives errors of hooks in a reload, and goes on with the new code", function()
    server:signal "HUP"
    assert.is_true(server:has_logged "reloaded generation 2")
    assert.is_true(server:has_logged "starting again")
    assert.is_true(server:has_logged "stopping")
    is_alive()
  end)

  it("survives a not_found that raises", function()
    assert.equal(500, server:get("/nowhere").status)
    is_alive()
  end)

  it("stops cleanly after all that", function()
    server:signal "TERM"
    assert.equal(0, server:wait())
  end)
end)

-- Every wrong call names the line of the app, and says what was wrong.
local core = require "photon.core"
local misuse = require "spec.misuse"
local photon = require "photon"
local test = require "photon.test"

local PLACE = "app/case.lua:2"

local function nothing() end

-- The code as line 2 of a file of an app.
local function compile(code, env)
  env.photon, env.f = photon, nothing
  return setfenv(assert(loadstring("\n" .. code, "@app/case.lua")), setmetatable(env, { __index = _G }))
end

-- The code as the body of a function(a, b).
local function compile_function(code, a, b)
  return compile(("return function(%s, %s) %s end"):format(a, b, code), { ch = photon.channel "misuse" })()
end

local STREAMS = { stream = {}, bytes = { type = "text/plain" }, lines = { type = "application/x-ndjson" } }

-- What puts the code into an app, by where it stands.
local ways = {}

function ways.request(app, code)
  local ch = photon.channel "misuse"
  app:get("/x", function(req)
    compile(code, { app = app, req = req, ch = ch })()
    return "done"
  end)
end

for _, kind in ipairs { "stream", "bytes", "lines", "resume" } do
  ways[kind] = function(app, code)
    app:sse("/x", STREAMS[kind] or { resume = photon.channel("misuse " .. code) }, function(s)
      compile(code, { s = s })()
    end)
  end
end

function ways.result(app, code) app:get("/x", compile_function(code, "req", "_")) end
function ways.subscribe(app, code) app:subscribe("/x", compile_function(code, "req", "_")) end

function ways.middleware(app, code)
  app:use(compile_function(code, "req", "inner"))
  app:get("/x", function() return "inner" end)
end

function ways.on_error(app, code)
  app:on_error(compile_function(code, "err", "req"))
  app:get("/x", function() error "first" end)
end

-- The error's message, and all that is told of it. Nil: there was none.
local function failure_of(where, code)
  local app = photon.app()
  if where == "load" then
    local ok, err = xpcall(function()
      compile(code, { app = app })()
      test.app(app)
    end, core.traceback)
    if ok then return nil end
    return type(err) == "table" and err.message or err
  end
  ways[where](app, code)
  local client = test.app(app)
  local ok, err = pcall(client.get, client, "/x")
  return not ok and tostring(err) or nil
end

for where, cases in pairs(misuse) do
  describe("a wrong call in " .. where, function()
    for _, case in ipairs(cases) do
      local code, wanted = case[1], (case[2]:gsub("PLACE", PLACE))
      it("is told: " .. code, function()
        local message = assert(failure_of(where, code), "no error was raised")
        assert.truthy(message:find(wanted, 1, true), "another message: " .. message)
        local has_place = message:find(PLACE .. ": ", 1, true) == 1 or wanted:find(PLACE, 1, true)
        assert.truthy(has_place or message:find(PLACE, 1, true), "no place of the app: " .. message)
        assert.is_nil(message:match "^[^\n]*":find("lua/photon/", 1, true), "a place of the library: " .. message)
      end)
    end
  end)
end

-- The app that the specs of reports send requests to.
local photon = require "photon"
local app = photon.app { max_body = "8 MiB" }

local seen = photon.shared "seen"

app:static("/", "ok")
app:get("/admin", function()
  seen:set("admin", true)
  return "admin"
end)
app:get("/admin/ran", function() return { ran = seen:get "admin" or false } end)
app:get("/slow", function()
  photon.sleep(0.003)
  return "slow"
end)
app:any("/echo", function(req) return req:body() end)
app:post("/small", { max_body = 1000 }, function(req) return req:body() end)
app:post("/unread", function() return "unread" end)

app:post("/twice", function(req)
  local first, second = req:body(), req:body()
  return first == second and first or "different"
end)

app:any("/json", function(req)
  local value = req:json()
  return { kind = type(value), is_null = value == photon.null, value = value }
end)
app:post("/back", function(req) return req:json() end)
app:patch("/names", function(req)
  local input = req:json()
  return { name = input.name == nil and "absent" or input.name == photon.null and "null" or input.name }
end)

-- Values that JSON does not have.
local function deep(depth)
  local value = {}
  for _ = 1, depth do value = { value } end
  return value
end

local unsound = {
  nan = function() return { v = 0 / 0 } end,
  infinity = function() return { v = 1 / 0 } end,
  deep = function() return deep(10000) end,
  cycle = function()
    local value = {}
    value.again = value
    return value
  end,
}
app:get("/unsound/:kind", function(req) return unsound[req.params.kind]() end)

app:get("/name", function(req) return "ok", 200, { ["x-name"] = req.query.value } end)
app:get("/field", function(req) return "ok", 200, { [req.query.name] = "value" } end)
app:get("/to", function(req) return photon.redirect(req.query.to) end)
app:get("/users/:id", function(req) return req.params end)
app:sse("/events", function(stream) stream:send "one" end)
app:metrics()

return app

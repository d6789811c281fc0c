-- The app that bench/run measures: one route of each kind.
local photon = require "photon"
local app = photon.app()

app:static("/", "Hello from Photon\n")

app:get("/users/:id", function(req)
  return { id = req.params.id }
end)

app:sse("/events", function(stream)
  for i = 1, 100 do
    stream:send("event number " .. i)
  end
end)

return app

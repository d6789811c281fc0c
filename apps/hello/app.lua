local photon = require "photon"
local app = photon.app()

app:static("/", "Hello from Photon\n")
app:get("/users/:id", function(req) return { id = req.params.id } end)
app:sse("/clock", function(stream)
  while stream:send(os.date()) do photon.sleep(1) end
end)

return app

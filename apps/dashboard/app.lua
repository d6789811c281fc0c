-- Dashboard: what the server does, drawn while it does it. One task takes a sample each second and
-- publishes it; every page that is open reads the same channel, without entering Lua.

local photon = require "photon"
local page = require "page"
local sample = require "sample"

local KEPT = 300 -- samples: five minutes, which a page that opens is given at once

local samples = photon.channel("dashboard:samples", { replay = KEPT, backlog = 0 })
local state = photon.channel("dashboard:state", { replay = 1, backlog = 0 })

local app = photon.app()
local before -- the numbers of a second ago

app:every(1, { once = true }, function()
  local now = sample.read()
  if before then
    samples:publish("sample", sample.make(before, now))
    state:publish("state", sample.state(before, now))
  end
  before = now
end)

app:static("/", page, { type = "text/html; charset=utf-8" })
app:subscribe("/events", { from = "start" }, { samples, state })
app:metrics "/metrics"
app:health "/healthz"

return app

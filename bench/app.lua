-- The app that bench/run measures: one route of each kind.
local photon = require "photon"
local uv = require "luv"
local app = photon.app()

app:static("/", "Hello from Photon\n")

app:get("/users/:id", function(req)
  return { id = req.params.id }
end)

local function burst(stream)
  for i = 1, 100 do
    stream:send("event number " .. i)
  end
end

app:sse("/events", burst)

-- Producers that have news again and again: a burst, then others have their turn, or a wait.
local function bursts(seconds)
  return function(stream)
    while stream:is_open() do
      burst(stream)
      photon.sleep(seconds)
    end
  end
end

app:sse("/bursts", bursts(0))
app:sse("/paced", bursts(0.002))

-- One event at a time, each with the time at which it was sent.
local function stamp()
  return ("%d"):format(uv.hrtime())
end

app:sse("/stamps", function(stream)
  while stream:send(stamp()) do photon.sleep(0.002) end
end)

-- A channel with a past, whose events are stamped too. What never reads begins at the start, so that
-- its socket is full at once.
local news = photon.channel("news", { replay = 1000 })
local padding = (" "):rep(1000)

local function publish()
  news:publish(stamp() .. padding)
end

app:subscribe("/news", news)
app:subscribe("/news/all", { from = "start" }, news)
app:metrics("/metrics")

app:post("/news/:count", function(req)
  for _ = 1, tonumber(req.params.count) do publish() end
end)

-- Publishes for so many seconds, twice a second.
app:post("/news/for/:seconds", function(req)
  for _ = 1, 2 * tonumber(req.params.seconds) do
    publish()
    photon.sleep(0.5)
  end
end)

return app

-- What the specs of durable channels share: a server with one whose log, durable.path, outlives it.
local assert = require "luassert"
local json = require("photon").json
local live = require "spec.live"

local durable = {}

local SOURCE = [[
local photon = require "photon"
local app = photon.app()
local news = photon.channel("news", { replay = %d, backlog = %d, log = "%s" })
app:subscribe("/news", { from = "start", heartbeat = 0 }, news)
app:post("/news", function(req)
  local id, why = news:publish("news", req:body())
  if not id then return photon.problem(503, why) end
  return { id = id }
end)
app:metrics "/metrics"
app:post("/finish", function() return { id = news:finish("end", "over") } end)
app:post("/burst", function(req)
  local tasks, count, text = {}, 0, ("x"):rep(tonumber(req.query.size))
  for i = 1, tonumber(req.query.n) do
    tasks[i] = photon.spawn(function()
      if news:publish(text) then count = count + 1 end
    end)
  end
  for _, t in ipairs(tasks) do t:join() end
  return { count = count }
end)
app:get("/all", function() return { list = photon.array(news:history { last = 1e6 }), last = news:last_id() } end)
app:post("/room/:name", function(req)
  local room = photon.channel("room:" .. req.params.name, { replay = 10, log = "room-" .. req.params.name .. ".log" })
  return { id = room:publish(req:body()), last = room:last_id(), n = #room:history() }
end)
app:post("/cancelled", function()
  for i = 1, 100 do
    local t = photon.spawn(function() news:publish "from a task that may be cancelled" end)
    if i %% 2 == 0 then photon.sleep(0) end
    if i %% 3 == 0 then photon.sleep(0) end
    t:cancel()
  end
  return { id = news:publish "afterwards" }
end)
return app
]]

-- For before_each and after_each.
function durable.open()
  durable.folder, durable.servers = live.folder(), {}
  durable.path = durable.folder .. "/news.log"
end

function durable.close()
  for _, server in ipairs(durable.servers) do
    if not server.status then durable.kill(server) end
  end
  os.execute("rm -rf '" .. durable.folder .. "'")
end

function durable.start(options)
  options = options or {}
  options.source = SOURCE:format(options.replay or 100000, options.backlog or 1048576, durable.path)
  options.flags = options.flags or "--workers 2"
  local server = live.start(options)
  durable.servers[#durable.servers + 1] = server
  return server
end

function durable.kill(server)
  server:signal "KILL"
  server:wait()
  os.execute("rm -rf '" .. server.folder .. "'")
end

-- Kills it and starts another in its place.
function durable.revive(server, options)
  durable.kill(server)
  return durable.start(options)
end

-- Killed now, it has all its events after the next start.
function durable.survives(server, options)
  local before = durable.all(server)
  server = durable.revive(server, options)
  assert.same(before, durable.all(server))
  server:stop()
end

function durable.post(server, target, body, fields)
  return server:request("POST", target, fields, body or "")
end

function durable.publish(server, text)
  return durable.post(server, "/news", text)
end

function durable.id_of(res)
  assert.equal(200, res.status, res.body)
  return json.decode(res.body).id
end

function durable.all(server)
  local res = server:get "/all"
  assert.equal(200, res.status)
  return json.decode(res.body)
end

function durable.read(name)
  local file = assert(io.open(name, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

function durable.write(name, text)
  local file = assert(io.open(name, "wb"))
  file:write(text)
  file:close()
end

function durable.size(name)
  local file = io.open(name, "rb")
  if not file then return 0 end
  local n = file:seek "end"
  file:close()
  return n
end

-- The file with one byte changed.
function durable.damage(at)
  local text = durable.read(durable.path)
  durable.write(durable.path, text:sub(1, at) .. string.char(bit.bxor(text:byte(at + 1), 4)) .. text:sub(at + 2))
end

function durable.parts(id)
  local epoch, sequence = id:match "^(%w+)%-(%d+)$"
  return epoch, tonumber(sequence)
end

-- A subscriber from an id on: a socket whose `received` fills.
function durable.subscribe(server, id)
  local s = server:connect()
  s:send("GET /news HTTP/1.1\r\nhost: t\r\n" .. (id and "last-event-id: " .. id .. "\r\n" or "") .. "\r\n")
  return s
end

return durable

-- The app that the case files speak to. With ROUTES (a JSON file) and ROUTE_SET in the environment it
-- serves that set of patterns instead.
local photon = require "photon"
local sets = require "route_sets"

local HEX_LIMIT = 4096

local app = photon.app { max_header = "64 KiB" }

local function hex(text)
  return (text:gsub(".", function(char) return ("%02x"):format(char:byte()) end))
end

local function echo(req)
  local body = req:body()
  return ("method=%s\npath=%s\nquery=%s\nhost=%s\nbody_len=%d\nbody_hex=%s\n"):format(req.method, req.path,
    req.target:match "%?(.*)$" or "", req.host, #body, hex(body:sub(1, HEX_LIMIT)))
end

local function status(req)
  local number = tonumber(req.params.status)
  if not number or number % 1 ~= 0 or number < 200 or number > 599 then return "no such status\n", 404 end
  return nil, number
end

local function slow(req)
  photon.sleep((tonumber(req.query.ms) or 200) / 1000)
  return "path=/slow\n"
end

local function cookies(req)
  local names, lines = {}, {}
  for name in pairs(req.cookies) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do lines[i] = ("cookie.%s=%s\n"):format(name, req.cookies[name]) end
  return table.concat(lines) .. "cookies=" .. #names .. "\n"
end

local function json(req)
  local value, message = photon.json.decode(req:body())
  if message then error(photon.problem(400, message)) end
  return type(value) .. "\n"
end

-- An event that the stream refuses is told by an event `rejected`.
local function encode(req)
  local events = req:json()
  return photon.stream(function(stream)
    for i, event in ipairs(events) do
      if not pcall(stream.event, stream, event) then stream:send("rejected", tostring(i - 1)) end
    end
  end)
end

local function replay(stream)
  local seen = tonumber(stream.last_event_id) or 0
  for id = math.max(seen, 0) + 1, 10 do stream:event { id = tostring(id), data = "d" .. id } end
end

local function serve_cases()
  app:get("/", function() return "ok" end)
  app:get("/smuggled", function() return "path=/smuggled\n" end)
  app:any("/echo", echo)
  app:any("/echo/*rest", echo)
  app:get("/only-get", function() return "ok\n" end)
  app:get("/status/:status", status)
  app:get("/slow", slow)
  app:get("/stream", function()
    return photon.stream({ type = "text/plain; charset=utf-8" }, function(stream)
      stream:write("first\n")
      photon.sleep(0.05)
      stream:write("second\n")
    end)
  end)
  app:get("/cookies", cookies)
  app:post("/json", json)
  app:post("/sse/encode", encode)
  app:sse("/sse/replay", replay)
end

if os.getenv "ROUTE_SET" then sets.serve(app, os.getenv "ROUTES", os.getenv "ROUTE_SET")
else serve_cases() end

return app

-- Chat: rooms as channels, with names, presence and history.

local photon = require "photon"
local page = require "page"
local rooms = require "rooms"

local app = photon.app { max_body = "16 KiB" }

local MAX_NAME, MAX_TEXT = 30, 2000

-- A text that is shown to others: UTF-8, not empty, not long, without control characters but line breaks.
local function check_text(value, what, most)
  local text = type(value) == "string" and value:match "^%s*(.-)%s*$" or ""
  local _, length = text:gsub("[^\128-\191]", "") -- each character has one byte that is no continuation
  if text == "" or length > most or text:find "[%z\1-\9\11-\31\127]" or not pcall(photon.json.encode, text) then
    error(photon.problem(422, ("%s is a text of 1 to %d characters"):format(what, most)))
  end
  return text
end

local function check_name(value)
  return (check_text(value, "name", MAX_NAME):gsub("\n", " "))
end

app:static("/", page, { type = "text/html; charset=utf-8" })

app:get("/rooms", function()
  local list = {}
  for i, name in ipairs(rooms.names) do list[i] = { name = name, present = #rooms.present(rooms.find(name)) } end
  return list
end)

-- Asked once for each connection; from then on the events come without Lua.
app:subscribe("/rooms/:room/events", { from = { last = 50 } }, function(req)
  return rooms.find(req.params.room), { member = check_name(req.query.name) }
end)

app:post("/rooms/:room/messages", function(req)
  local room, input = rooms.find(req.params.room), req:json()
  if type(input) ~= "table" then error(photon.problem(422, "a message has a name and a text")) end
  local id, why = room:publish("message",
    { name = check_name(input.name), text = check_text(input.text, "text", MAX_TEXT), at = os.time() })
  if not id then error(photon.problem(503, why)) end
  return { id = id }, 201
end)

app:get("/rooms/:room/members", function(req) return rooms.present(rooms.find(req.params.room)) end)

-- What was said before the event with the id `before`, for readers who scroll up.
app:get("/rooms/:room/history", function(req)
  local events, why = rooms.find(req.params.room):history { last = 50, before = req.query.before }
  if not events then error(photon.problem(404, why)) end
  local list = photon.array {}
  for i, event in ipairs(events) do list[i] = { id = event.id, event = event.event, data = event:json() } end
  return list
end)

return app

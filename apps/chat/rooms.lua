-- rooms: every room is a channel. It is the same in all workers and goes on across reloads, so there
-- is nothing else to keep: who is there and what was said are asked of it.

local photon = require "photon"

local rooms = { names = { "lobby", "lua", "tea" } }

local by_name = {}

local function announce(room, event)
  return function(name) room:publish(event, { name = name, at = os.time() }) end
end

-- Told in one worker of the server, for comers and goers in all of them.
for _, name in ipairs(rooms.names) do
  local room = photon.channel("room:" .. name, { replay = 200, replay_age = 24 * 3600 })
  room:on_join(announce(room, "join"))
  room:on_leave(announce(room, "leave"))
  by_name[name] = room
end

-- The room of that name; 404 when there is none.
function rooms.find(name)
  return by_name[name] or error(photon.problem(404, "there is no such room"), 0)
end

-- The names of who is there.
function rooms.present(room)
  local names = {}
  for i, member in ipairs(room:members()) do names[i] = member.id end
  return photon.array(names)
end

return rooms

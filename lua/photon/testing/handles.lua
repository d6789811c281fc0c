-- handles: luv's handles that a spec, or an app under test, has made and not closed.

local uv = require "luv"

local M = {}

local MAKERS = { "new_async", "new_check", "new_fs_event", "new_fs_poll", "new_idle", "new_pipe", "new_poll",
  "new_prepare", "new_socket_poll", "new_tcp", "new_timer", "new_tty", "new_udp", "spawn" }

local made = {}

local function note(handle, ...)
  if type(handle) == "userdata" then made[#made + 1] = handle end
  return handle, ...
end

-- Notes every handle from now on; once, before any spec.
function M.install()
  for _, name in ipairs(MAKERS) do
    local make = uv[name]
    if make then uv[name] = function(...) return note(make(...)) end end
  end
end

-- How many have been noted.
function M.mark()
  return #made
end

-- Closes those that were made after the mark.
function M.close_since(mark)
  for i = #made, mark + 1, -1 do
    local handle = made[i]
    made[i] = nil
    if not handle:is_closing() then handle:close() end
  end
end

return M

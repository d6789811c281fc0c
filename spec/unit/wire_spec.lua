-- The rooms of wire need a loop, so C programs test them.
local programs = require "spec.programs"

for _, name in ipairs { "wire_timers", "wire_loop", "wire_conn", "wire_conn_end", "wire_listener",
  "wire_connector" } do
  describe(name, function() programs.define(name, it) end)
end

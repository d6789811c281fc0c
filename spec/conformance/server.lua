-- The conformance app as a live server, started once for a spec file.
local live = require "spec.live"

local M = {}

-- Registers the cases of a file: an `it` of busted each, fired at a server that stops with the spec.
-- `env` is the environment of the server. Nothing but a pending note where there is no such file.
function M.describe(busted, path, env, select_case)
  local raw = require "spec.raw"
  local all = raw.read(path)
  if not all then
    busted.pending(path .. " is not here")
    return
  end
  local cases = {}
  for _, case in ipairs(all) do
    if case.send and (not select_case or select_case(case)) then cases[#cases + 1] = case end
  end
  local server
  raw.describe(busted, cases, function()
    server = live.start { app = "spec/conformance", env = env }
    return server.port
  end)
  busted.it("leave a server that lives", function()
    busted.assert.truthy(server:get("/").status < 500)
    server:stop()
  end)
  busted.teardown(function()
    if server then server:stop() end
  end)
end

return M

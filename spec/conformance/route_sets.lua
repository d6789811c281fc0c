-- Tables of patterns; each answers with its method, its pattern and its parameters.
local photon = require "photon"

local M = {}

local function answer(req, pattern)
  local names, lines = {}, { "method=" .. req.method, "route=" .. pattern }
  for name in pairs(req.params) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do lines[#lines + 1] = ("param.%s=%s"):format(name, req.params[name]) end
  return table.concat(lines, "\n") .. "\n"
end

-- Registers a set of the file's on the app: patterns, or "METHOD pattern" where it is not GET.
function M.serve(app, path, name)
  local file = assert(io.open(path, "rb"))
  local sets = assert(photon.json.decode(file:read "*a"))
  file:close()
  for _, entry in ipairs(assert(sets[name], "no such set: " .. name)) do
    local method, pattern = entry:match "^(%u+) (.*)$"
    pattern = pattern or entry
    app:route(method or "GET", pattern, function(req) return answer(req, pattern) end)
  end
end

return M

-- A router that tries every route and picks the best one: slow and simple, to compare ours with.
local reference = {}

local LITERAL, REST = 1e6, -1 -- ranks of a segment; a parameter's is the length of its prefix

local function decode(text)
  return (text:gsub("%%(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

local function segments_of(path)
  local found = {}
  for segment in path:gmatch "/([^/]*)" do found[#found + 1] = segment end
  return found
end

-- The ranks of the pattern's segments and the values of its parameters, nil when it does not match.
local function try(pattern, path)
  local wanted, given, ranks, params = segments_of(pattern), segments_of(path), {}, {}
  for i, segment in ipairs(wanted) do
    local value = given[i]
    local prefix, name = segment:match "^([^:]*):(.+)$"
    if not value then return nil end
    if segment:sub(1, 1) == "*" then
      params[segment:sub(2)] = decode(table.concat(given, "/", i))
      ranks[i] = REST
      return ranks, params
    elseif name then
      prefix, value = decode(prefix), decode(value)
      if #value <= #prefix or value:sub(1, #prefix) ~= prefix then return nil end
      params[name] = value:sub(#prefix + 1)
      ranks[i] = #prefix
    elseif decode(segment) == decode(value) then
      ranks[i] = LITERAL
    else
      return nil
    end
  end
  if #given ~= #wanted then return nil end
  return ranks, params
end

local function is_better(a, b)
  for i = 1, math.min(#a, #b) do
    if a[i] ~= b[i] then return a[i] > b[i] end
  end
  return false
end

-- The best route of the method, as "METHOD PATTERN", with its parameters; nil when none matches.
local function best_of(routes, method, path)
  local best, best_ranks, best_params
  for _, route in ipairs(routes) do
    local ranks, params
    if route.method == method then ranks, params = try(route.pattern, path) end
    if ranks and (not best or is_better(ranks, best_ranks)) then
      best, best_ranks, best_params = method .. " " .. route.pattern, ranks, params
    end
  end
  return best, best_params
end

-- As Table:match, over a list of { method =, pattern = }.
function reference.match(routes, method, path)
  if path:gsub("%%%x%x", ""):find "%%" then return "bad path" end
  if path:sub(1, 1) ~= "/" then return "not found" end
  for _, each in ipairs(method == "HEAD" and { "HEAD", "GET", "*" } or { method, "*" }) do
    local best, params = best_of(routes, each, path)
    if best then return "found", best, params end
  end
  for _, route in ipairs(routes) do
    if try(route.pattern, path) then return "other method" end
  end
  return "not found"
end

return reference

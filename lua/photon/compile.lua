-- compile: an app as the server runs it: one list of routes, each with a function of its own; what
-- answers for paths that have none; hooks and settings.

local core = require "photon.core"
local apps = require "photon.app"
local chain = require "photon.chain"
local response = require "photon.response"
local static = require "photon.static"

local STATUS, ALLOW = 3, 4 -- fields of a request that the fallback answers for

-- The on_error that is nearest to the scope at `depth` of the path from the app inwards.
local function nearest_on_error(path, depth)
  for i = depth, 1, -1 do
    if path[i].error_handler then return path[i].error_handler end
  end
end

local function has_middleware(path)
  for _, scope in ipairs(path) do
    if scope.uses[1] then return true end
  end
  return false
end

-- Puts the middleware of all scopes of the path before `rest`, the outermost first to run.
local function wrap(path, rest)
  for depth = #path, 1, -1 do
    local uses = path[depth].uses
    for i = #uses, 1, -1 do rest = chain.layer(uses[i], rest, nearest_on_error(path, depth)) end
  end
  return rest
end

-- A handler that nothing stands before is called as it is.
local function compile_handler(path, handler)
  local on_error = nearest_on_error(path, #path)
  if not on_error and not has_middleware(path) then return handler end
  return wrap(path, chain.guard(handler, on_error))
end

-- One that asked for no middleware.
local function compile_open(path, handler)
  local on_error = nearest_on_error(path, #path)
  return on_error and chain.guard(handler, on_error) or handler
end

local function compile_route(entry, path, prefix)
  local route = { method = entry.method, pattern = prefix .. entry.pattern, place = entry.place,
    kind = entry.kind, max_body = entry.max_body }
  if entry.kind == "fixed" and (entry.is_open or not has_middleware(path)) then
    route.fixed = entry.fixed
  elseif entry.kind == "fixed" then
    route.kind, route.handler = "lua", compile_handler(path, static.handler(entry.fixed))
  elseif entry.channels and (entry.is_open or not has_middleware(path)) then
    route.channels = entry.channels
  elseif entry.handler then
    route.handler = entry.is_open and compile_open(path, entry.handler)
      or compile_handler(path, entry.handler)
  end
  route.enters_lua = route.handler ~= nil
  return route
end

local function append(list, items)
  for _, item in ipairs(items) do list[#list + 1] = item end
end

local function collect_hooks(out, app)
  if out.seen[app] then return end
  out.seen[app] = true
  app.is_compiled = true
  append(out.on_start, app.start_hooks)
  append(out.on_stop, app.stop_hooks)
  append(out.every, app.timers)
end

local function collect(out, scope, path, prefix)
  if apps.is_app(scope) then collect_hooks(out, scope) end
  local inner = { unpack(path) }
  inner[#inner + 1] = scope
  for _, entry in ipairs(scope.entries) do
    if entry.kind == "scope" then
      collect(out, entry.scope, inner, prefix .. entry.prefix)
    else
      out.routes[#out.routes + 1] = compile_route(entry, inner, prefix)
    end
  end
end

local function default_reply(app, req)
  local status, allow = req[STATUS], req[ALLOW]
  if status < 400 then return core.settle(nil, nil, true, nil, status, { allow = allow }) end
  local problem = response.problem(status)
  problem.headers.allow = allow
  return chain.fail(problem, app.error_handler, req)
end

-- Answers what no route answers, or nil when the server may do that alone.
local function compile_fallback(app)
  if not app.uses[1] and not app.not_found_handler and not app.error_handler then return nil end
  local fn = app.not_found_handler
  local not_found = fn and chain.guard(function(req)
    local function or_problem(...)
      if select("#", ...) == 0 or select("#", ...) == 1 and (...) == nil then return response.problem(404) end
      return ...
    end
    return or_problem(fn(req))
  end, app.error_handler, 404)
  local answer = wrap({ app }, function(req)
    if not_found and req[STATUS] == 404 then return not_found(req) end
    return default_reply(app, req)
  end)
  return function(req, status, allow)
    req[STATUS], req[ALLOW] = status, allow ~= "" and allow or nil
    return answer(req)
  end
end

local function trust_proxies(app)
  local list = app.settings.trusted_proxies
  local ok, wrong = core.request_trust(list or {})
  if not ok then
    error(("%s: trusted_proxies: %q is neither an address nor a network"):format(app.place, wrong), 0)
  end
end

return function(app)
  local out = { routes = {}, on_start = {}, on_stop = {}, every = {}, seen = {} }
  collect(out, app, {}, "")
  trust_proxies(app)
  out.seen = nil
  out.settings, out.place = app.settings, app.place
  out.fallback = compile_fallback(app)
  return out
end

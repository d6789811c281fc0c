-- app: what an app registers while it loads: routes, groups, mounts, middleware, hooks, settings.
-- Only data is gathered here; photon.compile makes of it what the server runs. Mistakes are load
-- errors that name the line of the app.

local compile_static = require "photon.static"
local response = require "photon.response"
local settings = require "photon.settings"
local subscription = require "photon.subscription"
local suggest = require "photon.suggest"

local OWN_SOURCE = debug.getinfo(1, "S").source

-- What apps and groups have in common: a place to register routes.
local Scope = {}
Scope.__index = Scope

local App = setmetatable({}, Scope)
App.__index = App

local names = {} -- of files, by their sources

local function file_name(info)
  local name = names[info.source]
  if not name then
    name = info.source:match "^@%.?/?(.*)$" or info.short_src
    if info.source:sub(1, 2) == "@/" then name = info.source:sub(2) end
    names[info.source] = name
  end
  return name
end

-- `app.lua:12`, the line of the app that is calling us: at `level` or further out.
local function place(level)
  for at = level or 2, 200 do
    local info = debug.getinfo(at, "Sl")
    if not info then break end
    if info.what ~= "C" and info.source ~= OWN_SOURCE and info.currentline > 0 then
      return file_name(info) .. ":" .. info.currentline
    end
  end
  return "?"
end

local function refuse(format, ...)
  error(place() .. ": " .. format:format(...), 0)
end

local function show(value)
  if value == nil then return "nothing" end
  if type(value) == "string" then return ("a string (%q)"):format(value:sub(1, 40)) end
  if type(value) == "table" or type(value) == "function" then return "a " .. type(value) end
  return ("a %s (%s)"):format(type(value), tostring(value))
end

local function check_open(scope, name)
  if getmetatable(scope) ~= Scope and getmetatable(scope) ~= App then
    refuse("%s is called with a colon, on an app or a group", name)
  end
  if scope.app.is_compiled then
    refuse("%s comes too late: routes are registered while the app loads", name)
  end
end

local function check_function(fn, name, what)
  if type(fn) ~= "function" then refuse("%s takes %s, got %s", name, what, show(fn)) end
end

local function check_pattern(scope, name, pattern)
  if type(pattern) ~= "string" then refuse("%s takes a pattern first, got %s", name, show(pattern)) end
  if pattern:sub(1, 1) ~= "/" and not (pattern == "" and scope.parent) then
    refuse('%s: the pattern "%s" does not begin with "/"', name, pattern)
  end
end

local NO_SPEC = {}
local ROUTE_SPEC = { "max_body", "summary", "description" }

local function check_names(name, given, known)
  if type(given) ~= "table" then refuse("%s takes a table of options, got %s", name, show(given)) end
  if next(given) == nil then return end
  local is_known = {}
  for _, each in ipairs(known) do is_known[each] = true end
  for each in pairs(given) do
    if not is_known[each] then
      refuse("%s: there is no option %s%s", name, tostring(each), suggest(each, known))
    end
  end
end

local function read_max_body(name, spec)
  if spec.max_body == nil then return nil end
  local bytes = settings.bytes(spec.max_body)
  if not bytes then refuse("%s: max_body is a number of bytes, got %s", name, show(spec.max_body)) end
  return bytes
end

local function add(scope, entry)
  scope.entries[#scope.entries + 1] = entry
  local outer = scope
  while outer do
    outer.has_routes = true
    outer = outer.parent
  end
end

-- The last two arguments of a registration: [spec,] handler.
local function read_handler(name, spec, handler, signature)
  if handler == nil and type(spec) ~= "table" then spec, handler = NO_SPEC, spec end
  if type(spec) ~= "table" then
    refuse("%s takes an options table before its handler, got %s (middleware goes into app:use)", name, show(spec))
  end
  if type(handler) ~= "function" then
    local is_text = type(handler) == "string" or handler == nil and next(spec) ~= nil
    refuse("%s needs a handler %s, got %s%s", name, signature, show(handler),
      is_text and " (a fixed reply is app:static)" or "")
  end
  return spec, handler
end

local function add_route(scope, name, method, pattern, spec, handler)
  check_open(scope, name)
  check_pattern(scope, name, pattern)
  spec, handler = read_handler(name, spec, handler, "function(req)")
  check_names(name, spec, ROUTE_SPEC)
  add(scope, { kind = "lua", method = method, pattern = pattern, place = place(4), handler = handler,
    max_body = read_max_body(name, spec) })
end

for _, method in ipairs { "get", "post", "put", "patch", "delete", "options" } do
  Scope[method] = function(self, pattern, spec, handler)
    add_route(self, "app:" .. method, method:upper(), pattern, spec, handler)
  end
end

function Scope:any(pattern, spec, handler)
  add_route(self, "app:any", "*", pattern, spec, handler)
end

function Scope:route(method, pattern, spec, handler)
  if type(method) ~= "string" or not method:find "^[%w!#$%%&'*+.^_`|~-]+$" then
    refuse("app:route takes a method first, got %s", show(method))
  end
  if method ~= method:upper() and Scope[method:lower()] then
    refuse('app:route: methods are in upper case: "%s"', method:upper())
  end
  add_route(self, "app:route", method, pattern, spec, handler)
end

-- A fixed reply, rendered now and served without Lua.
function Scope:static(pattern, body, options)
  check_open(self, "app:static")
  check_pattern(self, "app:static", pattern)
  if options ~= nil and type(options) ~= "table" then
    refuse("app:static takes a table of options last, got %s", show(options))
  end
  check_names("app:static", options or {}, compile_static.options)
  local fixed, problem = compile_static.render(body, options or {})
  if not fixed then refuse('app:static "%s": %s', pattern, problem) end
  add(self, { kind = "fixed", method = "GET", pattern = pattern, place = place(), fixed = fixed,
    is_open = options and options.middleware == false })
end

-- An event stream: fn(stream, req).
function Scope:sse(pattern, spec, fn)
  check_open(self, "app:sse")
  check_pattern(self, "app:sse", pattern)
  spec, fn = read_handler("app:sse", spec, fn, "function(stream, req)")
  local made, problem = response.make_stream(spec, fn)
  if not made then refuse('app:sse "%s": %s', pattern, problem) end
  add(self, { kind = "stream", method = "GET", pattern = pattern, place = place(),
    handler = function() return made end })
end

-- The last two arguments of app:subscribe: [spec,] channel, list of channels or function.
local function read_source(spec, source)
  if source == nil and (type(spec) ~= "table" or subscription.list(spec)) then spec, source = {}, spec end
  if type(spec) ~= "table" then
    refuse("app:subscribe takes an options table before its channel, got %s", show(spec))
  end
  if type(source) ~= "function" and not subscription.list(source) then
    refuse("app:subscribe needs a channel, a list of channels or a function(req) that returns one, got %s",
      show(source))
  end
  return spec, source
end

-- What is given to C for a route that never enters Lua: the channels and the spec in one table.
local function constant(spec, list)
  local made = {}
  for name, value in pairs(spec) do made[name] = value end
  for i, each in ipairs(list) do made[i] = each end
  return made
end

-- The events of a channel; or of what fn(req) returns, which is asked once for each connection.
function Scope:subscribe(pattern, spec, source)
  check_open(self, "app:subscribe")
  check_pattern(self, "app:subscribe", pattern)
  spec, source = read_source(spec, source)
  if spec.slow ~= nil then refuse("app:subscribe: slow is an option of photon.channel") end
  check_names("app:subscribe", spec, subscription.spec)
  local wrong = subscription.find_wrong(spec)
  if wrong then refuse('app:subscribe "%s": %s', pattern, wrong) end
  local list = subscription.list(source)
  local entry = { kind = "channel", method = "GET", pattern = pattern, place = place(),
    is_open = spec.middleware == false, channels = list and constant(spec, list) }
  if list then
    local made = subscription.reply(spec, list)
    entry.handler = function() return made end
  else
    entry.handler = subscription.admit(spec, source)
  end
  add(self, entry)
end

local function add_builtin(scope, name, kind, pattern)
  check_open(scope, name)
  check_pattern(scope, name, pattern)
  add(scope, { kind = kind, method = "GET", pattern = pattern, place = place() })
end

-- Prometheus text from the server's counters, and a plain "it runs". Both are served by C alone: no
-- middleware stands before them.
function Scope:metrics(pattern)
  add_builtin(self, "app:metrics", "metrics", pattern or "/metrics")
end

function Scope:health(pattern)
  add_builtin(self, "app:health", "health", pattern or "/healthz")
end

local function new_scope(class, app, parent)
  local scope = setmetatable({ entries = {}, uses = {}, parent = parent }, class)
  scope.app = app or scope
  return scope
end

local function check_prefix(name, prefix)
  if type(prefix) ~= "string" or prefix:sub(1, 1) ~= "/" then
    refuse('%s takes a prefix that begins with "/", got %s', name, show(prefix))
  end
  return (prefix:gsub("/$", ""))
end

-- Routes with a common prefix, with middleware and on_error of their own.
function Scope:group(prefix, fn)
  check_open(self, "app:group")
  prefix = check_prefix("app:group", prefix)
  check_function(fn, "app:group", "a function(group)")
  local group = new_scope(Scope, self.app, self)
  self.entries[#self.entries + 1] = { kind = "scope", prefix = prefix, scope = group }
  fn(group)
end

local function is_within(outer, app)
  if outer == app then return true end
  for _, entry in ipairs(outer.entries) do
    if entry.scope and is_within(entry.scope, app) then return true end
  end
  return false
end

-- Another app's routes under a prefix. Its settings and its not_found stay behind: there is one
-- server, and one answer to unknown paths.
function Scope:mount(prefix, other)
  check_open(self, "app:mount")
  prefix = check_prefix("app:mount", prefix)
  if getmetatable(other) ~= App then refuse("app:mount takes an app made by photon.app, got %s", show(other)) end
  if is_within(other, self.app) then refuse "app:mount: an app cannot be mounted within itself" end
  add(self, { kind = "scope", prefix = prefix, scope = other })
end

-- Middleware for all routes of this app or group.
function Scope:use(fn, options)
  check_open(self, "app:use")
  check_function(fn, "app:use", "a function(req, inner)")
  check_names("app:use", options or {}, { "late" })
  if self.has_routes and not (options and options.late) then
    refuse("app:use comes after a route of the same app or group, which it applies to as well; "
      .. "move it up, or say app:use(fn, { late = true })")
  end
  self.uses[#self.uses + 1] = fn
end

-- fn(err, req) answers for what went wrong in this app or group.
function Scope:on_error(fn)
  check_open(self, "app:on_error")
  check_function(fn, "app:on_error", "a function(err, req)")
  if self.error_handler then refuse "app:on_error is set already for this app or group" end
  self.error_handler = fn
end

function App:not_found(fn)
  check_open(self, "app:not_found")
  check_function(fn, "app:not_found", "a function(req)")
  if self.not_found_handler then refuse "app:not_found is set already" end
  self.not_found_handler = fn
end

function App:on_start(fn)
  check_open(self, "app:on_start")
  check_function(fn, "app:on_start", "a function()")
  self.start_hooks[#self.start_hooks + 1] = fn
end

function App:on_stop(fn)
  check_open(self, "app:on_stop")
  check_function(fn, "app:on_stop", "a function()")
  self.stop_hooks[#self.stop_hooks + 1] = fn
end

-- fn() every so many seconds in every worker; with { once = true } in one of them.
function App:every(seconds, options, fn)
  check_open(self, "app:every")
  if fn == nil then options, fn = {}, options end
  if type(seconds) ~= "number" or seconds <= 0 or seconds ~= seconds then
    refuse("app:every takes a number of seconds above 0, got %s", show(seconds))
  end
  if type(options) ~= "table" then refuse("app:every takes a table of options, got %s", show(options)) end
  check_function(fn, "app:every", "a function()")
  check_names("app:every", options, { "once" })
  self.timers[#self.timers + 1] = { seconds = seconds, once = options.once and true or false, fn = fn }
end

local M = {}

-- photon.app{ setting = value, … }
function M.new(given)
  if given ~= nil and type(given) ~= "table" then
    refuse("photon.app takes a table of settings, got %s", show(given))
  end
  local read, problem = settings.read(given or {})
  if not read then refuse("photon.app: %s", problem) end
  local app = new_scope(App)
  app.settings, app.place = read, place()
  app.start_hooks, app.stop_hooks, app.timers = {}, {}, {}
  return app
end

function M.is_app(value)
  return getmetatable(value) == App
end

return M

-- response: the values that stand for replies: what handlers return beside strings and tables, and
-- what middleware gets from `inner`. C reads their raw fields (server/script/result_read.c).

local core = require "photon.core"
local suggest = require "photon.suggest"

local setmetatable, type, error = setmetatable, type, error
local response_meta, problem_meta = core.response_meta, core.problem_meta
local fields_meta, failure_meta = core.fields_meta, core.failure_meta
local lower, find, floor = string.lower, string.find, math.floor

local M = {}

-- Header tables: names are lower case in memory, and found in any case.
function fields_meta.__index(fields, name)
  if type(name) ~= "string" then return nil end
  local known = lower(name)
  if known ~= name then return rawget(fields, known) end
end

function fields_meta.__newindex(fields, name, value)
  rawset(fields, type(name) == "string" and lower(name) or name, value)
end

-- A response that was not told its status has 200; what handles errors may give it another.
response_meta.__index = { status = 200 }
problem_meta.__index = function(problem, name)
  if name == "title" then return core.reason(problem.status) end
end
problem_meta.__tostring = function(problem)
  local head = problem.status .. " " .. core.reason(problem.status)
  return problem.detail and head .. ": " .. problem.detail or head
end
failure_meta.__tostring = function(failure) return failure.message end

local function response(body, content_type)
  local headers = setmetatable({ ["content-type"] = content_type }, fields_meta)
  return setmetatable({ body = body, headers = headers }, response_meta)
end

local function check_text(text, name)
  if type(text) ~= "string" and type(text) ~= "number" then
    error(("%s takes a string, not %s"):format(name, type(text)), 3)
  end
  return tostring(text)
end

function M.html(text)
  return response(check_text(text, "photon.html"), "text/html; charset=utf-8")
end

function M.text(text)
  return response(check_text(text, "photon.text"), "text/plain; charset=utf-8")
end

function M.json(value)
  local ok, body = pcall(core.json.encode, value)
  if not ok then error(body, 2) end
  return response(body, "application/json")
end

local REDIRECTS = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }

function M.redirect(location, status)
  if type(location) ~= "string" or location == "" then
    error("photon.redirect takes a location, not " .. type(location), 2)
  end
  if find(location, "[%z\1-\31\127]") then
    error("photon.redirect: the location holds a control byte (CR, LF, NUL…)", 2)
  end
  if status ~= nil and not REDIRECTS[status] then
    error("photon.redirect: the status is 301, 302, 303, 307 or 308", 2)
  end
  local headers = setmetatable({ location = location }, fields_meta)
  return setmetatable({ status = status or 303, headers = headers }, response_meta)
end

local OWN_MEMBERS = { status = true, detail = true, request_id = true }

local function check_extra(extra)
  if type(extra) ~= "table" then
    error("photon.problem: the extra members are a table, not " .. type(extra), 3)
  end
  for name in pairs(extra) do
    if type(name) ~= "string" then error("photon.problem: extra members have names", 3) end
    if OWN_MEMBERS[name] then
      error(("photon.problem: the member %s is not an extra one"):format(name), 3)
    end
  end
  return extra
end

-- An error reply (RFC 9457): returned, or raised by error(). `extra` adds members.
function M.problem(status, detail, extra)
  if type(status) ~= "number" or status % 1 ~= 0 or status < 400 or status > 599 then
    error("photon.problem: the status is an integer from 400 to 599", 2)
  end
  if detail ~= nil and type(detail) ~= "string" then
    error("photon.problem: the detail is a string, not " .. type(detail), 2)
  end
  if extra ~= nil then check_extra(extra) end
  local problem = { status = status, detail = detail, extra = extra }
  problem.headers = setmetatable({}, fields_meta)
  return setmetatable(problem, problem_meta)
end

local STREAM_SPEC = { "heartbeat", "retry", "buffer", "max_duration", "headers", "detach", "reload", "type",
  "compress", "resume", "summary", "description", "max_body", "middleware" }
local STREAM_KINDS = { heartbeat = "number", retry = "number", buffer = "number", max_duration = "number",
  headers = "table", detach = "boolean", reload = "string", type = "string",
  compress = "boolean" }
-- The least of each number; those that must be whole.
local STREAM_LEAST = { heartbeat = 0, retry = 0, buffer = 1, max_duration = 0 }
local STREAM_WHOLE = { retry = true, buffer = true }
M.stream_spec = STREAM_SPEC

local function find_wrong_number(spec)
  for name, least in pairs(STREAM_LEAST) do
    local value = spec[name]
    if value ~= nil and not (value >= least and (not STREAM_WHOLE[name] or value == floor(value))) then
      return ("%s in the spec of a stream is a %snumber from %d up, not %s"):format(name,
        STREAM_WHOLE[name] and "whole " or "", least, tostring(value))
    end
  end
end

local function find_wrong(spec)
  local known = {}
  for _, name in ipairs(STREAM_SPEC) do known[name] = true end
  for name, value in pairs(spec) do
    if not known[name] then
      return ("there is no %s in the spec of a stream%s"):format(tostring(name), suggest(name, STREAM_SPEC))
    end
    local kind = STREAM_KINDS[name]
    if kind and type(value) ~= kind then
      return ("%s in the spec of a stream is a %s, not %s"):format(name, kind, tostring(value))
    end
  end
  if spec.resume ~= nil and not core.channel_is(spec.resume) then
    return "resume in the spec of a stream is a channel (photon.channel), not " .. tostring(spec.resume)
  end
  if spec.reload and spec.reload ~= "finish" and spec.reload ~= "reconnect" then
    return 'reload in the spec of a stream is "finish" or "reconnect"'
  end
  return find_wrong_number(spec)
end

local function stream_headers(spec)
  local headers = setmetatable({
    ["content-type"] = spec.type or "text/event-stream",
    ["cache-control"] = "no-store, no-transform",
    ["x-accel-buffering"] = "no",
  }, fields_meta)
  for _, each in ipairs { { ["content-type"] = spec.type }, spec.headers or {} } do
    local ok, problem = core.fields(each)
    if not ok then return nil, problem end
  end
  for name, value in pairs(spec.headers or {}) do headers[name] = value end
  return headers
end

-- A reply that photon's own `special` makes of the request: the door calls its serve(special, spec,
-- status, headers, req). nil and a message when the spec's headers are wrong.
function M.make_special(spec, special)
  local headers, problem = stream_headers(spec)
  if not headers then return nil, problem end
  return setmetatable({ headers = headers, stream = { spec = spec, fn = special } }, response_meta)
end

-- A reply that fn(stream, req) writes. nil and a message when the spec is wrong.
function M.make_stream(spec, fn)
  local wrong = find_wrong(spec)
  if wrong then return nil, wrong end
  local headers, problem = stream_headers(spec)
  if not headers then return nil, problem end
  if spec.resume then fn = M.resumed(spec, fn) end -- of photon.resume
  return setmetatable({ headers = headers, stream = { spec = spec, fn = fn } }, response_meta)
end

function M.stream(spec, fn)
  if type(spec) == "function" and fn == nil then spec, fn = {}, spec end
  if type(spec) ~= "table" then
    error("photon.stream takes a function, or a spec and a function, not " .. type(spec), 2)
  end
  if type(fn) ~= "function" then error("photon.stream takes a function, not " .. type(fn), 2) end
  local made, wrong = M.make_stream(spec, fn)
  return made or error("photon.stream: " .. wrong, 2)
end

return M

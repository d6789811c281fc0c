-- chain: a handler with the middleware and the on_error before it, as one function. Every function
-- made here takes a request, never raises, and returns a response object of its own.

local core = require "photon.core"
local wait = require "photon.wait"

local settle, traceback, cancelled = core.settle, core.traceback, wait.cancelled
local failure_meta, response_meta = core.failure_meta, core.response_meta
local getinfo = debug.getinfo
local error, getmetatable, select, tostring, type, xpcall = error, getmetatable, select, tostring, type, xpcall

local M = {}

-- The app's function in each that is made here, for messages.
local origins = setmetatable({}, { __mode = "k" })
core.set_ref("origins", origins)

local function with_origin(made, fn)
  origins[made] = fn
  return made
end

-- An error inside of on_error is a bare 500, whatever it was.
local function answer_bare(on_error, err)
  if getmetatable(err) ~= failure_meta then err = "app:on_error raised " .. tostring(err) end
  return settle(on_error, nil, false, err)
end

-- What on_error gave for `err`; nothing lets the default reply `res` stand.
local function read_error_reply(on_error, err, res, ok, ...)
  if not ok then return answer_bare(on_error, (...)) end
  local body, status = ...
  if body == nil and status == nil then return res end
  local reply = settle(on_error, err.status, true, ...)
  if reply.error and reply.error ~= err and getmetatable(reply.error) == failure_meta then return reply end
  if res.headers.allow and not reply.headers.allow then reply.headers.allow = res.headers.allow end
  if getmetatable(err) == failure_meta then err.handled = true end
  reply.error = err
  return reply
end

local function is_carried(ok, value, err)
  return ok and getmetatable(value) == response_meta and value.error == err
end

-- The response for what fn returned or raised. An error that an inner reply already stands for is
-- not handled twice.
local function respond(on_error, fn, otherwise, req, ok, ...)
  local res = settle(fn, otherwise, ok, ...)
  local err, stream = res.error, res.stream
  if stream and on_error and not stream.on_error then stream.on_error = on_error end -- should its function fail
  if err == nil or not on_error or err == cancelled or is_carried(ok, (...), err) then return res end
  return read_error_reply(on_error, err, res, xpcall(on_error, traceback, err, req))
end

-- A handler, protected. `otherwise` is its status when it gives none (nil: 200).
function M.guard(fn, on_error, otherwise)
  return with_origin(function(req)
    return respond(on_error, fn, otherwise, req, xpcall(fn, traceback, req))
  end, fn)
end

-- An error that the server makes, as a handler that raises it would.
function M.fail(problem, on_error, req)
  return respond(on_error, nil, nil, req, false, problem)
end

-- Whether what middleware may have written into the reply can be read: C names who wrote what cannot.
local function is_sound(reply)
  local status, body = reply.status, type(reply.body)
  return type(status) == "number" and status % 1 == 0 and status >= 200 and status <= 599
    and type(reply.headers) == "table" and (body == "string" or body == "table" or body == "nil")
end

local function read_layer(fn, on_error, req, reply, ok, ...)
  if ok and select("#", ...) <= 1 then
    local only = ...
    if only == nil and not reply then
      local info = getinfo(fn, "S")
      return respond(on_error, fn, nil, req, false, ("the middleware at %s:%d returned nothing and did not call inner")
        :format(info.short_src, info.linedefined))
    end
    if (only == nil or only == reply) and is_sound(reply) then return reply end
    if only == nil then return respond(on_error, fn, nil, req, true, reply) end
  end
  return respond(on_error, fn, nil, req, ok, ...)
end

-- Middleware fn(req, inner) before `rest`.
function M.layer(fn, rest, on_error)
  return with_origin(function(req)
    local is_called, reply = false, nil
    local function inner(changed)
      if changed ~= nil and type(changed) ~= "table" then error("inner takes the request, not " .. type(changed), 2) end
      if is_called then error("inner was called before: it runs the rest of the request once", 2) end
      is_called = true
      reply = rest(changed or req)
      return reply
    end
    local function finish(...) return read_layer(fn, on_error, req, reply, ...) end
    return finish(xpcall(fn, traceback, req, inner))
  end, fn)
end

return M

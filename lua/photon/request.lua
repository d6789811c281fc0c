-- request: what handlers get. A request is a table { handle, params = … }; every other field is
-- loaded when it is first read, and then stays. When the exchange is over they are nil.

local core = require "photon.core"
local response = require "photon.response"
local task = require "photon.task"
local wait = require "photon.wait"

local error, rawget, rawset, type = error, rawget, rawset, type
local body_read = core.body_read

local BODY = 2 -- the field that keeps the body once it was read; the handle is field 1

local loaders = {
  method = core.request_method,
  path = core.request_path,
  target = core.request_target,
  query = core.request_query,
  headers = core.request_headers,
  cookies = core.request_cookies,
  ip = core.request_ip,
  host = core.request_host,
  scheme = core.request_scheme,
  id = core.request_id,
  ctx = function() return {} end,
  params = function() return {} end,
}

local methods = {}

core.request_meta {
  __index = function(req, name)
    local method = methods[name]
    if method then return method end
    local load = loaders[name]
    if not load then return nil end
    local value = load(req)
    if value ~= nil then rawset(req, name, value) end
    return value
  end,
  __tostring = function(req)
    return ("request %s %s"):format(req.method or "that", req.target or "is over")
  end,
}

local REFUSALS = {
  [400] = "the body of the request is malformed",
  [408] = "the body of the request did not arrive in time",
  [413] = "the body of the request is too large",
  [415] = "the body of the request is compressed; send it as it is",
  [503] = "no memory for the body of the request",
}

local function refuse(status, detail)
  local problem = response.problem(status, detail or REFUSALS[status])
  if status == 415 then problem.headers["accept-encoding"] = "identity" end
  error(problem, 0)
end

-- The whole body as a string; waits until it has arrived. Raises 413, 408, 400 or 415. nil and
-- "closed" when the exchange is over.
function methods.body(req)
  if type(req) ~= "table" then error("req:body is called with a colon", 2) end
  while true do
    local body = rawget(req, BODY)
    if body then return body end
    local got, status = body_read(req)
    if got then
      rawset(req, BODY, got)
      return got
    end
    if got == false then
      if not status then return nil, "closed" end
      refuse(status)
    end
    wait()
  end
end

-- The body, decoded; nil when there is none. Raises 415 for another media type, 400 for what is not
-- JSON.
function methods.json(req)
  local body, closed = req:body()
  if not body then return nil, closed end
  if body == "" then return nil end
  if not core.body_is_json(req) then
    local given = core.request_header(req, "content-type")
    error(response.problem(415, "the body must be application/json, not "
      .. (given and given ~= "" and given or "of an unknown type")), 0)
  end
  local value, message = core.json.decode(body)
  if message then refuse(400, "the body is " .. message) end
  return value
end

-- Every value of a name in the query, in order.
function methods.query_all(req, name)
  if type(name) ~= "string" then error("req:query_all takes a name, not " .. type(name), 2) end
  local values = core.request_query_all(req, name)
  if not values then return nil, "closed" end
  return values
end

-- fn runs when the exchange is over, however it ended.
function methods.on_close(req, fn)
  task.on_close(req[1], fn)
end

return methods

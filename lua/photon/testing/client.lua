-- client: sends requests to an app in this process, through its real router and handlers.

local core = require "photon.core"
local encoding = require "photon.testing.encoding"
local reply = require "photon.testing.reply"
local stream = require "photon.testing.stream"
local turns = require "photon.testing.turns"

local Client = {}
Client.__index = Client

local TIMEOUT = 10 -- seconds of real time for a whole reply, or the head of a stream

local HAS_BODY = { POST = true, PUT = true, PATCH = true }

local function send(self, method, path, options, own, level)
  local target = encoding.target(path, options.query, level + 1)
  local body, kind = encoding.body(options, level + 1)
  own.host, own["content-type"] = "photon.test", kind
  if options.chunked then
    own["transfer-encoding"] = "chunked"
  elseif body ~= "" or HAS_BODY[method] then
    own["content-length"] = #body
  end
  local headers = encoding.headers(options.headers, own, level + 1)
  return core.test_request(self.app, method, target, headers, body, options.chunked or false, options.ip,
    options.slow)
end

local function give_up(id, method, path, seconds, what)
  core.test_close(id)
  local is_frozen = core.test_clock()
  error(("%s %s: %s after %g s%s"):format(method, path, what, seconds,
    is_frozen and " (the clock is frozen: what sleeps in the handler needs test.clock.advance)" or ""), 0)
end

-- Sends the request and waits for the whole reply: status, headers, body.
function Client:request(method, path, options)
  options = encoding.check_options(options, 2)
  if type(method) ~= "string" or not method:find "^[%w!#$%%&'*+.^_`|~-]+$" then
    error("client:request takes a method and a path", 2)
  end
  local id, request_id = send(self, method, path, options, {}, 2)
  local pieces = {}
  local state = turns.wait_for(id, options.timeout or TIMEOUT, function()
    local bytes, state = core.test_take(id)
    pieces[#pieces + 1] = bytes ~= "" and bytes or nil
    if state ~= "open" then return state end
  end)
  local status, list = core.test_head(id)
  if not state then
    give_up(id, method, path, options.timeout or TIMEOUT, status
      and "the reply has not ended (client:sse and client:stream read while it goes on)" or "there is no reply")
  end
  core.test_close(id)
  turns.settle()
  local failure = reply.raise_failure(request_id, options)
  if not status then return nil, failure and failure.message or "the connection was closed without a reply" end
  return setmetatable({ status = status, headers = reply.fields(list), body = table.concat(pieces),
    is_complete = state == "done", id = request_id }, reply.Reply)
end

for _, method in ipairs { "get", "post", "put", "patch", "delete", "head", "options" } do
  Client[method] = function(self, path, options)
    return self:request(method:upper(), path, options)
  end
end

local function open(self, path, options, own, is_events)
  options = encoding.check_options(options, 3)
  if options.last_event_id then own["last-event-id"] = options.last_event_id end
  local method = options.method or "GET"
  local id, request_id = send(self, method, path, options, own, 3)
  local seconds = options.timeout or TIMEOUT
  local head = turns.wait_for(id, seconds, function()
    local status, list = core.test_head(id)
    if status then return { status = status, headers = reply.fields(list) } end
    local _, state = core.test_take(id)
    if state ~= "open" then return false end
  end)
  if head == nil then give_up(id, method, path, seconds, "there is no reply") end
  -- What breaks a stream that has begun is raised by its readers, after what was sent before.
  local failure = (not head or head.status >= 400) and reply.raise_failure(request_id, options)
  if not head then return nil, failure and failure.message or "the connection was closed without a reply" end
  return stream.new(id, request_id, head.status, head.headers, options, is_events)
end

-- Opens an event stream; returns when its head has come. options.slow: bytes a second that the client
-- reads, from the first one on.
function Client:sse(path, options)
  return open(self, path, options, { accept = "text/event-stream", ["cache-control"] = "no-cache" }, true)
end

-- Opens any reply, to be read as it comes.
function Client:stream(path, options)
  return open(self, path, options, {}, false)
end

-- The app's own module of that name, as its require gives it.
function Client:module(name)
  if not self.require then error("this app was not loaded by its path", 2) end
  return self.require(name)
end

return Client

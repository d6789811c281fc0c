-- Whether the replies to a case are one of its outcomes. An outcome may hold: responses (number of
-- final replies), status (for each reply the allowed ones: 400, "4xx"), close (true: the server must
-- close, false: the connection must still work), never (texts that occur nowhere), interim,
-- no_interim, and with one entry for each reply: body_has, body_lacks, body_exact, header_present,
-- header_absent, header_equals, header_token, header_re, sse.
local replies = require "spec.replies"

local function to_bytes(text)
  return (text:gsub("([\194\195])([\128-\191])", function(lead, rest)
    return string.char((lead:byte() - 192) * 64 + rest:byte() - 128)
  end))
end

local function has_status(reply, allowed)
  for _, status in ipairs(allowed) do
    if status == reply.status or status == math.floor(reply.status / 100) .. "xx" then return true end
  end
  return #allowed == 0
end

local function is_token(value, token)
  for each in ((value or "") .. ","):gmatch "([^,]*)," do
    if each:match "^%s*(.-)%s*$":lower() == token then return true end
  end
  return false
end

-- The case files use three forms of regular expressions; another one is an error.
local function matches(value, pattern)
  value = value or ""
  if pattern == [[^text/event-stream\b]] then return value:find "^text/event%-stream%f[^%w_]" ~= nil end
  local path = pattern:match "^%^%(http://photon%.test%)%?(/.*)/%?%$$" or pattern == "^(http://photon.test)?/?$" and ""
  if path then
    local given = value:gsub("^http://photon%.test", "")
    return given == path or given == path .. "/"
  end
  assert(pattern:find [[\b%u+\b]], "an unknown regular expression: " .. pattern)
  for name in pattern:gmatch [[\b(%u+)\b]] do
    if not is_token(value, name:lower()) then return false end
  end
  return true
end

local checks = {}

function checks.status(reply, allowed)
  if not has_status(reply, allowed) then return "status " .. reply.status end
end

function checks.body_has(reply, texts)
  if math.floor(reply.status / 100) ~= 2 then return nil end
  for _, text in ipairs(texts) do
    if not reply.body:find(to_bytes(text), 1, true) then
      return ("the body lacks %q: %q"):format(text, reply.body:sub(1, 200))
    end
  end
end

function checks.body_lacks(reply, texts)
  for _, text in ipairs(texts) do
    if reply.body:find(to_bytes(text), 1, true) then return ("the body has %q"):format(text) end
  end
end

function checks.body_exact(reply, text)
  if reply.body ~= to_bytes(text) then return ("the body is %q"):format(reply.body) end
end

function checks.header_present(reply, names)
  for _, name in ipairs(names) do
    if not reply:get(name) then return "no header " .. name end
  end
end

function checks.header_absent(reply, names)
  for _, name in ipairs(names) do
    if reply:get(name) then return "a header " .. name end
  end
end

function checks.header_equals(reply, values)
  for name, value in pairs(values) do
    if reply:get(name) ~= value then return ("%s is %s"):format(name, reply:get(name)) end
  end
end

function checks.header_token(reply, tokens)
  for name, token in pairs(tokens) do
    if not is_token(reply:get(name), token) then return ("%s is %s"):format(name, reply:get(name)) end
  end
end

function checks.header_re(reply, patterns)
  for name, pattern in pairs(patterns) do
    if not matches(reply:get(name), pattern) then return ("%s is %s"):format(name, reply:get(name)) end
  end
end

local function show_events(events)
  local shown = {}
  for i, event in ipairs(events) do shown[i] = ("%s %q id %q"):format(event.type, event.data, event.id) end
  return "{ " .. table.concat(shown, "; ") .. " }"
end

local function longest_line(text)
  local longest = 0
  for line in (text .. "\n"):gmatch "([^\r\n]*)[\r\n]" do longest = math.max(longest, #line) end
  return longest
end

function checks.sse(reply, wanted)
  local events, last_id, retry = replies.events(reply.body)
  if wanted.events and show_events(events) ~= show_events(wanted.events) then
    return "events " .. show_events(events)
  end
  if wanted.last_id and last_id ~= wanted.last_id then return ("the last id is %q"):format(last_id) end
  if wanted.retry and retry ~= wanted.retry then return "retry " .. tostring(retry) end
  if wanted.lines_max and longest_line(reply.body) > wanted.lines_max then return "a line is too long" end
end

local KNOWN = { responses = true, close = true, never = true, interim = true, no_interim = true, raw_prefix = true }

local function check_each(outcome, list)
  for name, entries in pairs(outcome) do
    local check = checks[name]
    assert(check or KNOWN[name], "an outcome of an unknown kind: " .. name)
    for i, wanted in ipairs(check and entries or {}) do
      local wrong = list[i] and type(wanted) ~= "userdata" and check(list[i], wanted)
      if wrong then return ("reply %d: %s"):format(i, wrong) end
    end
  end
end

local function has_interim(list, status)
  for _, reply in ipairs(list) do
    for _, each in ipairs(reply.interim) do
      if not status or each.status == status then return true end
    end
  end
  return false
end

local function check_replies(outcome, list)
  if outcome.responses and #list ~= outcome.responses then
    local statuses = {}
    for i, reply in ipairs(list) do statuses[i] = reply.status end
    return ("%d replies (%s), not %d"):format(#list, table.concat(statuses, " "), outcome.responses)
  end
  for i, reply in ipairs(list) do
    if not reply.is_complete then return ("reply %d (%d) is not complete"):format(i, reply.status) end
    if reply.faults[1] then return ("reply %d: %s"):format(i, reply.faults[1]) end
  end
end

-- nil when everything is as the outcome says, else what is not. `s` is the client's socket.
return function(outcome, list, rest, s)
  local wrong = check_replies(outcome, list) or check_each(outcome, list)
  if wrong then return wrong end
  if list[1] and rest ~= "" then return ("%q after the last reply"):format(rest:sub(1, 40)) end
  for _, text in ipairs(outcome.never or {}) do
    if s.received:find(to_bytes(text), 1, true) then return ("%q is in the reply"):format(text) end
  end
  if outcome.raw_prefix and s.received:sub(1, #outcome.raw_prefix) ~= to_bytes(outcome.raw_prefix) then
    return "the reply begins otherwise"
  end
  if outcome.close == true and not s.is_closed then return "the connection was left open" end
  if outcome.close == false and s.is_closed then return "the connection was closed" end
  if outcome.interim and not has_interim(list, outcome.interim[1]) then return "no interim reply" end
  if outcome.no_interim and has_interim(list) then return "an interim reply" end
end

-- The case files of HTTP/1.1 on the wire, as far as the reader alone decides them: each goes in
-- whole, byte by byte and cut at every place. What a request that passes the reader would be
-- answered is known for a few simple routes; elsewhere any answer is as good as another.
local cjson = require "cjson"
local lib = require "spec.lib"
local reader = require "spec.unit.http1_reader"

-- Case files hold bytes as U+0000 to U+00FF.
local function to_bytes(s)
  return (s:gsub("([\194\195])([\128-\191])", function(lead, rest)
    return string.char((lead:byte() - 192) * 64 + rest:byte() - 128)
  end))
end

local function bytes_of(case)
  local parts, is_cut_off = {}, false
  for _, part in ipairs(case.send) do
    if type(part) == "string" then
      parts[#parts + 1] = to_bytes(part)
    elseif part.rep then
      parts[#parts + 1] = to_bytes(part.rep[1]):rep(part.rep[2])
    elseif part.half_close then
      is_cut_off = true
    end
  end
  return table.concat(parts), is_cut_off
end

local function is_plain(request)
  return not request.path:find "%%" and not request.query:find "%%"
end

-- The status, where it does not depend on what lies above the reader.
local function status_of(request)
  local path, method = request.path, request.method_name
  if method ~= "GET" and method ~= "POST" then return nil end
  if path == "/" and method == "GET" then return 200 end
  if (path == "/echo" or path:find "^/echo/") and is_plain(request) then return 200 end
end

local function to_hex(s)
  return (s:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

local function echo_of(request)
  local body = table.concat(request.pieces)
  return ("method=%s\npath=%s\nquery=%s\nhost=%s\nbody_len=%d\nbody_hex=%s\n"):format(
    request.method_name, request.path, request.query, request.host, #body, to_hex(body))
end

-- Every answer that the events call for: of completed requests, and of a refusal.
local function answers_of(events)
  local answers, request = {}, nil
  for _, event in ipairs(events) do
    if event.event == "head" then
      request = event
      request.pieces = {}
    elseif event.event == "body" then
      request.pieces = event.pieces
    elseif event.event == "end" then
      answers[#answers + 1] = { request = request, status = status_of(request),
        closes = not request.keep_alive }
      request = nil
    else
      answers[#answers + 1] = { status = event.status, closes = true, is_refusal = true }
    end
  end
  return answers
end

local function is_allowed(status, allowed)
  if not status or not allowed or allowed == cjson.null then return true end
  for _, one in ipairs(allowed) do
    if one == status or one == ("%dxx"):format(status / 100) then return true end
  end
  return false
end

local function check_body(answer, wanted)
  if not wanted or wanted == cjson.null or not answer.status or answer.is_refusal then return end
  local path = answer.request.path
  if path ~= "/echo" and not path:find "^/echo/" then return end
  local text = echo_of(answer.request)
  for _, part in ipairs(wanted) do
    if not text:find(to_bytes(part), 1, true) then return ("%q is not in %q"):format(part, text) end
  end
end

local function check_outcome(outcome, answers, is_cut_off)
  if outcome.responses ~= #answers then
    return ("%d answers, expected %d"):format(#answers, outcome.responses)
  end
  local closes = is_cut_off
  for i, answer in ipairs(answers) do
    if not is_allowed(answer.status, outcome.status and outcome.status[i]) then
      return ("answer %d has status %d"):format(i, answer.status)
    end
    local wrong = check_body(answer, outcome.body_has and outcome.body_has[i])
    if wrong then return wrong end
    if outcome.interim and not answer.request.expects_continue then return "no 100 is expected" end
    if answer.closes then closes = true end
    for _, never in ipairs(outcome.never or {}) do
      if answer.request and answer.request.path == never then return never .. " was let through" end
    end
  end
  local last = answers[#answers]
  local is_open = last and not last.status -- the layers above may close
  if outcome.close == true and not closes and not is_open then return "would stay open" end
  if outcome.close == false and closes then return "would be closed" end
end

local function check_case(case)
  local bytes, is_cut_off = bytes_of(case)
  local events, problem = reader.read_every_way(bytes)
  if not events then return problem end
  local answers, reasons = answers_of(events), {}
  for _, outcome in ipairs(case.expect.any_of or { case.expect }) do
    local wrong = check_outcome(outcome, answers, is_cut_off)
    if not wrong then return nil end
    reasons[#reasons + 1] = wrong
  end
  return table.concat(reasons, " | ") .. "\n" .. reader.describe(events)
end

local function run_file(path)
  for line in lib.read(path):gmatch "[^\n]+" do
    local case = cjson.decode(line)
    it(("%s: %s"):format(case.id, case.why), function()
      assert.is_nil(check_case(case))
    end)
  end
end

describe("cases of HTTP/1.1 on the wire:", function()
  run_file "spec/cases/raw_http.jsonl"
end)

describe("odd bytes around Transfer-Encoding:", function()
  run_file "spec/cases/raw_te_bytes.jsonl"
end)

-- The router's case file, as far as the router alone decides it. It holds third-party data and is
-- not part of the repository: it is run from where it lies, when it is there.
local Table = require "spec.unit.router_table"

local CASES = os.getenv "PHOTON_CASES" or "../shared/cases"
local METHOD_NAME = "\\b(%u+)\\b"

-- Cases that contradict the contract (a literal gives way to a parameter when the rest of the path
-- does not fit), with what the contract says.
local CONTESTED = {
  ["gin-wild-08"] = "/cmd/:tool/", -- for /cmd/whoami/, though /cmd/whoami is a route
}

local function open_cases(name)
  return io.open(CASES .. "/" .. name, "rb")
end

-- Case files hold bytes as U+0000 to U+00FF.
local function to_bytes(s)
  return (s:gsub("([\194\195])([\128-\191])", function(lead, rest)
    return string.char((lead:byte() - 192) * 64 + rest:byte() - 128)
  end))
end

local function read_cases(cjson)
  local cases = {}
  local file = assert(open_cases "router.jsonl")
  for line in file:lines() do cases[#cases + 1] = cjson.decode(line) end
  file:close()
  return cases
end

local function request_line(case)
  local method, target = to_bytes(case.send[1]):match "^(%S+) (%S+) HTTP/1%.1\r\n"
  return assert(method, case.id), (target:gsub("%?.*", ""))
end

-- What a server would answer that does no more than the router tells it.
local function answer_of(t, case)
  local method, path = request_line(case)
  local result, route, params = t:match(method, path)
  if result == "bad path" then return { status = 400, body = "" } end
  if result == "not found" then return { status = 404, body = "" } end
  if result == "other method" then
    return { status = method == "OPTIONS" and 204 or 405, allow = t:allow(path), body = "" }
  end
  local lines = { "method=" .. method, "route=" .. route:match " (.*)" }
  for name, value in pairs(params) do lines[#lines + 1] = "param." .. name .. "=" .. value end
  return { status = 200, body = method == "HEAD" and "" or table.concat(lines, "\n") .. "\n" }
end

local function has_status(answer, allowed)
  for _, status in ipairs(allowed) do
    if status == answer.status then return true end
    if status == math.floor(answer.status / 100) .. "xx" then return true end
  end
  return false
end

-- The case file's patterns over Allow only list method names that must be there.
local function has_methods(answer, pattern)
  for name in pattern:gmatch(METHOD_NAME) do
    if not (answer.allow or ""):find("%f[%u]" .. name .. "%f[%U]") then return false end
  end
  return true
end

local function fulfils(answer, outcome)
  if not has_status(answer, outcome.status[1]) then return false, "status " .. answer.status end
  for _, text in ipairs(outcome.body_has and answer.status == 200 and outcome.body_has[1] or {}) do
    if not answer.body:find(to_bytes(text), 1, true) then return false, "lacks " .. text .. answer.body end
  end
  for _, text in ipairs(outcome.body_lacks and outcome.body_lacks[1] or {}) do
    if answer.body:find(text, 1, true) then return false, "has " .. answer.body end
  end
  if outcome.body_exact and outcome.body_exact[1] ~= answer.body then return false, "body " .. answer.body end
  for name, pattern in pairs(outcome.header_re and outcome.header_re[1] or {}) do
    if name ~= "allow" then return false, name end
    if not has_methods(answer, pattern) then return false, "allow " .. tostring(answer.allow) end
  end
  return true
end

local function check_request(case, t)
  local answer, why = answer_of(t, case), nil
  if CONTESTED[case.id] then
    return assert.truthy(answer.body:find("route=" .. CONTESTED[case.id] .. "\n", 1, true), answer.body)
  end
  for _, outcome in ipairs(case.expect.any_of or { case.expect }) do
    local ok, problem = fulfils(answer, outcome)
    if ok then return end
    why = (why and why .. "; or " or "") .. problem
  end
  error(case.id .. ": " .. case.why .. ": " .. why)
end

local function check_register(case)
  local t, message = Table.new(), nil
  for _, pattern in ipairs(case.register) do
    local _, refusal = t:add("GET", pattern)
    message = message or refusal
  end
  if case.expect.register_error == "either" then return end
  assert.equal(case.expect.register_error, message ~= nil, message)
  if message then assert.truthy(message:find(case.register[#case.register], 1, true), message) end
end

describe("router: case file", function()
  local ok, cjson = pcall(require, "cjson")
  local file = ok and open_cases "router_sets.json"
  if not file then
    pending "is not here"
    return
  end
  local sets = cjson.decode(file:read "*a")
  file:close()
  local tables = {}
  for name, patterns in pairs(sets) do
    tables[name] = Table.of(patterns)
    assert(tables[name]:seal())
  end
  for _, case in ipairs(read_cases(cjson)) do
    it(case.id, function()
      if not case.send then return check_register(case) end
      check_request(case, assert(tables[case.setup], case.setup))
    end)
  end
end)

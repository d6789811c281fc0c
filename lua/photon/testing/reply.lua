-- reply: what a spec sees of a reply: status, header fields, body; and the error behind it.

local core = require "photon.core"

local M = {}

local Fields = {}

-- Names are lower case, and found in any case.
function Fields.__index(fields, name)
  if type(name) ~= "string" then return nil end
  local known = name:lower()
  if known ~= name then return rawget(fields, known) end
end

-- From the list { name, value, … }: a field that is repeated has the list of its values.
function M.fields(list)
  local fields = setmetatable({}, Fields)
  for i = 1, #list, 2 do
    local name, value = list[i], list[i + 1]
    local old = rawget(fields, name)
    if old == nil then
      fields[name] = value
    elseif type(old) == "table" then
      old[#old + 1] = value
    else
      fields[name] = { old, value }
    end
  end
  return fields
end

-- All values of a field, as a list.
function M.values(fields, name)
  local value = fields[name:lower()]
  if type(value) == "table" then return value end
  return { value }
end

local Reply = {}
Reply.__index = Reply
M.Reply = Reply

-- The body, decoded; an error when it is not JSON.
function Reply:json()
  local value, wrong = core.json.decode(self.body)
  if wrong then error(("the body is not JSON (%s): %s"):format(wrong, self.body:sub(1, 200)), 2) end
  return value
end

function Reply:values(name)
  return M.values(self.headers, name)
end

local function is_spec_failure(value)
  local meta = type(value) == "table" and getmetatable(value)
  return type(meta) == "table" and (meta.__type == "failure" or meta.__type == "pending")
end

-- Raises the error that a handler has left unhandled. A failed assertion in it fails the spec.
function M.raise_failure(request_id, options)
  local failure = core.take_failure(request_id)
  if not failure or options.raise == false then return failure end
  if is_spec_failure(failure.value) then error(failure.value, 0) end
  error(failure.message .. "\n" .. failure.trace, 0)
end

return M

-- static: replies that are known when the app loads: rendered once, then served by C; or, where
-- middleware stands before them, by a handler that does what C would do.

local core = require "photon.core"
local loader = require "photon.loader"

local M = { options = { "status", "headers", "type", "middleware" } }

-- Only a short text without line breaks can have been meant as a path.
local function is_directory(text)
  if #text > 1024 or #text == 0 or text:find "[%c]" then return false end
  local file = io.open(text, "r")
  if not file then return false end
  local _, _, code = file:read(1)
  file:close()
  return code == 21 -- EISDIR
end

-- With a slash at its end; "" when it is not known.
local function app_dir()
  return type(loader.file) == "string" and loader.file:match "^.*/" or ""
end

local function render_body(body, options)
  if type(body) == "string" then
    if body ~= "" and (is_directory(body) or is_directory(app_dir() .. body)) then
      return nil, "is a directory; files are served by app:files"
    end
    return body, "text/plain; charset=utf-8"
  end
  if type(body) ~= "table" then
    return nil, ("the body is a string or a table, not %s"):format(type(body))
  end
  local ok, text = pcall(core.json.encode, body)
  if not ok then return nil, text end
  return text, options.type or "application/json"
end

local function check_options(options)
  local status = options.status
  if status ~= nil and (type(status) ~= "number" or status % 1 ~= 0 or status < 200 or status > 599) then
    return "status is an integer from 200 to 599"
  end
  if options.type ~= nil then
    if type(options.type) ~= "string" then return "type is a string" end
    local ok, wrong = core.fields { ["content-type"] = options.type }
    if not ok then return wrong end
  end
  if options.headers ~= nil and type(options.headers) ~= "table" then return "headers are a table" end
  if options.middleware ~= nil and type(options.middleware) ~= "boolean" then
    return "middleware is true or false"
  end
end

-- { status, headers = { { name, value }, … }, body }, or nil and what is wrong.
function M.render(body, options)
  local wrong = check_options(options)
  if wrong then return nil, wrong end
  local text, content_type = render_body(body, options)
  if not text then return nil, content_type end
  local fields, problem = core.fields(options.headers or {})
  if not fields then return nil, problem end
  local headers, has_type = {}, false
  for i, field in ipairs(fields) do
    headers[i] = field
    has_type = has_type or field[1] == "content-type"
  end
  if not has_type or options.type then
    table.insert(headers, 1, { "content-type", options.type or content_type })
  end
  return { status = options.status or 200, headers = headers, body = text }
end

local function header_table(fixed)
  local headers = {}
  for _, field in ipairs(fixed.headers) do
    local name, value = field[1], field[2]
    local present = headers[name]
    if type(present) == "table" then present[#present + 1] = value
    else headers[name] = present and { present, value } or value end
  end
  return headers
end

-- RFC 9110 13.1.2: weak comparison with a list of tags.
local function matches(condition, etag)
  if not condition then return false end
  if condition:match "^%s*%*%s*$" then return true end
  for tag in condition:gmatch '"[^"]*"' do
    if tag == etag then return true end
  end
  return false
end

-- A handler for a fixed reply.
function M.handler(fixed)
  local headers = header_table(fixed)
  if fixed.status == 200 and not headers.etag then headers.etag = '"' .. core.digest(fixed.body) .. '"' end
  local whole = setmetatable({ status = fixed.status, body = fixed.body, headers = headers }, core.response_meta)
  return function(req)
    if fixed.status == 200 and matches(req.headers["if-none-match"], headers.etag) then
      return nil, 304, headers
    end
    return whole
  end
end


return M

-- encoding: a request of photon.test as data: target, header fields, body.

local core = require "photon.core"
local suggest = require "photon.suggest"

local concat, sort = table.concat, table.sort

local M = {}

local OPTIONS = { "headers", "query", "json", "form", "files", "body", "chunked", "raise", "timeout", "ip",
  "method", "last_event_id", "slow" }
local is_option = {}
for _, name in ipairs(OPTIONS) do is_option[name] = true end

function M.check_options(options, level)
  if options == nil then return {} end
  if type(options) ~= "table" then
    error("the options of a request are a table, not " .. type(options), level + 1)
  end
  for name in pairs(options) do
    if not is_option[name] then
      error(("there is no option %s%s"):format(tostring(name), suggest(tostring(name), OPTIONS)), level + 1)
    end
  end
  return options
end

local function escape(text)
  return (tostring(text):gsub("[^%w%-._~]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function sorted_names(t)
  local names = {}
  for name in pairs(t) do names[#names + 1] = name end
  sort(names, function(a, b) return tostring(a) < tostring(b) end)
  return names
end

-- name=value pairs; a value that is a list makes one pair for each.
local function pairs_text(t)
  local list = {}
  for _, name in ipairs(sorted_names(t)) do
    local values = t[name]
    if type(values) ~= "table" then values = { values } end
    for _, value in ipairs(values) do list[#list + 1] = escape(name) .. "=" .. escape(value) end
  end
  return concat(list, "&")
end

function M.target(path, query, level)
  if type(path) ~= "string" then error("the path of a request is a string, not " .. type(path), level + 1) end
  if not path:find "^/" and path ~= "*" then
    error(('the path of a request begins with "/", not %q'):format(path), level + 1)
  end
  if path:find "[^\33-\126]" or path:find("#", 1, true) then
    error(("%q cannot be sent: escape it as a client would (%%20 for a space)"):format(path), level + 1)
  end
  if query == nil then return path end
  local text = type(query) == "table" and pairs_text(query) or tostring(query)
  if text == "" then return path end
  return path .. (path:find("?", 1, true) and "&" or "?") .. text
end

local function quoted(text)
  return '"' .. tostring(text):gsub('[\r\n"]', { ["\r"] = "%0D", ["\n"] = "%0A", ['"'] = "%22" }) .. '"'
end

local function part(out, boundary, fields, data)
  out[#out + 1] = "--" .. boundary .. "\r\n" .. fields .. "\r\n\r\n" .. data .. "\r\n"
end

-- A file is its bytes, or { data =, filename =, type = }, or a list of such.
local function add_files(out, boundary, name, files)
  if type(files) ~= "table" or files.data then files = { files } end
  for _, file in ipairs(files) do
    if type(file) ~= "table" then file = { data = file } end
    part(out, boundary, ("content-disposition: form-data; name=%s; filename=%s\r\ncontent-type: %s"):format(
      quoted(name), quoted(file.filename or name), file.type or "application/octet-stream"), tostring(file.data))
  end
end

local function multipart(options)
  local out, boundary = {}, "----photon-test-7MA4YWxkTrZu0gW"
  for _, name in ipairs(sorted_names(options.form or {})) do
    local values = options.form[name]
    if type(values) ~= "table" then values = { values } end
    for _, value in ipairs(values) do
      part(out, boundary, "content-disposition: form-data; name=" .. quoted(name), tostring(value))
    end
  end
  for _, name in ipairs(sorted_names(options.files)) do add_files(out, boundary, name, options.files[name]) end
  out[#out + 1] = "--" .. boundary .. "--\r\n"
  return concat(out), "multipart/form-data; boundary=" .. boundary
end

-- The body and its media type, if it has one of its own.
function M.body(options, level)
  local given = 0
  for _, name in ipairs { "body", "json" } do given = given + (options[name] ~= nil and 1 or 0) end
  if options.form ~= nil or options.files ~= nil then given = given + 1 end
  if given > 1 then error("a request has one body: json, form (with files) or body", level + 1) end
  if options.json ~= nil then return core.json.encode(options.json), "application/json" end
  if options.files then return multipart(options) end
  if options.form then return pairs_text(options.form), "application/x-www-form-urlencoded" end
  local body = options.body
  if body ~= nil and type(body) ~= "string" then
    error("the body of a request is a string, not " .. type(body), level + 1)
  end
  return body or "", nil
end

local function add_header(list, name, value, level)
  if type(name) ~= "string" or not name:find "^[%w!#$%%&'*+.^_`|~-]+$" then
    error(("%s is no name of a header field"):format(tostring(name)), level + 1)
  end
  value = tostring(value)
  if value:find "[%z\r\n]" then error(("the field %s holds CR, LF or NUL"):format(name), level + 1) end
  list[#list + 1] = name:lower()
  list[#list + 1] = value:match "^[ \t]*(.-)[ \t]*$"
end

-- The list { name, value, … }; `own` are fields that stand where the spec gives none.
function M.headers(given, own, level)
  local list, has = {}, {}
  for _, name in ipairs(sorted_names(given or {})) do
    local values = given[name]
    has[tostring(name):lower()] = true
    if type(values) ~= "table" then values = { values } end
    for _, value in ipairs(values) do add_header(list, name, value, level + 1) end
  end
  for _, name in ipairs(sorted_names(own)) do
    if not has[name] then add_header(list, name, own[name], level + 1) end
  end
  return list
end

return M

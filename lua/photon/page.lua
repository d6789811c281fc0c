-- page: what a browser sees of a Lua error in --watch mode: the message, the lines around it, and
-- the traceback. Never served otherwise.

local core = require "photon.core"

local ENTITIES = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

local STYLE = [[
body { font: 15px/1.5 system-ui, sans-serif; margin: 3em auto; max-width: 60em; padding: 0 1em }
h1 { font-size: 1.3em } pre { background: #8881; padding: 1em; overflow: auto }
mark { background: #f553; color: inherit; display: inline-block; width: 100% }
@media (prefers-color-scheme: dark) { body { background: #181818; color: #ddd } }]]

local function escape(text)
  return (text:gsub('[&<>"]', ENTITIES))
end

-- The lines of a file around `line`, that one marked; nil when there is no such file.
local function excerpt(path, line)
  local file = io.open(path, "r")
  if not file then return nil end
  local out, number = {}, 0
  for text in file:lines() do
    number = number + 1
    if number > line + 5 then break end
    if number >= line - 5 then
      local shown = ("%5d  %s"):format(number, escape(text))
      out[#out + 1] = number == line and "<mark>" .. shown .. "</mark>" or shown
    end
  end
  file:close()
  return #out > 0 and table.concat(out, "\n") or nil
end

local OWN_FOLDER = debug.getinfo(1, "S").source:match "^@(.*/)" or "?"

-- The first place of the message or the traceback whose file can be read and is not the library's.
local function source(failure)
  for path, line in (failure.message .. "\n" .. failure.trace):gmatch "([^%s:<>']+):(%d+):?" do
    local is_own = path:sub(1, #OWN_FOLDER) == OWN_FOLDER
    local lines = not is_own and excerpt(path, tonumber(line))
    if lines then return ("<h2>%s:%s</h2><pre>%s</pre>"):format(escape(path), line, lines) end
  end
  return ""
end

local function render(failure, method, target)
  return table.concat {
    "<!doctype html><meta charset=utf-8><title>", escape(failure.message), "</title><style>", STYLE,
    "</style><h1>", escape(failure.message), "</h1><p>", escape(method), " ", escape(target), "</p>",
    source(failure), "<pre>", escape(failure.trace), "</pre>\n",
  }
end

local function page(failure, method, target)
  local ok, html = pcall(render, failure, method, target)
  return ok and html or nil
end

core.set_page(page)

return page

-- The guide in docs/ tells the truth: its examples run, its names exist, its links lead somewhere.
--
-- A Lua block after `<!-- app -->` is an app; after `<!-- module: NAME -->`, a module that the apps
-- of its page find; after `<!-- spec -->`, a spec of the last app. Each
-- `<!-- try: METHOD TARGET [JSON] → STATUS [TEXT] -->` is sent to the app before it, and the reply must
-- contain the text. SSE as the method waits for one event and leaves.
local lib = require "spec.lib"
local live = require "spec.live"
local photon = require "photon"
local settings = require "photon.settings"
local test = require "photon.test"

local PAGES = lib.files("docs", "%.md$")

-- The lines of a page as blocks and tries, in order: { kind =, language =, name =, text =, line = }.
local function read_page(page)
  local items, mark, block, number = {}, nil, nil, 0
  for line in lib.read("docs/" .. page):gmatch "([^\n]*)\n" do
    number = number + 1
    local language = line:match "^```(%a*)"
    if block and language then
      block.text = table.concat(block.lines, "\n") .. "\n"
      items[#items + 1], block, mark = block, nil, nil
    elseif block then
      block.lines[#block.lines + 1] = line
    elseif language then
      local kind, name = (mark or ""):match "^(%a+):? ?(.*)$"
      block = { kind = kind or "plain", name = name, language = language, lines = {}, line = number }
    else
      local comment = line:match "^<!%-%- (.*) %-%->$"
      local text = (comment or ""):match "^try: (.*)$"
      if text then items[#items + 1] = { kind = "try", text = text, line = number } end
      if line ~= "" then mark = not text and comment or nil end
    end
  end
  return items
end

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

-- The apps of a page, each written to a folder with the page's modules: { folder, tries, spec, line }.
local function read_apps(items)
  local apps, modules = {}, {}
  for _, item in ipairs(items) do
    local app = apps[#apps]
    if item.kind == "module" then modules[item.name] = item.text
    elseif item.kind == "app" then apps[#apps + 1] = { text = item.text, line = item.line, tries = {} }
    elseif item.kind == "spec" then app.spec = item
    elseif item.kind == "try" then app.tries[#app.tries + 1] = item end
  end
  for _, app in ipairs(apps) do
    app.folder = live.folder()
    write(app.folder .. "/app.lua", app.text)
    for name, text in pairs(modules) do write(app.folder .. "/" .. name .. ".lua", text) end
    if app.spec then write(app.folder .. "/app_spec.lua", app.spec.text) end
  end
  return apps
end

local function first_event(client, target)
  local stream = client:sse(target)
  local event = assert(stream:next(5))
  stream:close()
  return { status = stream.status, body = event.data }
end

local function try(client, text)
  local request, expected = text:match "^(.-) → (.*)$"
  local method, target, json = assert(request, text):match "^(%u+) (%S+) ?(.*)$"
  local status, part = expected:match "^(%d+) ?(.*)$"
  local options = { raise = false, body = json ~= "" and json or nil,
    headers = json ~= "" and { ["content-type"] = "application/json" } or nil }
  local res = method == "SSE" and first_event(client, target) or client:request(method, target, options)
  assert.equal(tonumber(status), res.status, text)
  assert.truthy(res.body:find(part, 1, true), text .. "\n" .. res.body)
end

local function run_spec(folder)
  local output = io.popen(("cd %s && %s 2>&1; echo exit $?"):format(folder, live.command "test app_spec.lua"))
  local text = output:read "*a"
  output:close()
  assert.truthy(text:find "exit 0\n$", text)
  assert.truthy(text:find "[1-9]%d* success", text)
end

describe("docs:", function()
  local folders = {}

  for _, page in ipairs(PAGES) do
    local items = read_page(page)
    for _, app in ipairs(read_apps(items)) do
      folders[#folders + 1] = app.folder
      describe(("%s:%d"):format(page, app.line), function()
        local client
        setup(function() client = test.app(app.folder) end)
        for _, item in ipairs(app.tries) do
          it(item.text, function() try(client, item.text) end)
        end
        if app.spec then it("passes its spec", function() run_spec(app.folder) end) end
      end)
    end
    it(page .. ": its Lua is Lua", function()
      for _, item in ipairs(items) do
        if item.language == "lua" then assert(loadstring(item.text, "=" .. page .. ":" .. item.line)) end
      end
    end)
  end

  teardown(function()
    for _, folder in ipairs(folders) do os.execute("rm -rf " .. folder) end
  end)
end)

local function each_match(pattern, fn)
  local count = 0
  for _, page in ipairs(PAGES) do
    for found in lib.read("docs/" .. page):gmatch(pattern) do
      count = count + 1
      fn(found, page)
    end
  end
  assert.truthy(count > 0)
end

describe("the names in the docs", function()
  it("of photon exist", function()
    each_match("%f[%w]photon%.([%a_]+)", function(name, page)
      local is_event = name == "gap" or name == "error" -- of channels
      assert.truthy(photon[name] ~= nil or name == "test" or is_event, page .. ": photon." .. name)
    end)
  end)
  it("of an app exist", function()
    local app = photon.app()
    each_match("%f[%w]app:([%a_]+)", function(name, page) assert.truthy(app[name], page .. ": app:" .. name) end)
  end)
  it("of links exist", function()
    local is_page = {}
    for _, page in ipairs(PAGES) do is_page[page] = true end
    each_match("%]%(([%w-]+%.md)", function(name, page) assert.truthy(is_page[name], page .. ": " .. name) end)
  end)
  it("are on the first page", function()
    local index = lib.read "docs/README.md"
    for _, page in ipairs(PAGES) do
      assert.truthy(page == "README.md" or index:find("(" .. page .. ")", 1, true), page)
    end
  end)
end)

describe("docs/settings.md", function()
  local text = lib.read "docs/settings.md"
  for _, setting in ipairs(settings.list) do
    it("has " .. setting.name .. " with its default", function()
      local default = text:match("\n| `" .. setting.name .. "` | ([^|]+) |")
      local wanted = setting.kind == "list" and "none" or tostring(setting.default)
      assert.equal(wanted, default)
    end)
  end
  it("has no others", function()
    local is_known = {}
    for _, name in ipairs(settings.names) do is_known[name] = true end
    for name in text:gmatch "\n| `([%a_]+)`" do assert.truthy(is_known[name], name) end
  end)
end)

-- Specs do not influence each other: what one file, describe or `it` has begun or changed is over for
-- the next, in whatever order they run.
local lfs = require "lfs"
local photon = require "photon"
local test = require "photon.test"
local uv = require "luv"

local folder

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "w"))
  file:write(text)
  file:close()
end

local APP = [[
local photon = require "photon"
local state = require "state"
local deep = require "lib.deep"
local app = photon.app()
counter = (counter or 0) + 1
app:get("/", function()
  state.hits = state.hits + 1
  return { hits = state.hits, secret = state.secret, loads = counter, deep = deep.name(), lazy = require("lazy").name }
end)
app:get("/shared", function() return { was = photon.shared("isolation"):incr("n") } end)
app:sse("/s", function(stream) while stream:send "x" do photon.sleep(0.001) end end)
return app
]]

-- Changes all it can, and cleans nothing up.
local SPOILS = [[
local photon = require "photon"
local test = require "photon.test"
describe("one that spoils", function()
  local client = test.app "FOLDER"
  it("changes everything", function()
    require("state").secret = "spoiled"
    client:get "/"
    client:get "/shared"
    client:sse "/s":next()
    client:stream "/s"
    string.foo = function() end
    math.huge = 1
    photon.sleep = function() end
    photon.json.encode = function() return "spoiled" end
    spoiled_global = true
    stub(os, "time").returns(5)
    test.clock.freeze(7)
    photon.spawn({ detached = true }, function() photon.await(function() end) end)
    photon.every(0.001, function() end)
    local timer = require("luv").new_timer()
    timer:start(1, 1, function() end)
    require("luv").new_fs_event():start("FOLDER", {}, function() end)
    package.loaded.lazy = "spoiled"
    package.path = "nowhere"
  end)
end)
]]

local EXPECTS = [[
local photon = require "photon"
local test = require "photon.test"
describe("one that expects", function()
  local client = test.app "FOLDER"
  it("a fresh world", function()
    assert.same({ hits = 1, secret = "fresh", loads = 1, deep = "deep", lazy = "lazy" }, client:get("/"):json())
    assert.same({ was = 1 }, client:get("/shared"):json())
    assert.is_nil(string.foo)
    assert.is_true(math.huge > 1)
    assert.is_nil(rawget(_G, "spoiled_global"))
    assert.is_nil(rawget(_G, "counter"))
    assert.equal("[1]", photon.json.encode { 1 })
    assert.truthy(os.time() > 1e9)
    local began = os.time()
    photon.sleep(0.01)
    assert.truthy(os.time() - began < 100)
    local counts = test.counts()
    assert.same({ apps = 1, exchanges = 0, handles = 0, streams = 0, subscribers = 0, tasks = 4 }, counts)
  end)
end)
]]

local function run(arguments)
  local pipe = assert(io.popen(("cd %s && /proc/%d/exe test -o TAP %s 2>&1; echo \"code $?\""):format(folder,
    uv.os_getpid(), arguments)))
  local text = pipe:read "*a"
  pipe:close()
  return tonumber(text:match "code (%d+)%s*$"), text
end

local function passes(arguments, count)
  local code, text = run(arguments)
  assert.equal(0, code, text)
  local _, passed = text:gsub("\nok ", "\n")
  if text:find "^ok " then passed = passed + 1 end
  assert.equal(count, passed, text)
end

describe("isolation", function()
  setup(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(lfs.mkdir(folder))
    assert(lfs.mkdir(folder .. "/lib"))
    write("app.lua", APP)
    write("state.lua", 'return { hits = 0, secret = "fresh" }')
    write("lazy.lua", 'return { name = "lazy" }')
    write("lib/deep.lua", 'return { name = function() return "deep" end }')
    local spoils, expects = SPOILS:gsub("FOLDER", folder), EXPECTS:gsub("FOLDER", folder)
    write("a_spec.lua", spoils)
    write("b_spec.lua", expects)
    write("ab_spec.lua", spoils .. expects)
    write("ba_spec.lua", expects .. spoils)
  end)
  teardown(function() os.execute("rm -rf '" .. folder .. "'") end)

  it("holds in every order of files", function()
    passes("a_spec.lua b_spec.lua", 2)
    passes("b_spec.lua a_spec.lua", 2)
    passes("--shuffle-files --seed=3 a_spec.lua b_spec.lua", 2)
    passes("--shuffle-files --seed=4 a_spec.lua b_spec.lua", 2)
  end)

  it("holds for each alone, and repeated", function()
    passes("a_spec.lua", 1)
    passes("b_spec.lua", 1)
    passes("--repeat=5 a_spec.lua b_spec.lua", 10)
  end)

  it("holds in every order of describes", function()
    passes("ab_spec.lua", 2)
    passes("ba_spec.lua", 2)
    passes("--shuffle --repeat=3 ab_spec.lua ba_spec.lua", 12)
  end)

  it("tells what fails", function()
    write("bad_spec.lua", 'it("fails", function() assert.equal(1, 2) end)')
    assert.equal(1, (run "bad_spec.lua"))
    write("loads_spec.lua", "this is not Lua")
    assert.equal(1, (run "loads_spec.lua"))
    assert.equal(1, (run "none_spec.lua"))
    assert.equal(2, (run "--no-such-option"))
    write("good_spec.lua", 'it("passes", function() end)')
    assert.equal(0, (run "--lua=false good_spec.lua")) -- that program would say otherwise
  end)

  it("goes on after endless recursion through C functions", function()
    write("deep_spec.lua", [[
      it("recurses", function() local function deep() string.gsub("a", "a", deep) end deep() end)
      it("follows", function() end)]])
    local code, text = run "deep_spec.lua"
    assert.equal(1, code, text)
    assert.truthy(text:find("ok %d %- follows"), text)
  end)

  it("tells the line of endless recursion, wherever it is", function()
    write("endless_spec.lua", [[
      local function deep(n)
        return 1 + deep(n + 1)
      end
      describe("in a test", function() it("recurses", function() deep(1) end) end)
      describe("before a test", function() before_each(function() deep(1) end) it("is not reached", function() end) end)
      it("follows", function() end)]])
    local code, text = run "endless_spec.lua"
    assert.equal(1, code, text)
    local _, lines = text:gsub("endless_spec.lua:2: stack overflow", "")
    assert.equal(2, lines, text)
    assert.truthy(text:find("ok %d %- follows"), text)
  end)

  it("ends in order whatever is open, also when an assertion fails in between", function()
    write("open_spec.lua", SPOILS:gsub("FOLDER", folder):gsub("package.path = ", "error 'midway' %0"))
    local code, text = run "open_spec.lua"
    assert.equal(1, code, text)
    assert.truthy(text:find("midway", 1, true), text)
    write("file_spec.lua", ([[
local test = require "photon.test"
local client = test.app "FOLDER"
local s = client:sse "/s"
require("luv").new_timer():start(1, 1, function() end)
require("luv").new_fs_event():start("FOLDER", {}, function() end)
it("stops twice", function() s:close() s:close() s:drop() end)
os.exit(3)
]]):gsub("FOLDER", folder))
    code, text = run "file_spec.lua"
    assert.equal(1, code, text)
    assert.truthy(text:find("os.exit would end the server", 1, true), text)
  end)
end)

describe("an app that is loaded by its path", function()
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(lfs.mkdir(folder))
    write("db.lua", 'return { find = function() return "real" end }')
    write("app.lua", [[
      local photon = require "photon"
      local db = require "db"
      local app = photon.app()
      app:get("/", function() return db.find() end)
      return app]])
  end)
  after_each(function() os.execute("rm -rf '" .. folder .. "'") end)

  it("gets the modules of the spec", function()
    local client = test.app(folder, { modules = { db = { find = function() return "fake" end } } })
    assert.equal("fake", client:get("/").body)
    assert.equal("real", test.app(folder):get("/").body)
  end)

  it("shares its modules with the spec", function()
    local client = test.app(folder .. "/app.lua")
    stub(require "db", "find").returns "stubbed"
    assert.equal("stubbed", client:get("/").body)
    assert.equal(require "db", client:module "db")
    local other = test.app(folder)
    assert.equal("real", other:get("/").body)
    assert.equal("stubbed", client:get("/").body)
  end)

  it("is forgotten with its scope", function()
    assert.is_nil(package.loaded.db) -- of the test before
    assert.falsy(package.path:find(folder:sub(1, 9), 1, true))
  end)

  it("may not wait while it loads, and must return an app", function()
    write("app.lua", 'require "photon".sleep(0.001)')
    assert.error_matches(function() test.app(folder) end, "while the app loads")
    write("app.lua", "return 1")
    assert.error_matches(function() test.app(folder) end, "takes an app")
    write("app.lua", "x = = 1")
    assert.truthy(select(2, pcall(test.app, folder)):find "app.lua:1: unexpected symbol")
    write("app.lua", 'require "nothing.at.all"')
    assert.error_matches(function() test.app(folder) end, "module 'nothing.at.all' not found")
    write("db.lua", 'return require "db"')
    write("app.lua", 'require "db"')
    assert.error_matches(function() test.app(folder) end, "loop or previous error loading module 'db'")
  end)
end)

describe("the end of a scope", function()
  local is_closed, timer_is_closing
  local app = photon.app()
  app:sse("/s", function(stream)
    stream:on_close(function() is_closed = true end)
    while true do
      stream:send "x"
      photon.sleep(0.001)
    end
  end)
  local client = test.app(app)
  local timer, descriptors

  local function count_descriptors()
    collectgarbage()
    local count = 0
    for _ in lfs.dir "/proc/self/fd" do count = count + 1 end
    return count
  end

  it("is given something to end", function()
    uv.new_pipe(false):close() -- libuv keeps a descriptor from its first stream on
    descriptors = count_descriptors()
    test.server "apps/hello"
    uv.new_tcp():bind("127.0.0.1", 0)
    assert.equal("x", client:sse("/s"):next().data)
    timer = uv.new_timer()
    timer:start(1, 1, function() end)
    timer_is_closing = function() return timer:is_closing() end
    photon.spawn({ detached = true }, function() photon.sleep(1000) end)
  end)

  it("ends it by the normal ways", function()
    assert.is_true(is_closed)
    assert.is_true(timer_is_closing())
    assert.equal(descriptors, count_descriptors())
    local counts = test.counts()
    assert.equal(0, counts.streams)
    assert.equal(0, counts.exchanges)
    assert.equal(0, counts.handles)
  end)
end)

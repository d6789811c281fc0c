-- --watch: however a file is saved, one reload follows, with what stands there in the end.
local lfs = require "lfs"
local live = require "spec.live"
local socket = require "spec.socket"

local APP = [[
local photon = require "photon"
local app = photon.app()
local routes = require "routes"
app:get("/", function() return routes.text end)
app:get("/part", function() return require("parts.one") end)
return app
]]

local folder, outside, server

local function put(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function write(name, text)
  put(folder .. "/" .. name, text)
end

local function routes(text)
  return ("return { text = %q }\n"):format(text)
end

local function count_reloads()
  return select(2, server:log():gsub("reloaded generation", ""))
    + select(2, server:log():gsub("reload failed", ""))
end

-- Waits until the app answers so and a reload is logged, then for a time in which another would show;
-- how many reloads there were since `before`.
local function reloads_until(text, before, target)
  socket.eventually(function() return server:get(target or "/").body == text end, function()
    return text .. " is served\n" .. server:log()
  end)
  socket.eventually(function() return count_reloads() > before end, "a reload is logged")
  socket.sleep(0.4)
  return count_reloads() - before
end

-- What is written at once is seen at once, however slow the spec is.
local function at_once(fn, ...)
  server:while_frozen(fn, ...)
end

local HELD_UP = 1.5 -- seconds; the server waits for a missing file a little longer

local styles = {
  ["in place"] = function(text) write("routes.lua", routes(text)) end,
  ["by a new file and rename"] = function(text)
    write(".routes.lua.tmp", routes(text))
    assert(os.rename(folder .. "/.routes.lua.tmp", folder .. "/routes.lua"))
  end,
  ["as vim does"] = function(text)
    write("4913", "")
    os.remove(folder .. "/4913")
    assert(os.rename(folder .. "/routes.lua", folder .. "/routes.lua~"))
    write("routes.lua", routes(text))
    os.remove(folder .. "/routes.lua~")
  end,
  ["as emacs does"] = function(text)
    write("#routes.lua#", routes(text))
    assert(lfs.link("somebody@somewhere.1", folder .. "/.#routes.lua", true))
    assert(os.rename(folder .. "/routes.lua", folder .. "/routes.lua~"))
    write("routes.lua", routes(text))
    os.remove(folder .. "/.#routes.lua")
    os.remove(folder .. "/#routes.lua#")
  end,
  ["as JetBrains' editors do"] = function(text)
    write("routes.lua___jb_tmp___", routes(text))
    assert(os.rename(folder .. "/routes.lua", folder .. "/routes.lua___jb_old___"))
    assert(os.rename(folder .. "/routes.lua___jb_tmp___", folder .. "/routes.lua"))
    os.remove(folder .. "/routes.lua___jb_old___")
  end,
  ["by sed -i"] = function(text)
    assert(os.execute(("cd '%s' && sed -i 's/\".*\"/\"%s\"/' routes.lua"):format(folder, text)) == 0)
  end,
  ["five times in a row"] = function(text)
    for i = 1, 4 do write("routes.lua", routes("not yet " .. i)) end
    write("routes.lua", routes(text))
  end,
  ["with fifty others"] = function(text)
    for i = 1, 50 do write(("parts/file%d.lua"):format(i), "return " .. i) end
    write("routes.lua", routes(text))
  end,
}

-- An app's folder, at a path where there is none.
local function make(path, text)
  assert(lfs.mkdir(path))
  assert(lfs.mkdir(path .. "/parts"))
  put(path .. "/app.lua", APP)
  put(path .. "/routes.lua", routes(text))
  put(path .. "/parts/one.lua", "return 'part'")
end

local function remove(path)
  assert(os.execute(("rm -rf '%s'"):format(path)) == 0)
end

describe("--watch", function()
  before_each(function()
    folder, outside = live.folder(), live.folder()
    remove(folder)
    make(folder, "first")
    server = live.start { app = folder, flags = "--watch --workers 2",
      env = ("LUA_PATH='%s/?.lua;;'"):format(outside) }
    assert.equal("first", server:get("/").body)
  end)

  after_each(function()
    server:stop()
    remove(folder)
    remove(folder .. ".old")
    remove(outside)
  end)

  for name, save in pairs(styles) do
    it("reloads once for a file saved " .. name, function()
      for i = 1, 3 do
        local before = count_reloads()
        at_once(save, "saved " .. i)
        assert.equal(1, reloads_until("saved " .. i, before), server:log())
      end
    end)
  end

  -- A machine that holds up the spec for longer than the server waits makes two of it: once more then.
  it("reloads once for a file that is deleted, and created later", function()
    socket.eventually(function()
      local before, began = count_reloads(), socket.now()
      os.remove(folder .. "/routes.lua")
      socket.sleep(0.3)
      at_once(write, "routes.lua", routes("later " .. before))
      local took = socket.now() - began
      local count = reloads_until("later " .. before, before)
      if took > HELD_UP then return false end
      assert.equal(1, count, server:log())
      return true
    end, "the spec is not held up")
  end)

  it("sees files in folders that are made later, and in none that are hidden", function()
    at_once(function()
      assert(lfs.mkdir(folder .. "/later"))
      write("later/one.lua", "return 'later'")
      write("app.lua", APP:gsub("parts%.one", "later.one"))
    end)
    reloads_until("later", 0, "/part")
    local before = count_reloads()
    at_once(write, "later/one.lua", "return 'changed'")
    assert.equal(1, reloads_until("changed", before, "/part"))
    before = count_reloads()
    assert(lfs.mkdir(folder .. "/.git"))
    assert(lfs.mkdir(folder .. "/node_modules"))
    for _, file in ipairs { ".git/index", ".hidden.lua", "node_modules/a.lua", "routes.lua~", ".routes.lua.swp",
                            "app.log", "data.db", "#routes.lua#", "4913", "routes.lua___jb_tmp___" } do
      write(file, "x")
    end
    socket.sleep(0.4)
    assert.equal(0, count_reloads() - before, server:log())
  end)

  it("sees a loaded file outside of the app's folder, and no other there", function()
    at_once(function()
      put(outside .. "/shared_part.lua", "return 'outside'")
      write("app.lua", APP:gsub("parts%.one", "shared_part"):gsub("return app", "require 'shared_part'\nreturn app"))
    end)
    reloads_until("outside", 0, "/part")
    local before = count_reloads()
    put(outside .. "/other.lua", "return 1")
    socket.sleep(0.4)
    assert.equal(0, count_reloads() - before)
    at_once(put, outside .. "/shared_part.lua", "return 'moved on'")
    assert.equal(1, reloads_until("moved on", before, "/part"))
  end)

  it("serves the old code while the new one is broken, and takes the next good save", function()
    for i = 1, 2 do
      local before = count_reloads()
      at_once(write, "routes.lua", "return {")
      socket.eventually(function() return count_reloads() > before end, "a reload is logged")
      assert.truthy(server:log():find("reload failed, the old code serves on: [^\n]*routes%.lua:"), server:log())
      assert.equal(i == 1 and "first" or "mended 1", server:get("/").body)
      before = count_reloads()
      at_once(write, "routes.lua", routes("mended " .. i))
      assert.equal(1, reloads_until("mended " .. i, before))
    end
  end)

  it("does not take its own log for a change", function()
    local function app(text)
      return ("local app = require('photon').app()\napp:static('/', %q)\nreturn app\n"):format(text)
    end
    server:stop()
    server = live.start { source = app "first", flags = "--watch" } -- its log lies beside its app
    assert.equal("file", lfs.attributes(server.folder .. "/log", "mode"))
    for i = 1, 2 do
      local before = count_reloads()
      at_once(put, server.folder .. "/app.lua", app("saved " .. i))
      assert.equal(1, reloads_until("saved " .. i, before))
    end
  end)

  it("does not take the log of a channel for a change", function()
    local function app(text)
      return ([[
local photon = require "photon"
local app = photon.app()
local news = photon.channel("news", { log = "news.kept" })
app:get("/", function() return %q end)
app:post("/", function() return { id = news:publish "one" } end)
return app]]):format(text)
    end
    server:stop()
    server = live.start { source = app "first", flags = "--watch" }
    assert.equal(200, server:request("POST", "/").status)
    assert.equal("file", lfs.attributes(server.folder .. "/news.kept", "mode"))
    local before = count_reloads()
    at_once(put, server.folder .. "/app.lua", app "saved")
    assert.equal(1, reloads_until("saved", before))
    assert.equal(1, count_reloads())
  end)

  it("says in the end that a file is missing", function()
    os.remove(folder .. "/routes.lua")
    assert.truthy(server:has_logged "reload failed, the old code serves on: ")
    assert.truthy(server:log():find "app%.lua:3: module 'routes' not found")
    assert.equal("first", server:get("/").body)
    write("routes.lua", routes "back")
    reloads_until("back", 0)
  end)

  it("takes code that does without a file that is missing", function()
    os.remove(folder .. "/routes.lua")
    assert.truthy(server:has_logged "reload failed")
    write("app.lua", (APP:gsub('require "routes"', '{ text = "without" }')))
    reloads_until("without", 1)
  end)

  it("says so, too, of a file outside of the app's folder, and of a folder", function()
    at_once(function()
      put(outside .. "/routes_outside.lua", routes "outside")
      assert(lfs.mkdir(folder .. "/inner"))
      write("inner/routes.lua", "return require 'routes_outside'")
      write("app.lua", (APP:gsub('require "routes"', 'require "inner.routes"')))
    end)
    reloads_until("outside", 0)
    os.remove(outside .. "/routes_outside.lua")
    assert.truthy(server:has_logged "module 'routes_outside' not found")
    put(outside .. "/routes_outside.lua", routes "there again")
    reloads_until("there again", 2)
    assert(os.rename(folder .. "/inner", folder .. "/elsewhere"))
    assert.truthy(server:has_logged "module 'inner.routes' not found")
    assert.equal("there again", server:get("/").body)
  end)

  it("sees the app's folder deleted, and created later, and all that is in it then", function()
    remove(folder)
    assert.truthy(server:has_logged "reload failed, the old code serves on: there is no app at ")
    make(folder, "created")
    reloads_until("created", 1)
    local before = count_reloads()
    at_once(write, "parts/one.lua", "return 'changed'") -- which is not loaded yet
    assert.equal(1, reloads_until("changed", before, "/part"))
  end)

  it("sees another folder in the place of the app's, and in that of one outside", function()
    local function swap(path)
      at_once(function()
        assert(os.rename(path, path .. ".old"))
        assert(os.rename(path .. ".new", path))
      end)
    end
    make(folder .. ".new", "swapped")
    swap(folder)
    reloads_until("swapped", 0)
    local before = count_reloads()
    write("app.lua", (APP:gsub('"routes"', '"library.routes"')))
    assert(lfs.mkdir(outside .. "/library"))
    put(outside .. "/library/routes.lua", routes "outside")
    reloads_until("outside", before)
    before = count_reloads()
    assert(lfs.mkdir(outside .. "/library.new"))
    put(outside .. "/library.new/routes.lua", routes "swapped, too")
    swap(outside .. "/library")
    reloads_until("swapped, too", before)
    before = count_reloads()
    at_once(put, outside .. "/library/routes.lua", routes "changed")
    assert.equal(1, reloads_until("changed", before))
  end)
end)

-- photon.offload: blocking Lua on threads of their own.
local live = require "spec.live"
local photon = require "photon"

local MODULE = "spec.offload_work"

local function error_of(...)
  local ok, message = pcall(photon.offload, ...)
  assert.is_false(ok)
  return message
end

describe("photon.offload", function()
  it("calls a function of a module with arguments, and returns what it returned", function()
    assert.equal(7, photon.offload(MODULE, "add", 3, 4))
    assert.equal(4, select("#", photon.offload(MODULE, "echo", nil, false, nil, nil)))
    assert.equal(0, select("#", photon.offload(MODULE, "echo")))
    local value = { 1, { two = "2", text = "a\0b" }, photon.null }
    assert.same({ value, "x" }, { photon.offload(MODULE, "echo", value, "x") })
  end)

  it("copies large values", function()
    local text = ("0123456789"):rep(300000)
    assert.equal(text, (photon.offload(MODULE, "echo", text)))
  end)

  it("runs in a state of its own", function()
    rawset(_G, "spec_mark", true)
    local is_same = photon.offload(MODULE, "is_same_state")
    rawset(_G, "spec_mark", nil)
    assert.is_false(is_same)
  end)

  it("keeps modules between calls", function()
    local most = 0
    for _ = 1, 20 do most = math.max(most, (photon.offload(MODULE, "count_calls"))) end
    assert.is_true(most > 1)
  end)

  it("finds modules as its caller does, whatever earlier callers found by that name", function()
    local before, folders = package.path, {}
    for _, name in ipairs { "one", "two" } do
      folders[name] = live.folder()
      local file = assert(io.open(folders[name] .. "/offload_which.lua", "w"))
      file:write(("return { name = function() return %q end }"):format(name))
      file:close()
    end
    for _, name in ipairs { "one", "two", "one" } do
      package.path = folders[name] .. "/?.lua;" .. before
      local ok, found = pcall(photon.offload, "offload_which", "name")
      package.path = before
      assert.same({ true, name }, { ok, found })
    end
    for _, folder in pairs(folders) do os.execute("rm -r " .. folder) end
  end)

  it("does not hold up other tasks, and runs calls side by side", function()
    local path = os.tmpname()
    os.remove(path)
    local waiter = photon.spawn(photon.offload, MODULE, "wait_for", path)
    assert.is_true(photon.offload(MODULE, "touch", path))
    assert.same({ true, "found" }, { waiter:join() })
    os.remove(path)
  end)

  it("takes more calls than it has threads", function()
    local tasks = {}
    for i = 1, 50 do tasks[i] = photon.spawn(photon.offload, MODULE, "add", i, i) end
    for i = 1, 50 do assert.same({ true, 2 * i }, { tasks[i]:join() }) end
  end)

  it("shares photon.shared", function()
    photon.offload(MODULE, "share", "k", { 1 })
    assert.same({ 1 }, photon.shared("offload"):get "k")
  end)

  it("raises the function's error as text", function()
    assert.equal("no luck", error_of(MODULE, "fail", "no luck"))
    assert.truthy(error_of(MODULE, "fail_here"):find "offload_work.lua:%d+: here$")
    assert.equal("string", type(error_of(MODULE, "fail_with_table")))
    assert.equal(3, photon.offload(MODULE, "add", 1, 2))
  end)

  it("says what cannot be called", function()
    assert.truthy(error_of("spec.no_such_module", "x"):find("spec.no_such_module", 1, true))
    assert.truthy(error_of(MODULE, "missing"):find("no function 'missing'", 1, true))
    assert.truthy(error_of(MODULE, "no_function"):find("no function 'no_function'", 1, true))
    assert.has_error(function() photon.offload(MODULE) end)
    assert.has_error(function() photon.offload(print, "x") end)
  end)

  it("copies plain values only", function()
    assert.truthy(error_of(MODULE, "echo", 1, { f = print }):find("value.f is a function", 1, true))
    assert.truthy(error_of(MODULE, "give_function"):find("is a function", 1, true))
  end)

  it("has no loop: nothing can wait there", function()
    assert.truthy(error_of(MODULE, "sleep"):find("photon.sleep", 1, true))
  end)

  it("of a server reads and publishes, but is told of nothing, and runs no tasks", function()
    local server = live.start{ source = [[
local photon = require "photon"
local app = photon.app()
app:get("/:name", function(req)
  local ok, why = pcall(photon.offload, "spec.offload_work", req.params.name)
  return tostring(ok) .. " " .. tostring(why)
end)
return app]] }
    for _, case in ipairs {
      { "events", "channel:events can only wait inside a task" },
      { "on_join", "channel:on_join needs the server's loop" },
      { "on_leave", "channel:on_leave needs the server's loop" },
      { "spawn", "a task needs the server's loop" },
    } do
      local said = server:get("/" .. case[1]).body
      assert.truthy(said:find("^false") and said:find("offload_work.lua:%d+") and said:find(case[2], 1, true), said)
    end
    server:stop()
  end)

  it("may use what of luv needs no loop", function()
    assert.equal("the same time", photon.offload(MODULE, "use_luv"))
  end)

  it("keeps to lua_memory with luv", function()
    local server = live.start{ flags = "--lua-memory 32MiB", source = [[
local photon = require "photon"
local app = photon.app()
app:get("/", function() return tostring(select(2, pcall(photon.offload, "spec.offload_work", "fill"))) end)
return app]] }
    assert.matches("not enough memory", server:get("/").body)
    server:stop()
  end)

  it("drops the result when the caller is cancelled", function()
    local path = os.tmpname()
    os.remove(path)
    local waiter = photon.spawn(photon.offload, MODULE, "wait_for", path)
    photon.sleep(0.02)
    waiter:cancel()
    local ok, err = waiter:join()
    assert.is_nil(ok)
    assert.equal(photon.cancelled, err)
    photon.offload(MODULE, "touch", path)
    assert.same({ nil, "timeout" }, { photon.timeout(0.05, photon.offload, MODULE, "wait_for", path .. "!") })
    photon.offload(MODULE, "touch", path .. "!")
    assert.equal(3, photon.offload(MODULE, "add", 1, 2))
    os.remove(path)
    os.remove(path .. "!")
  end)

  it("takes back calls that have not begun", function()
    local path = os.tmpname()
    os.remove(path)
    local tasks = {}
    for i = 1, 12 do tasks[i] = photon.spawn(photon.offload, MODULE, "wait_for", path) end
    photon.sleep(0.02)
    for i = 5, 12 do tasks[i]:cancel() end
    for i = 5, 12 do tasks[i]:join() end
    os.execute("touch " .. path)
    for i = 1, 4 do assert.same({ true, "found" }, { tasks[i]:join() }) end
    os.remove(path)
  end)

  it("works from a coroutine of the app's", function()
    local co = coroutine.wrap(function() return photon.offload(MODULE, "add", 1, 1) end)
    assert.equal(2, co())
  end)
end)

-- luv inside Photon: bound to the worker's loop, tamed, and abused.
local photon = require "photon"
local uv = require "luv"

local function await(fn)
  return photon.await(fn)
end
describe("luv", function()
  it("is there under both names", function()
    assert.equal(uv, require "uv")
  end)

  it("lacks what would stop, walk or leave the loop", function()
    for _, name in ipairs { "run", "stop", "walk", "loop_close", "new_thread", "thread_join", "new_work",
      "queue_work", "new_signal", "sleep", "chdir", "_loop" } do
      assert.is_nil(uv[name], name)
    end
  end)

  it("runs timers' callbacks as tasks, which may wait", function()
    assert.equal("waited", await(function(resume)
      local timer = uv.new_timer()
      timer:start(1, 0, function()
        timer:close()
        photon.sleep(0.001)
        resume "waited"
      end)
    end))
  end)

  it("calls back when a handle is closed", function()
    local timer = uv.new_timer()
    assert.equal("closed", await(function(resume)
      timer:close(function() resume "closed" end)
    end))
    assert.is_true(timer:is_closing())
    assert.has_error(function() timer:close() end)
  end)

  it("takes a callable table for a callback", function()
    assert.equal("called", await(function(resume)
      local timer = uv.new_timer()
      timer:start(0, 0, setmetatable({}, { __call = function() resume "called" end }))
      timer:close(setmetatable({}, { __call = function() resume "called" end }))
    end))
  end)

  it("works with files, with and without callback", function()
    local path = os.tmpname()
    local fd = assert(uv.fs_open(path, "w", 384))
    uv.fs_write(fd, "some text", 0)
    uv.fs_close(fd)
    local text = await(function(resume)
      uv.fs_open(path, "r", 384, function(_, opened)
        uv.fs_read(opened, 100, 0, function(_, bytes)
          uv.fs_close(opened, function() resume(bytes) end)
        end)
      end)
    end)
    assert.equal("some text", text)
    os.remove(path)
    assert.equal("ENOENT", (await(function(resume) uv.fs_stat(path, function(err) resume(err:match "^%w+") end) end)))
  end)

  it("talks over TCP", function()
    local server = uv.new_tcp()
    server:bind("127.0.0.1", 0)
    server:listen(8, function()
      local peer = uv.new_tcp()
      server:accept(peer)
      peer:read_start(function(_, bytes)
        if bytes then peer:write(bytes:upper()) else peer:close() end
      end)
    end)
    local port = server:getsockname().port
    local got = await(function(resume)
      local client = uv.new_tcp()
      client:connect("127.0.0.1", port, function()
        client:read_start(function(_, bytes)
          if not client:is_closing() then client:close() end
          resume(bytes)
        end)
        client:write "hello"
      end)
    end)
    assert.equal("HELLO", got)
    await(function(resume) server:close(resume) end)
  end)

  it("finds names and makes random bytes", function()
    assert.truthy(await(function(resume)
      uv.getaddrinfo("127.0.0.1", nil, nil, function(err, list) resume(not err and list[1].addr) end)
    end))
    assert.equal(8, #await(function(resume) uv.random(8, {}, function(_, bytes) resume(bytes) end) end))
  end)

  it("runs a program", function()
    local handle
    local code = await(function(resume)
      handle = uv.spawn("true", { args = {} }, function(status) resume(status) end)
    end)
    assert.equal(0, code)
    await(function(resume) handle:close(resume) end)
  end)

  it("raises for wrong arguments, and survives them", function()
    local timer = uv.new_timer()
    for _, call in ipairs {
      function() uv.close() end,
      function() uv.close(newproxy()) end,
      function() uv.close(newproxy(true)) end,
      function() uv.close(timer, 1) end,
      function() uv.is_active(newproxy()) end,
      function() uv.read_start(newproxy(), print) end,
      function() uv.write2(uv.new_pipe(false), "x", newproxy()) end,
      function() timer.start(newproxy(), 1, 1, print) end,
      function() timer.close(newproxy()) end,
      function() uv.new_pipe(print) end,
      function() uv.fs_open() end,
      function() uv.fs_open("x", "r", 0, 1) end,
      function() uv.timer_start(timer, "x", 0, print) end,
      function() uv.spawn() end,
    } do
      assert.has_error(call)
    end
    await(function(resume) timer:close(resume) end)
  end)

  it("lives through requests in flight and handles without a reference", function()
    for _ = 1, 50 do
      uv.new_timer():start(5, 0, function() end)
      uv.fs_stat("/", function() end)
      collectgarbage()
    end
    photon.sleep(0.02)
    collectgarbage()
  end)
end)

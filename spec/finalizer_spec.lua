-- Finalizers that raise must cost nobody anything: LuaJIT runs them in the middle of other code.
local ffi = require "ffi"
local live = require "spec.live"
local newproxy = newproxy

local function collect()
  collectgarbage()
  collectgarbage()
end

describe("a finalizer", function()
  it("of a proxy runs once, with the object", function()
    local seen = {}
    do
      local proxy = newproxy(true)
      getmetatable(proxy).__gc = function(object) seen[#seen + 1] = type(object) end
      getmetatable(proxy).__len = function() return 3 end
      assert.equal(3, #proxy)
    end
    collect()
    assert.same({ "userdata" }, seen)
  end)

  it("of a proxy's copy runs as well", function()
    local count = 0
    do
      local proxy = newproxy(true)
      getmetatable(proxy).__gc = function() count = count + 1 end
      assert.equal(getmetatable(proxy), getmetatable(newproxy(proxy)))
    end
    collect()
    assert.equal(2, count)
  end)

  it("set by ffi.gc runs, and can be taken back", function()
    local count = 0
    local function finish() count = count + 1 end
    do
      local kept = ffi.gc(ffi.new "int[1]", finish)
      ffi.gc(ffi.gc(ffi.new "int[1]", finish), nil)
      assert.equal("cdata", type(kept))
    end
    collect()
    assert.equal(1, count)
  end)

  it("of a metatype runs", function()
    local count = 0
    local ctype = ffi.metatype(ffi.typeof "struct { int spec_finalizer; }", { __gc = function() count = count + 1 end })
    assert.equal(0, ctype().spec_finalizer)
    collect()
    assert.equal(1, count)
  end)

  it("goes with its object", function()
    local alive = setmetatable({}, { __mode = "k" })
    do
      local count = 0
      local function finish() count = count + 1 end
      alive[finish] = true
      ffi.gc(ffi.new "int[1]", finish)
      getmetatable(newproxy(true)).__gc = finish
    end
    collect()
    collect()
    assert.is_nil(next(alive))
  end)

  it("may be a C function", function()
    ffi.gc(ffi.cast("void *", ffi.NULL), nil)
    if not pcall(function() return ffi.C.free end) then ffi.cdef "void free(void *);" end
    ffi.gc(ffi.cast("void *", nil), ffi.C.free)
    collect()
  end)
end)

local APP = [[
local photon = require "photon"
local ffi = require "ffi"
local uv = require "luv"
local app = photon.app()
local function litter()
  for _ = 1, 100 do
    getmetatable(newproxy(true)).__gc = function() error "in a proxy" end
    ffi.gc(ffi.new "int[1]", function() error "in a cdata" end)
  end
end
app:on_start(function()
  uv.new_timer():start(1, 1, litter)
end)
app:get("/", function()
  litter()
  local n = 0
  for i = 1, 2e5 do n = n + #tostring(i) end
  return { n = n }
end)
return app
]]

-- What is left of a VM when it closes: handles of things that have ended.
local LAST = [[
local photon = require "photon"
local app = photon.app()
local channel = photon.channel("last", { replay = 5 })
local task, resume, read, reader, stream, request
app:sse("/stream", function(st, req)
  stream, request = st, req
  task = photon.spawn({ detached = true }, photon.sleep, 1000)
  photon.spawn({ detached = true }, photon.await, function(fn) resume = fn end)
  read, reader = channel:events()
  st:send "here"
  photon.sleep(1)
end)
local function last()
  local uses = {
    function() task:cancel() task:join() end, function() resume(1) end, function() read(reader) end,
    function() stream:send "x" end, function() stream:on_close(print) end, function() return request.path end,
    function() channel:publish "last" end, function() channel:on_join(print) end,
    function() photon.spawn(print) end, function() photon.after(1, print) end,
    function() photon.offload("string", "len", "x") end, function() photon.sleep(0) end,
  }
  for round = 1, 2 do
    for i, use in ipairs(uses) do
      local ok, why = pcall(use)
      if i > 7 and ok then photon.log.error("use " .. i .. " was not refused") end
    end
  end
  photon.log.info("the last finalizer")
end
KEPT = newproxy(true)
getmetatable(KEPT).__gc = last
return app
]]

describe("the finalizers of a VM that closes", function()
  it("use what has ended without harm", function()
    local server = live.start{ source = LAST, flags = "--workers 1" }
    local client = server:connect()
    client:send "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"
    assert.is_true(client:comes "here")
    client:close()
    assert.is_true(server:reload())
    assert.is_true(server:has_logged "the last finalizer")
    server:signal "TERM"
    assert.equal(0, server:wait())
    assert.is_falsy(server:log():find("was not refused", 1, true), server:log())
  end)
end)

describe("finalizers that raise", function()
  it("cost neither the process nor anybody else's request", function()
    local server = live.start{ source = APP, flags = "--log off" }
    for _ = 1, 40 do
      local res = server:get "/"
      assert.equal(200, res.status)
      assert.equal('{"n":1088895}', res.body)
    end
    server:signal "TERM"
    assert.equal(0, server:wait())
  end)

  it("are logged", function()
    local server = live.start{ source = APP }
    server:get "/"
    assert.is_true(server:has_logged "in a proxy")
    assert.is_true(server:has_logged "in a cdata")
    server:stop()
  end)
end)

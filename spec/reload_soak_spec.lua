-- Reloads under load and in number. PHOTON_SOAK=1 makes it long: a thousand reloads.
local live = require "spec.live"
local socket = require "spec.socket"

local IS_LONG = os.getenv "PHOTON_SOAK" ~= nil

-- Active luv handles keep their generation alive, until there are more than max_generations.
local HANDLES = [[
app:on_start(function()
  local uv = require "luv"
  uv.new_timer():start(1, 1, function() end)
  local server = uv.new_tcp()
  server:bind("127.0.0.1", 0)
  server:listen(8, function() end)
end)
]]

local function source(generation, extra)
  return ([[
local photon = require "photon"
local app = photon.app()
local text = ("%d "):rep(200)
app:get("/lua", function() return text end)
app:static("/", text)
app:metrics("/metrics")
app:sse("/ticks", function(stream)
  while stream:send(photon.shared("tick"):get "n" or 0) do photon.sleep(0.05) end
end)
app:post("/tick", function() photon.shared("tick"):incr("n", 1, { init = 0 }) end)
app:on_start(function()
  photon.every(0.01, function() end)
end)
%s
return app
]]):format(generation, extra or "")
end

-- What memory may differ by, in kB: much less than the VMs of 80 generations. Sanitizers take some
-- for every allocation's place and every thread.
local ROOM = (os.getenv "PHOTON_SAN" or "") == "" and 2048 or 8192

-- AddressSanitizer keeps what is freed for a while; where memory is looked at it must not.
local NO_QUARANTINE = '"ASAN_OPTIONS=${ASAN_OPTIONS-}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"'

describe("reloads in number", function()
  local server, generation

  before_each(function()
    generation = 1
    server = live.start { source = source(1), flags = "--workers 2", env = NO_QUARANTINE }
  end)
  after_each(function() server:stop() end)

  local function reload(extra)
    generation = generation + 1
    local file = assert(io.open(server.folder .. "/next.lua", "w"))
    file:write(source(generation, extra))
    file:close()
    assert(os.rename(server.folder .. "/next.lua", server.folder .. "/app.lua"))
    local output = io.popen(live.command("reload " .. server.folder .. "/app.lua 2>&1; echo exit $?"))
    local text = output:read "*a"
    output:close()
    assert.equal("exit 0", text:match "exit %d+", text)
    assert.is_truthy(text:find("reloaded generation " .. generation .. " ", 1, true), text)
    local _, lines = text:gsub("\n", "")
    assert.equal(2, lines, text) -- one report
  end

  local function memory()
    local text = assert(io.open("/proc/" .. server.pid .. "/smaps_rollup")):read "*a"
    return tonumber(text:match "Rss:%s+(%d+)")
  end

  -- Old generations go as soon as nothing of theirs runs.
  local function has_generations(count)
    local limit = socket.now() + 5
    while not server:get("/metrics").body:find("\nphoton_generations " .. count .. "\n", 1, true) do
      if socket.now() > limit then return false end
      socket.sleep(0.02)
    end
    return true
  end

  local function has_wrk()
    return os.execute "command -v wrk >/dev/null" == 0
  end

  for _, target in ipairs { "/", "/lua" } do
    it("disturb nobody who asks for " .. target, function()
      if not has_wrk() then return pending "wrk is not installed" end
      local wrk = io.popen(("wrk -t 2 -c 64 -d %ds -s spec/reload_soak.lua http://127.0.0.1:%d%s 2>&1"):format(
        IS_LONG and 20 or 2, server.port, target))
      local limit = socket.now() + (IS_LONG and 19 or 1.6)
      socket.sleep(0.2)
      while socket.now() < limit do
        reload()
        socket.sleep(0.05)
      end
      local report = wrk:read "*a"
      wrk:close()
      assert.is_nil(report:find "Socket errors", report)
      assert.is_nil(report:find "Non%-2xx", report)
      assert.equal(0, tonumber(report:match "mixed: (%d+)"), report)
      assert.is_true(tonumber(report:match "generations: (%d+)") > 1, report)
      assert.is_true(has_generations(1))
    end)
  end

  it("leave every stream running", function()
    local clients = {}
    for i = 1, 200 do
      clients[i] = server:connect()
      assert.is_true(clients[i]:send "GET /ticks HTTP/1.1\r\nhost: a\r\n\r\n")
    end
    for _, client in ipairs(clients) do
      assert.is_true(client:receive_until(function(text) return text:find("data: 0", 1, true) end))
    end
    for _ = 1, IS_LONG and 100 or 30 do reload() end
    server:request("POST", "/tick")
    for _, client in ipairs(clients) do
      assert.is_true(client:receive_until(function(text) return text:find("data: 1", 1, true) end))
      client:close()
    end
    assert.is_true(has_generations(1))
  end)

  it("leave no memory behind", function()
    local few, many = IS_LONG and 200 or 40, IS_LONG and 1000 or 120
    for _ = 1, few do reload() end
    assert.is_true(has_generations(1))
    local before = memory()
    for _ = few + 1, many do reload() end
    assert.is_true(has_generations(1))
    local after = memory()
    assert.is_true(after < before + ROOM, ("%d kB after %d reloads, %d kB after %d"):format(before, few, after, many))
  end)

  it("are bounded where luv handles stay open", function()
    local before
    for i = 1, IS_LONG and 300 or 60 do
      reload(HANDLES)
      if i == 30 then before = memory() end
    end
    socket.sleep(0.1)
    local alive = tonumber(server:get("/metrics").body:match "\nphoton_generations (%d+)")
    assert.is_true(alive <= 9, alive .. " generations are alive")
    assert.is_true(memory() < before + ROOM + 1024, ("%d kB before, %d kB after"):format(before, memory()))
  end)

  it("end with a clean stop", function()
    for _ = 1, 5 do reload(HANDLES) end
    server:signal "TERM"
    assert.equal(0, server:wait())
  end)
end)

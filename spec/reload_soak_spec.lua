-- Reloads under load and in number. PHOTON_SOAK=1 makes it long: a thousand reloads.
local build = require "spec.build"
local ffi = require "ffi"
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
local ROOM = build.is_sanitized and 8192 or 2048

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
    server:replace(source(generation, extra))
    local is_done, text = server:reload(server.folder .. "/app.lua")
    assert.is_true(is_done, text)
    assert.is_truthy(text:find("reloaded generation " .. generation .. " ", 1, true), text)
    local _, lines = text:gsub("\n", "")
    assert.equal(1, lines, text) -- one report
  end

  local function memory()
    local text = assert(io.open("/proc/" .. server.pid .. "/smaps_rollup")):read "*a"
    return tonumber(text:match "Rss:%s+(%d+)")
  end

  -- Old generations go as soon as nothing of theirs runs.
  local function forget_old()
    server:becomes("photon_generations", 1)
  end

  -- Waits until so many more requests were answered on a target.
  local function answer(target, count)
    local name = ('photon_requests_total{method="GET",route="%s",status="2xx"}'):format(target)
    local before = server:metric(name) or 0
    socket.eventually(function() return (server:metric(name) or 0) >= before + count end, "requests are answered")
  end

  local function has_wrk()
    return os.execute "command -v wrk >/dev/null" == 0
  end

  for _, target in ipairs { "/", "/lua" } do
    it("disturb nobody who asks for " .. target, function()
      if not has_wrk() then return pending "wrk is not installed" end
      local command = "exec wrk -t 2 -c 64 -d 3600s --timeout 30s -s spec/reload_soak.lua http://127.0.0.1:%d%s 2>&1"
      local wrk = io.popen(("echo $$; " .. command):format(server.port, target))
      local pid = tonumber(wrk:read "*l")
      local ok, message = pcall(function()
        for _ = 1, IS_LONG and 300 or 20 do
          answer(target, 200)
          reload()
        end
        answer(target, 200)
      end)
      ffi.C.spec_kill(pid, live.signals.INT) -- wrk ends with its report
      local report = wrk:read "*a"
      wrk:close()
      assert.is_true(ok, message)
      assert.is_nil(report:find "Socket errors", report)
      assert.is_nil(report:find "Non%-2xx", report)
      assert.equal(0, tonumber(report:match "mixed: (%d+)"), report)
      assert.is_true(tonumber(report:match "generations: (%d+)") > 1, report)
      forget_old()
    end)
  end

  it("leave every stream running", function()
    local clients = {}
    for i = 1, 200 do
      clients[i] = server:connect()
      assert.is_true(clients[i]:send "GET /ticks HTTP/1.1\r\nhost: a\r\n\r\n")
    end
    for _, client in ipairs(clients) do assert.is_true(client:comes "data: 0") end
    for _ = 1, IS_LONG and 100 or 30 do reload() end
    server:request("POST", "/tick")
    for _, client in ipairs(clients) do
      assert.is_true(client:comes "data: 1")
      client:close()
    end
    forget_old()
  end)

  it("leave no memory behind", function()
    local few, many = IS_LONG and 200 or 40, IS_LONG and 1000 or 120
    for _ = 1, few do reload() end
    forget_old()
    local before = memory()
    for _ = few + 1, many do reload() end
    forget_old()
    local after = memory()
    assert.is_true(after < before + ROOM, ("%d kB after %d reloads, %d kB after %d"):format(before, few, after, many))
  end)

  it("are bounded where luv handles stay open", function()
    local before
    for i = 1, IS_LONG and 300 or 60 do
      reload(HANDLES)
      if i == 30 then before = memory() end
    end
    socket.eventually(function() return server:metric "photon_generations" <= 9 end, "generations end")
    assert.is_true(memory() < before + ROOM + 1024, ("%d kB before, %d kB after"):format(before, memory()))
  end)

  it("end with a clean stop", function()
    for _ = 1, 5 do reload(HANDLES) end
    server:signal "TERM"
    assert.equal(0, server:wait())
  end)
end)

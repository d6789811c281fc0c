-- A crowd that connects, drops, vanishes, stalls and resumes at random while workers publish and the
-- app is reloaded. PHOTON_SOAK=600 makes it ten minutes long, PHOTON_SEED repeats a run's choices.
local build = require "spec.build"
local Soak = require "spec.soak.soak"

local SECONDS = tonumber(os.getenv "PHOTON_SOAK") or 4
local SEED = tonumber(os.getenv "PHOTON_SEED") or os.time()

-- What memory may differ by, in kB, when a crowd has gone for the second time.
local RSS = build.is_sanitized and 32768 or 8192
local HEAP = 2048

-- AddressSanitizer keeps what is freed for a while; where memory is looked at it must not.
local NO_QUARANTINE = '"ASAN_OPTIONS=${ASAN_OPTIONS-}:quarantine_size_mb=0:thread_local_quarantine_size_kb=0"'

local function report(soak, first, last)
  if not os.getenv "PHOTON_SOAK" then return end
  print(("seed %d: %d events, %d gaps, %d requests, %d reloads; %d kB resident, then %d; %d kB of Lua, then %d"):format(
    SEED, soak.events, soak.gaps, soak:get "begun", soak.generation - 1, first.rss, last.rss, first.heap, last.heap))
end

describe("a crowd", function()
  local soak

  after_each(function() soak:stop() end)

  it("gets every event once, and leaves nothing behind", function()
    math.randomseed(SEED)
    soak = Soak.start { workers = 3, env = NO_QUARANTINE }
    soak:crowd(60)
    local ok, problem = pcall(function()
      soak:run(SECONDS / 3)
      local first = soak:quiesce()
      soak:run(SECONDS * 2 / 3)
      local last = soak:quiesce()
      report(soak, first, last)
      assert(soak.events > 0 and soak.gaps > 0)
      assert(last.rss < first.rss + RSS, ("%d kB resident first, %d kB later"):format(first.rss, last.rss))
      assert(last.heap < first.heap + HEAP, ("%d kB of Lua first, %d kB later"):format(first.heap, last.heap))
    end)
    local log = soak.server:log()
    assert.is_true(ok, ("seed %d: %s\n%s"):format(SEED, tostring(problem), log:sub(-3000)))
    for line in log:gmatch "[^\n]*ERROR[^\n]*" do error(("seed %d: %s"):format(SEED, line), 0) end
  end)
end)

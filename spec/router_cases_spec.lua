-- Tables of routes and what must match, over the wire. The cases are third-party data: they are run
-- from where they lie, when they are there.
local conformance = require "spec.conformance.server"
local live = require "spec.live"
local raw = require "spec.raw"

local CASES = os.getenv "PHOTON_CASES" or "../shared/cases"

-- Here a literal gives way to a parameter when the rest of the path does not fit (docs/routes.md).
local CONTESTED = { ["gin-wild-08"] = true }

local function sets_of(cases)
  local sets, seen = {}, {}
  for _, case in ipairs(cases) do
    if case.setup and not seen[case.setup] then
      seen[case.setup] = true
      sets[#sets + 1] = case.setup
    end
  end
  return sets
end

-- `photon check` of an app that registers the patterns: its exit status and what it says.
local function check_app(patterns)
  local folder = live.folder()
  local file = assert(io.open(folder .. "/app.lua", "w"))
  file:write 'local app = require("photon").app()\n'
  for _, pattern in ipairs(patterns) do file:write(("app:get(%q, function() end)\n"):format(pattern)) end
  file:write "return app\n"
  file:close()
  local output = io.popen(live.command(("check %s/app.lua 2>&1; echo exit $?; rm -r %s"):format(folder, folder)))
  local text = output:read "*a"
  output:close()
  return tonumber(text:match "exit (%d+)"), text
end

local function describe_sets(cases)
  for _, set in ipairs(sets_of(cases)) do
    describe(set, function()
      local env = ("ROUTES=%s/router_sets.json ROUTE_SET=%s"):format(CASES, set)
      conformance.describe(getfenv(1), CASES .. "/router.jsonl", env,
        function(case) return case.setup == set and not CONTESTED[case.id] end)
    end)
  end
end

describe("router cases:", function()
  local cases = raw.read(CASES .. "/router.jsonl")
  if not cases then
    pending "are not here"
    return
  end
  describe_sets(cases)
  for _, case in ipairs(cases) do
    if case.register then
      it(case.id, function()
        local status, text = check_app(case.register)
        if case.expect.register_error == "either" then return assert.truthy(status == 0 or status == 1, text) end
        assert.equal(case.expect.register_error and 1 or 0, status, text)
      end)
    end
  end
end)

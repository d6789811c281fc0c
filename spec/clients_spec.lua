-- Real clients of event streams receive what was sent: type, data and last event id of every event,
-- for each case of spec/cases/sse_encode.jsonl that is one for the stream API.
local browser = require "spec.browser"
local cjson = require "cjson"
local lib = require "spec.lib"
local live = require "spec.live"
local raw = require "spec.raw"
local socket = require "spec.socket"
local sse = require "photon.sse"

local CASES = "spec/cases/sse_encode.jsonl"
local PACKAGES = { "eventsource", "eventsource-parser" }
local VERSIONS = "eventsource@4 eventsource-parser@3"
local NODE_MAJOR = 20
local INSTALL_SECONDS = 4

-- Both packages give an event the id of its own block only, where the standard has the last one go on.
local FORGOTTEN = { ["enc-no-data"] = { { type = "message", data = "1", id = "" } } }

local function capture(command)
  local pipe = assert(io.popen(command))
  local text = pipe:read "*a"
  pipe:close()
  return text
end

local function has(program)
  return capture(("command -v %s"):format(program)) ~= ""
end

-- Waits until a process is gone (or waits to be reaped) and writes no more files.
local function await_end(pid)
  socket.eventually(function()
    local file = io.open(("/proc/%d/cmdline"):format(pid))
    local text = file and file:read "*a" or ""
    if file then file:close() end
    return text == ""
  end, "the browser ends")
end

local function show(events)
  local shown = {}
  for i, event in ipairs(events) do shown[i] = ("%s %q id %q"):format(event.type, event.data, event.id) end
  return table.concat(shown, "; ")
end

local function is_wanted(case, events)
  for _, outcome in ipairs(case.expect.any_of or { case.expect }) do
    if show(outcome.sse[1].events) == show(events) then return true end
  end
  return false
end

-- Checks what a client received: a list of events for each case.
local function check(cases, received, exceptions)
  local wrong = {}
  for i, case in ipairs(cases) do
    local events, exception = received[i], exceptions and exceptions[case.id]
    local is_right = events and (is_wanted(case, events) or exception and show(exception) == show(events))
    if not is_right then wrong[#wrong + 1] = case.id .. ": " .. (events and show(events) or "nothing") end
  end
  assert.same({}, wrong)
  assert.equal(#cases, #received)
end

-- Installs the packages into a folder; nil and why when they cannot be had.
local function install(folder)
  if not has "node" or not has "npm" then return nil, "node and npm are not installed" end
  local major = tonumber(capture("node --version 2>/dev/null"):match "^v(%d+)")
  if not major or major < NODE_MAJOR then return nil, "node is older than " .. NODE_MAJOR end
  capture(("timeout %d npm install --no-save --ignore-scripts --no-audit --no-fund --prefer-offline "
    .. "--fetch-retries=0 --prefix %s %s 2>&1"):format(INSTALL_SECONDS, folder, VERSIONS))
  for _, name in ipairs(PACKAGES) do
    local file = io.open(("%s/node_modules/%s/package.json"):format(folder, name))
    if not file then return nil, "npm could not install " .. name .. ": no registry answers" end
    file:close()
  end
  return true
end

describe("what was sent is received", function()
  local all = raw.read(CASES)
  if not all then
    pending(CASES .. " is not here")
    return
  end
  local cases = {}
  for _, case in ipairs(all) do
    if case.api then cases[#cases + 1] = case end
  end

  local server, folder, origin
  setup(function()
    server = live.start { app = "spec/clients" }
    folder = live.folder()
    origin = "http://127.0.0.1:" .. server.port
  end)
  teardown(function()
    server:stop()
    os.execute("rm -rf " .. folder)
  end)

  it("of enough cases", function() assert.truthy(#cases > 30) end)

  it("by curl", function()
    if not has "curl" then return pending "curl is not installed" end
    local failed = capture(("curl -sS --fail --noproxy '*' --max-time %d -o '%s/#1' '%s/case/[0-%d]' 2>&1"):format(
      socket.patience, folder, origin, #cases - 1))
    assert.equal("", failed)
    local received = {}
    for i in ipairs(cases) do
      local events = {}
      for j, event in ipairs(sse.parse(lib.read(("%s/%d"):format(folder, i - 1)))) do
        events[j] = { type = event.event, data = event.data, id = event.id }
      end
      assert.equal("end-of-case", table.remove(events).type)
      received[i] = events
    end
    check(cases, received)
  end)

  local is_installed, problem
  for _, name in ipairs(PACKAGES) do
    it("by the package " .. name, function()
      if is_installed == nil then
        is_installed, problem = install(folder)
        is_installed = is_installed or false
      end
      if not is_installed then return pending(problem) end
      local log = folder .. "/node.log"
      local output = capture(("timeout %d node spec/clients/packages.mjs %s %s %s 2>%s"):format(
        socket.patience, folder, name, origin, log))
      assert.truthy(output ~= "", lib.read(log))
      check(cases, cjson.decode(output), FORGOTTEN)
    end)
  end

  it("by EventSource of a browser", function()
    if not browser.is_there() then return pending "chromium is not installed" end
    local pid = browser.open(origin .. "/watch", folder .. "/browser")
    local is_done, report = pcall(browser.wait_for_report, server, "/report")
    browser.close(pid)
    await_end(pid)
    assert.truthy(is_done, report)
    assert.is_nil(report.error)
    check(cases, report)
  end)
end)

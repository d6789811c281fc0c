-- Clients that go while their handlers wait, in every way to wait: what was cancelled does nothing
-- more, what must run does so once, and nothing is left.
local server = require "spec.cancellation.server"

local WAITS = { "sleep", "join", "timeout", "coroutine", "events", "publish", "offload", "await" }
local TASKS = 8 -- of each request: its own, and seven that it spawns

local pass = 0

-- Opens a client of each kind that may go in that way.
local function crowd(way)
  local list, opened = {}, { begun = 0, stream = 0, await = 0, detached = 0, subscriber = 0 }
  local function open(request, ...)
    local s = server.live:connect()
    assert.is_true(s:send(request:format(pass) .. "\r\nhost: a\r\n\r\n"))
    list[#list + 1] = s
    for _, name in ipairs { ... } do opened[name] = opened[name] + 1 end
  end
  for _, wait in ipairs(WAITS) do
    open("GET /stream/" .. wait .. " HTTP/1.1", "begun", "stream", wait == "await" and "await" or nil)
    -- A plain reply is made for who has only said that no more will be sent.
    if way == "reset" then open("GET /plain/" .. wait .. " HTTP/1.1", "begun", wait == "await" and "await" or nil) end
  end
  if way == "reset" then
    open("POST /body HTTP/1.1\r\ncontent-length: 10", "begun")
  end
  open("GET /full HTTP/1.1", "begun", "stream")
  open("GET /flush HTTP/1.1", "begun", "stream")
  open("GET /detached HTTP/1.1", "detached")
  open("GET /subscribe HTTP/1.1", "subscriber")
  open("GET /admit HTTP/1.1", "subscriber")
  open("GET /answers/%d HTTP/1.1", "subscriber")
  open("GET /answers/%d HTTP/1.1", "subscriber")
  return list, opened
end

local COUNTS = { "begun", "closed", "closed_late", "begun_tasks", "deferred", "detached", "detached_over", "undone",
  "stream_closed", "begun_detached", "detached_closed", "detached_child", "closed_after", "admit_closed", "answered",
  "survived" }

-- All of them come, `meanwhile` happens, and they go.
local function leave(way, meanwhile)
  pass = pass + 1
  for _, name in ipairs(COUNTS) do server.set(name, 0) end
  server.set("release", 0)
  local list, opened = crowd(way)
  server.wait_count("begun", opened.begun)
  server.wait_count("begun_tasks", opened.begun * TASKS)
  server.wait_count("begun_detached", opened.detached)
  server.live:becomes("photon_channel_subscribers", opened.subscriber)
  if meanwhile then meanwhile() end
  server.ways[way](list)
  server.wait_count("closed", opened.begun)
  server.wait_count("closed_late", opened.begun)
  server.wait_count("deferred", opened.begun * TASKS)
  server.wait_count("undone", opened.await)
  server.wait_count("stream_closed", opened.stream)
  server.wait_count("detached_closed", opened.detached)
  server.wait_count("closed_after", opened.detached)
  server.wait_count("admit_closed", 1)
  return opened
end

local function check_end(opened)
  server.set("release", 1)
  server.wait_count("detached_over", opened.begun + opened.detached)
  server.wait_count("detached_child", opened.detached)
  server.wait_count("answered", 1)
  server.wait_empty()
  for name, wanted in pairs { closed = opened.begun, deferred = opened.begun * TASKS, survived = 0 } do
    assert.equal(wanted, server.count(name), name)
  end
  assert.equal("0", server.live:get("/members").body)
end

local function reload()
  local before = server.live:metric "photon_reloads_total"
  server.live:signal "HUP"
  server.live:becomes("photon_reloads_total", before + 1)
end

describe("a client that goes while its handler waits", function()
  before_each(function() server.start() end)
  after_each(function()
    server.stop()
    for line in server.live:log():gmatch "[^\n]+" do
      assert.is_truthy(line:find(" info ", 1, true) or line:find("on purpose", 1, true) or line:find "^\t"
        or line:find "^stack", line)
    end
  end)

  for way in pairs(server.ways) do
    it("cancels what is its own, once: " .. way, function()
      for _ = 1, 3 do
        local opened = leave(way)
        -- What is detached, and the answer, wait for their release.
        server.wait_empty(opened.begun + 2 * opened.detached + 1)
        assert.equal(0, server.count "detached")
        check_end(opened)
        assert.equal(opened.begun + opened.detached, server.count "detached")
      end
    end)

    it("cancels what is its own, once, after a reload: " .. way, function()
      for _ = 1, 3 do
        check_end(leave(way, reload))
        server.live:becomes("photon_generations", 1) -- luv's handles would keep one alive
      end
    end)
  end

  it("runs on_close to its end where too many reloads have ended the stream", function()
    server.stop()
    server.start("PHOTON_MAX_GENERATIONS=2", 1)
    local list = {}
    for i = 1, 3 do
      list[i] = server.live:connect()
      list[i]:send "GET /stream/sleep HTTP/1.1\r\nhost: a\r\n\r\n"
      server.wait_count("begun_tasks", TASKS * i)
      if i < 3 then reload() end
    end
    assert.is_true(list[1]:comes "\r\n0\r\n\r\n")
    server.live:becomes("photon_generations", 2)
    assert.equal(1, server.count "closed_late")
    assert.equal(TASKS, server.count "deferred")
    server.ways.close(list)
    server.wait_count("closed_late", 3)
  end)

  it("leaves nothing in the Lua states", function()
    local first
    for i = 1, 12 do
      for way in pairs(server.ways) do check_end(leave(way)) end
      if i == 4 then first = server.collect() end
    end
    local last = server.collect()
    assert.is_true(last < first + 65536, ("%d bytes first, %d later"):format(first, last))
  end)
end)

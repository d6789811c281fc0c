-- What the kernel is asked for a request: one read and one write, and no entry into Lua where C answers.
-- And for a burst of events: one write.
local build = require "spec.build"
local live = require "spec.live"

local REQUESTS, BURSTS, ROUNDS = 1000, 1000, 20 -- a few calls belong to the start and to the connection itself
local READS = { read = true, readv = true, recvfrom = true, recvmsg = true }
local WRITES = { write = true, writev = true, sendto = true, sendmsg = true }

local SOURCE = [[
local photon = require "photon"
local app = photon.app()
app:static("/static", "Hello\n")
app:get("/users/:id", function(req) return { id = req.params.id } end)
app:metrics("/metrics")
local function burst(stream)
  for i = 1, 100 do stream:send("event number " .. i) end
end
app:sse("/burst", burst)
app:sse("/bursts", function(stream)
  for _ = 1, 1000 do
    burst(stream)
    photon.sleep(0.001)
  end
end)
return app
]]

-- Why the calls cannot be counted, nil when they can.
local function why_not()
  if build.is_hostile then return "a hostile build writes byte by byte" end
  if os.execute "command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null" ~= 0 then
    return "strace is not installed, or may not trace"
  end
end

-- Asks for a path again and again over one connection.
local function ask(server, target)
  local client = server:connect()
  for i = 1, REQUESTS do
    assert.is_true(client:send("GET " .. target .. " HTTP/1.1\r\nhost: a\r\n\r\n"))
    assert.is_true(client:receive_until(function(text) return text:find("\r\n\r\n.+") end))
    assert.is_truthy(client.received:find("200 OK", 1, true), i)
    client.received = ""
  end
  client:close()
end

-- The calls of the worker's thread alone, by name.
local function count_calls(folder)
  local calls = {}
  for line in io.lines(folder .. "/calls") do
    local thread, name = line:match "^(%d+)%s+([%w_]+)%("
    if thread then
      calls[thread] = calls[thread] or { reads = 0, writes = 0, all = 0 }
      calls[thread].all = calls[thread].all + 1
      if READS[name] then calls[thread].reads = calls[thread].reads + 1 end
      if WRITES[name] then calls[thread].writes = calls[thread].writes + 1 end
    end
  end
  local most = { reads = 0, writes = 0, all = 0 }
  for _, one in pairs(calls) do
    if one.writes > most.writes then most = one end
  end
  return most
end

-- Reads a stream to its end, and tells how many events it had.
local function read_stream(client, target)
  assert.is_true(client:send("GET " .. target .. " HTTP/1.1\r\nhost: a\r\n\r\n"))
  assert.is_true(client:comes "\r\n0\r\n\r\n")
  local text = client.received
  client.received = ""
  return select(2, text:gsub("data: event number %d+\n\n", ""))
end

-- Runs `use` with a server that is traced, and tells what its worker has called.
local function trace(use)
  local folder = live.folder()
  local server = live.start {
    source = SOURCE,
    before = "strace -f -qq -o " .. folder .. "/calls ",
    env = '"ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0"', -- looking for leaks is tracing, too
  }
  use(server)
  server:stop()
  local calls = count_calls(folder)
  os.execute("rm -rf " .. folder)
  return calls
end

local function is_about(count, wanted)
  assert.is_true(count >= wanted and count <= wanted + ROUNDS, count .. " calls, not " .. wanted)
end

describe("the system calls of a request", function()
  for name, target in pairs { ["static route"] = "/static", ["plain Lua route"] = "/users/7" } do
    it("are one read and one write on a " .. name, function()
      if why_not() then return pending(why_not()) end
      local calls = trace(function(server) ask(server, target) end)
      is_about(calls.reads, REQUESTS)
      is_about(calls.writes, REQUESTS)
    end)
  end

  it("never enter Lua on a static route", function()
    local server = live.start { source = SOURCE }
    local function entries()
      return tonumber(server:get("/metrics").body:match "\nphoton_lua_entries_total (%d+)")
    end
    local before = entries()
    ask(server, "/static")
    assert.equal(before, entries())
    server:get "/users/7"
    assert.equal(before + 1, entries())
    server:stop()
  end)
end)

-- A burst that is interrupted for a millisecond, by the machine's other work, leaves in two parts.
local function is_one_each(count, bursts)
  assert.is_true(count >= bursts and count < 1.5 * bursts, count .. " calls for " .. bursts .. " bursts")
end

describe("the system calls of a stream", function()
  it("are one read and one write for a request that one burst answers", function()
    if why_not() then return pending(why_not()) end
    local calls = trace(function(server)
      local client = server:connect()
      for _ = 1, REQUESTS do assert.equal(100, read_stream(client, "/burst")) end
      client:close()
    end)
    is_about(calls.reads, REQUESTS)
    is_one_each(calls.writes, REQUESTS)
  end)

  it("are one write and one wait for each burst of a long one", function()
    if why_not() then return pending(why_not()) end
    local calls = trace(function(server)
      local client = server:connect()
      assert.equal(100 * BURSTS, read_stream(client, "/bursts"))
      client:close()
    end)
    assert.is_true(calls.reads <= ROUNDS, calls.reads .. " reads")
    is_one_each(calls.writes, BURSTS)
    assert.is_true(calls.all < 2.5 * BURSTS, calls.all .. " calls for " .. BURSTS .. " bursts")
  end)
end)

-- What the kernel is asked for a request: one read and one write, and no entry into Lua where C answers.
local live = require "spec.live"

local REQUESTS, ROUNDS = 1000, 20 -- a few calls belong to the start and to the connection itself
local READS = { read = true, readv = true, recvfrom = true, recvmsg = true }
local WRITES = { write = true, writev = true, sendto = true, sendmsg = true }

local SOURCE = [[
local photon = require "photon"
local app = photon.app()
app:static("/static", "Hello\n")
app:get("/users/:id", function(req) return { id = req.params.id } end)
app:metrics("/metrics")
return app
]]

local function has(program)
  return os.execute("command -v " .. program .. " >/dev/null && " .. program .. " -o /dev/null true 2>/dev/null") == 0
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
      calls[thread] = calls[thread] or { reads = 0, writes = 0 }
      if READS[name] then calls[thread].reads = calls[thread].reads + 1 end
      if WRITES[name] then calls[thread].writes = calls[thread].writes + 1 end
    end
  end
  local most = { reads = 0, writes = 0 }
  for _, one in pairs(calls) do
    if one.writes > most.writes then most = one end
  end
  return most
end

describe("the system calls of a request", function()
  for name, target in pairs { ["static route"] = "/static", ["plain Lua route"] = "/users/7" } do
    it("are one read and one write on a " .. name, function()
      if not has "strace" then return pending "strace is not installed, or may not trace" end
      local folder = live.folder()
      local server = live.start {
        source = SOURCE,
        before = "strace -f -qq -o " .. folder .. "/calls ",
        env = '"ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0"', -- looking for leaks is tracing, too
      }
      ask(server, target)
      server:stop()
      local calls = count_calls(folder)
      os.execute("rm -rf " .. folder)
      assert.is_true(calls.reads >= REQUESTS and calls.reads <= REQUESTS + ROUNDS, calls.reads .. " reads")
      assert.is_true(calls.writes >= REQUESTS and calls.writes <= REQUESTS + ROUNDS, calls.writes .. " writes")
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

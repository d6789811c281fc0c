-- What the specs of `photon bench` share: the server that it measures (spec/bench_app.lua), and how
-- it is run.
local cjson = require "cjson"
local ffi = require "ffi"
local live = require "spec.live"
local socket = require "spec.socket"

local bench = {}

function bench.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

function bench.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

function bench.start()
  bench.server = live.start { app = "spec/bench_app.lua" }
  bench.ports = cjson.decode(bench.server:get("/ports").body)
  bench.folder = live.folder()
end

function bench.stop()
  bench.server:stop()
  os.execute("rm -rf " .. bench.folder)
end

-- The server that answers in one of the ways of spec/bench_app.lua.
function bench.url_of(way)
  return ("http://127.0.0.1:%d/"):format(bench.ports[way])
end

-- Runs bench: standard output, standard error, exit status. A % in the arguments is this server.
function bench.run(arguments)
  local here = "http://127.0.0.1:" .. bench.server.port
  local command = live.command("bench " .. arguments:gsub("%%", here))
  local pipe = io.popen(("timeout 60 %s 2>%s/err </dev/null; echo exit $?"):format(command, bench.folder))
  local text = pipe:read "*a"
  pipe:close()
  local output, status = text:match "^(.-)exit (%d+)\n$"
  return output, bench.read(bench.folder .. "/err"), tonumber(status)
end

local function count_opened()
  return tonumber(bench.server:get("/opened").body)
end

-- Whether the clients of a port on this machine have read all that has come for them.
local function is_all_read(port)
  for _, one in ipairs(socket.all()) do
    if one.peer == port and one.unread > 0 then return false end
  end
  return true
end

-- Runs bench at /open with `count` connections and interrupts it when it has read what their streams get:
-- its result as a table.
function bench.run_until_open(count)
  local before = count_opened()
  local command = ("bench --json -d 3600 -c %d http://127.0.0.1:%d/open"):format(count, bench.server.port)
  local pipe = io.popen("echo $$; exec " .. live.command(command))
  local pid = tonumber(pipe:read "*l")
  local is_open, problem = pcall(socket.eventually, function()
    return count_opened() >= before + count and is_all_read(bench.server.port)
  end, "the streams are open")
  ffi.C.spec_kill(pid, live.signals.INT)
  local text = pipe:read "*a"
  pipe:close()
  if not is_open then error(problem, 2) end
  return cjson.decode(text)
end

return bench

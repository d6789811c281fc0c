-- The nginx configuration of docs/streaming.md, before a real server: events pass one by one, ends stay
-- what they are, and a client that leaves is noticed.
local ffi = require "ffi"
local lib = require "spec.lib"
local live = require "spec.live"
local reader = require "spec.reader"
local socket = require "spec.socket"

local NGINX = "/usr/sbin/nginx"

-- Each event but the first waits until a client has asked for it.
local APP = [[
local photon = require "photon"
local app = photon.app()
local state = photon.shared "state"

app:sse("/events", function(stream)
  stream:on_close(function() state:incr("closed", 1) end)
  for i = 1, 20 do
    while (state:get "wanted" or 1) < i do photon.sleep(0.002) end
    if not stream:send(i) then return end
  end
end)
app:sse("/endless", function(stream)
  stream:on_close(function() state:incr("gone", 1) end)
  stream:send "here"
  photon.sleep(3600)
end)
app:sse("/broken", function(stream)
  stream:send "one"
  photon.sleep(0.01)
  error "on purpose"
end)
app:post("/want/:n", function(req) state:set("wanted", tonumber(req.params.n)) end)
app:get("/state/:name", function(req) return tostring(state:get(req.params.name) or 0) end)
return app
]]

local FRAME = [[
daemon off; master_process off; pid %s/pid; error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path %s/body; proxy_temp_path %s/proxy; fastcgi_temp_path %s/fastcgi;
  uwsgi_temp_path %s/uwsgi; scgi_temp_path %s/scgi;
  %s
}
]]

local function free_port()
  local server = live.start { source = 'return require("photon").app()' }
  local port = server.port
  server:stop()
  return port
end

-- nginx on a port that was free just now, which somebody else may have taken since: its process id once
-- it listens, nil when the port was taken.
local function try_nginx(folder, port)
  local f = folder
  local output = io.popen((": >%s/nginx.log; %s -p %s -c %s/nginx.conf >>%s/nginx.log 2>&1 & echo $!"):format(f, NGINX,
    f, f, f))
  local pid = tonumber(output:read "*l")
  output:close()
  local function log() return lib.read(f .. "/nginx.log") end
  local is_taken
  local is_done, problem = pcall(socket.eventually, function()
    is_taken = log():find("bind() to 127.0.0.1:" .. port .. " failed", 1, true)
    local has_begun = io.open(f .. "/pid") -- written when it has bound
    if has_begun then has_begun:close() end
    return is_taken or has_begun
  end, function() return "nginx listens: " .. log() end)
  if is_done and not is_taken then return pid end
  ffi.C.spec_kill(pid, live.signals.KILL)
  if not is_done then error(problem, 0) end
end

-- nginx with the guide's configuration, changed by `edit`: its port and process id.
local function start_nginx(folder, upstream, edit)
  local guide = lib.read("docs/streaming.md"):match "```nginx\n(.-)```"
  local port, pid
  repeat
    port = free_port()
    local config = edit(guide:gsub("127%.0%.0%.1:8080", "127.0.0.1:" .. upstream):gsub("listen 80;",
      ("listen 127.0.0.1:%d;"):format(port)))
    local file = assert(io.open(folder .. "/nginx.conf", "w"))
    local f = folder
    file:write(FRAME:format(f, f, f, f, f, f, config))
    file:close()
    pid = try_nginx(folder, port)
  until pid
  return port, pid
end

local function open(port, target)
  return reader.open({ connect = function() return assert(socket.connect(port)) end }, target)
end

describe("behind nginx", function()
  local has_nginx = io.open(NGINX)
  if not has_nginx then
    pending "nginx is not installed"
    return
  end
  has_nginx:close()

  local server, folder, port, pid
  local function start(edit)
    server, folder = live.start { source = APP }, live.folder()
    port, pid = start_nginx(folder, server.port, edit)
  end
  after_each(function()
    if pid then ffi.C.spec_kill(pid, live.signals.TERM) end
    pid = nil
    server:stop()
    os.execute("rm -rf " .. folder)
  end)

  local function wait_for(name, value)
    socket.eventually(function() return server:get("/state/" .. name).body == value end, name .. " is " .. value)
  end

  -- nginx makes chunks of its own, so that events are looked for in what they carry.
  local function read_one_by_one(client)
    for i = 1, 20 do
      assert(client:wait(i), "no event " .. i)
      assert.equal(tostring(i), client.events[i].data)
      assert.equal(i, #client.events)
      server:request("POST", "/want/" .. i + 1)
    end
  end

  it("each event comes before the next one is made", function()
    start(function(config) return config end)
    local client = open(port, "/events")
    read_one_by_one(client)
    assert.is_true(client:has_ended())
    client.socket:close()
  end)

  it("also over HTTP/1.0, where x-accel-buffering is not heeded but buffering is off", function()
    start(function(config)
      return (config:gsub("proxy_http_version 1.1;", "proxy_ignore_headers X-Accel-Buffering; proxy_buffering off;"))
    end)
    local client = open(port, "/events")
    read_one_by_one(client)
    client.socket:close()
  end)

  it("a stream that breaks stays broken", function()
    start(function(config) return config end)
    local client = open(port, "/broken")
    assert.is_false(client:has_ended())
    assert.is_true(client.socket.is_closed)
    assert.same({ "one" }, reader.datas(client.events))
    client.socket:close()
  end)

  it("a client that leaves is noticed", function()
    start(function(config) return config end)
    local client = open(port, "/endless")
    assert.truthy(client:wait(1))
    assert.equal("0", server:get("/state/gone").body)
    client.socket:close()
    wait_for("gone", "1")
  end)
end)

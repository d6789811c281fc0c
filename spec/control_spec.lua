-- How a running server is found: pid files, control sockets, inherited sockets.
local ffi = require "ffi"
local lfs = require "lfs"
local live = require "spec.live"
local socket = require "spec.socket"
local uv = require "luv"

if not pcall(function() return ffi.C.spec_bind end) then
  ffi.cdef [[
  int spec_bind(int, const struct spec_sockaddr *, uint32_t) __asm__("bind");
  int spec_listen(int, int) __asm__("listen");
  int spec_getsockname(int, struct spec_sockaddr *, uint32_t *) __asm__("getsockname");
  ]]
end

local SOURCE = [[
local photon = require "photon"
local app = photon.app()
app:get("/", function() return "ok" end)
return app
]]

local folder, servers

local function start(flags, options)
  options = options or { source = SOURCE }
  options.flags = flags
  options.env = options.env or ("XDG_RUNTIME_DIR=%s"):format(folder)
  local server = live.start(options)
  servers[#servers + 1] = server
  return server
end

local function run(arguments, environment)
  environment = environment or ("XDG_RUNTIME_DIR=%s"):format(folder)
  local pipe = io.popen(live.command(arguments .. " 2>&1; echo exit $?", environment))
  local text = pipe:read "*a"
  pipe:close()
  return text:match "^(.-)exit (%d+)\n$"
end

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "*a"
  file:close()
  return text
end

-- A listening socket that children inherit: its descriptor and port.
local function listen()
  local address = ffi.new "struct spec_sockaddr"
  local len = ffi.new("uint32_t[1]", ffi.sizeof(address))
  address.family, address.address[0], address.address[3] = 2, 127, 1
  local fd = ffi.C.spec_socket(2, 1, 0)
  assert.equal(0, ffi.C.spec_bind(fd, address, ffi.sizeof(address)))
  assert.equal(0, ffi.C.spec_listen(fd, 16))
  assert.equal(0, ffi.C.spec_getsockname(fd, address, len))
  return fd, bit.rshift(bit.bswap(address.port), 16)
end

local function sockets()
  local found = {}
  if not lfs.attributes(folder .. "/photon") then return found end
  for name in lfs.dir(folder .. "/photon") do
    if name:find "%.sock$" then found[#found + 1] = name end
  end
  return found
end

describe("a running server", function()
  before_each(function()
    folder, servers = live.folder(), {}
  end)

  after_each(function()
    for _, server in ipairs(servers) do server:stop() end
    os.execute(("rm -rf '%s'"):format(folder))
  end)

  it("writes its pid file, is reached by it, and removes it", function()
    local pid_file = folder .. "/pid"
    local server = start("--pid " .. pid_file)
    assert.equal(server.pid .. "\n", read(pid_file))
    local text, status = run("reload --pid " .. pid_file)
    assert.equal("0", status)
    assert.truthy(text:find "^photon: reloaded generation 2 in ", text)
    server:stop()
    assert.is_nil(read(pid_file))
    assert.is_nil(lfs.attributes(pid_file .. ".sock"))
  end)

  it("does not lose its pid file to another", function()
    local pid_file = folder .. "/pid"
    local server = start("--pid " .. pid_file)
    local text, status = run(("serve %s/app.lua --listen 127.0.0.1:0 --pid %s"):format(server.folder, pid_file))
    assert.equal("1", status)
    assert.truthy(text:find("the pid file " .. pid_file .. " belongs to a server that runs", 1, true), text)
    assert.equal(server.pid .. "\n", read(pid_file))
    assert.equal("0", select(2, run("reload --pid " .. pid_file)))
  end)

  it("names the pid file that cannot be written, and what to do", function()
    local function refused(pid_file, message)
      local text, status = run(("serve %s --listen 127.0.0.1:0 --pid %s"):format(folder, pid_file))
      assert.equal("1", status)
      assert.equal(("photon: cannot write the pid file %s: %s\n"):format(pid_file, message), text)
    end
    local app = assert(io.open(folder .. "/app.lua", "wb"))
    app:write(SOURCE)
    app:close()
    refused(folder .. "/none/pid", "No such file or directory; make its folder, or name another --pid FILE")
    refused(folder .. "/app.lua/pid", "Not a directory; make its folder, or name another --pid FILE")
    refused(folder, "Is a directory; --pid takes the path of a file")
    refused(folder .. "/" .. ("x"):rep(100),
      "File name too long for its control socket, FILE.sock; name a shorter --pid FILE")
  end)

  it("takes over what a killed one has left", function()
    local pid_file = folder .. "/pid"
    local killed = start("--pid " .. pid_file)
    killed:signal "KILL"
    killed:wait()
    assert.truthy(read(pid_file))
    local text, status = run("reload --pid " .. pid_file)
    assert.equal("1", status)
    assert.truthy(text:find "^photon: no server answers at ", text)
    local server = start("--pid " .. pid_file)
    assert.equal(server.pid .. "\n", read(pid_file))
    assert.equal("0", select(2, run("reload --pid " .. pid_file)))
  end)

  it("is found by its app, however that is named", function()
    local server = start "--workers 1"
    assert.equal("rwx------", lfs.attributes(folder .. "/photon", "permissions"))
    for _, name in ipairs { server.folder, server.folder .. "/", server.folder .. "/app.lua",
                            server.folder .. "/../" .. server.folder:match "[^/]+$" } do
      assert.equal("0", select(2, run("reload " .. name)))
    end
    local text, status = run("reload", ("-C %s XDG_RUNTIME_DIR=%s"):format(server.folder, folder))
    assert.equal("0", status, text)
    server:stop()
    assert.same({}, sockets())
    text, status = run("reload " .. server.folder)
    assert.equal("1", status)
    assert.truthy(text:find "^photon: no server of .* is running; start it", text)
  end)

  it("does not wait for another one that accepts nobody", function()
    local path, pipes = folder .. "/photon/stuck.sock", {}
    assert.truthy(lfs.mkdir(folder .. "/photon"))
    os.execute("chmod 700 " .. folder .. "/photon")
    for i = 1, 3 do pipes[i] = uv.new_pipe(false) end
    assert(pipes[1]:bind(path))
    assert(pipes[1]:listen(0, function() end))
    for i = 2, 3 do pipes[i]:connect(path, function() end) end -- its queue is full; this loop stands still
    local server = start "--workers 1"
    assert.equal("ok", server:get("/").body)
    assert.truthy(lfs.attributes(path))
    local text, status = run(("serve %s --listen 127.0.0.1:0 --pid %s"):format(server.folder, path:gsub("%.sock$", "")))
    assert.equal("1", status)
    assert.truthy(text:find("belongs to a server that runs", 1, true), text)
    for _, pipe in ipairs(pipes) do pipe:close() end
  end)

  it("is found by a link, also when that leads elsewhere by now", function()
    local link = folder .. "/current"
    local function release(name)
      local path = folder .. "/" .. name
      lfs.mkdir(path)
      local file = assert(io.open(path .. "/app.lua", "wb"))
      file:write((SOURCE:gsub("ok", name)))
      file:close()
      os.remove(link)
      assert(lfs.link(path, link, true))
    end
    release "first"
    local server = start("--workers 1", { app = link })
    local text = run("reload " .. link)
    assert.equal(1, select(2, text:gsub("photon: reloaded generation", "")), text)
    release "second"
    text = run("reload " .. folder .. "/./current/app.lua")
    assert.equal(1, select(2, text:gsub("photon: reloaded generation", "")), text)
    assert.equal("second", server:get("/").body)
    server:stop()
    assert.same({}, sockets())
  end)

  it("is one of all those that serve the app", function()
    local first = start "--workers 1"
    local second = start("--workers 1", { app = first.folder })
    assert.equal(2, #sockets())
    local text, status = run("reload " .. first.folder)
    assert.equal("0", status)
    assert.equal(2, select(2, text:gsub("photon: reloaded generation 2 in ", "")))
    assert.truthy(second:has_logged "reloaded generation 2")
    second:signal "KILL"
    second:wait()
    assert.equal(2, #sockets())
    text = run("reload " .. first.folder)
    assert.equal(1, select(2, text:gsub("photon: reloaded generation 3 in ", "")))
    assert.equal(1, #sockets())
  end)

  it("sweeps away what killed ones of other apps have left", function()
    local killed = start "--workers 1"
    killed:signal "KILL"
    killed:wait()
    assert.equal(1, #sockets())
    start "--workers 1"
    assert.equal(1, #sockets())
  end)

  it("tells why a reload has failed", function()
    local server = start "--workers 2"
    local file = assert(io.open(server.folder .. "/app.lua", "wb"))
    file:write "error 'on purpose'"
    file:close()
    local text, status = run("reload " .. server.folder)
    assert.equal("1", status)
    assert.truthy(text:find "^photon: reload failed: .*app%.lua:1: on purpose\n$", text)
  end)

  it("sleeps while it has no descriptors for who asks, and answers when it has some again", function()
    local server, crowd = start "--workers 2", {}
    server:limit_descriptors(40)
    for i = 1, 60 do crowd[i] = server:connect() end
    assert.truthy(server:has_logged "cannot accept connections")
    local pipes = {}
    for i = 1, 3 do -- one gets the descriptor that is kept for it, unless the acceptor was faster
      pipes[i] = io.popen(live.command("reload " .. server.folder .. " 2>&1", "XDG_RUNTIME_DIR=" .. folder))
    end
    -- One that tried again and again would hardly ever be seen to sleep; a crowded machine wakes it late.
    socket.eventually(function()
      for _ = 1, 10 do
        socket.sleep(0.01)
        if server:thread_state() ~= "S" then return false end
      end
      return true
    end, "the boss sleeps")
    server:limit_descriptors(1000)
    for _, one in ipairs(crowd) do one:close() end
    for _, pipe in ipairs(pipes) do
      local text = pipe:read "*a"
      pipe:close()
      assert.truthy(text:find "^photon: reloaded " or text:find "^photon: reload failed: .*: Too many open files\n$",
        text)
    end
    local text, status = run("reload " .. server.folder)
    assert.equal("0", status, text)
  end)

  it("takes inherited sockets before all others", function()
    local fd, port = listen()
    local server = start("--workers 1", { source = SOURCE,
      env = ([[LISTEN_FDS=1 bash -c 'LISTEN_PID=$$ exec "$0" "$@" 3<&%d']]):format(fd) })
    ffi.C.spec_close(fd)
    assert.equal(port, server.port)
    assert.equal("ok", server:get("/").body)
    server:stop()
    assert.is_nil((socket.connect(port)))
  end)

  it("leaves sockets alone that are meant for another process", function()
    local fd, port = listen()
    local server = start("--workers 1", { source = SOURCE,
      env = ([[LISTEN_FDS=1 LISTEN_PID=1 bash -c 'exec "$0" "$@" 3<&%d']]):format(fd) })
    ffi.C.spec_close(fd)
    assert.not_equal(port, server.port)
    assert.equal("ok", server:get("/").body)
  end)
end)

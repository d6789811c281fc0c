-- The command line: what each command prints and how it exits.
local build = require "spec.build"
local cjson = require "cjson"
local lfs = require "lfs"
local live = require "spec.live"
local uv = require "luv"

local GOOD = [[
local photon = require "photon"
local app = photon.app()
app:static("/", "hello")
app:get("/users/:id", function(req) return { id = req.params.id } end)
app:sse("/clock", function(stream) stream:send "tick" end)
app:metrics("/metrics")
return app
]]

local folder

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "wb"))
  file:write(text)
  file:close()
end

-- Runs photon in the folder: standard output, standard error, exit status.
local function run(arguments, environment)
  local command = ("cd %s && %s 2>%s.err; echo exit $?"):format(folder,
    live.command(arguments, environment), folder)
  local pipe = io.popen(command)
  local text = pipe:read "*a"
  pipe:close()
  local file = assert(io.open(folder .. ".err", "rb"))
  local errors = file:read "*a"
  file:close()
  os.remove(folder .. ".err")
  local output, status = text:match "^(.-)exit (%d+)\n$"
  return output, errors, tonumber(status)
end

-- One line on standard error that matches, nothing on standard output, that exit status.
local function refused(status, pattern, arguments, environment)
  local output, errors, got = run(arguments, environment)
  assert.equal("", output)
  assert.truthy(errors:find "^photon: [^\n]+\n$", errors)
  assert.truthy(errors:find(pattern), errors)
  assert.equal(status, got)
end

describe("the command line", function()
  before_each(function()
    folder = live.folder()
    write("app.lua", GOOD)
  end)

  after_each(function()
    os.execute(("rm -rf '%s'"):format(folder))
  end)

  it("explains itself", function()
    local output, errors, status = run "--help"
    assert.equal(0, status)
    assert.equal("", errors)
    for _, name in ipairs { "serve", "test", "routes", "check", "reload", "bench", "version" } do
      assert.truthy(output:find("\n  " .. name .. " +%l"), name)
      local help, _, code = run(name .. " --help")
      assert.equal(0, code)
      assert.truthy(help:find("usage: photon " .. name, 1, true), name)
    end
    assert.truthy(run("serve --help"):find "%-%-max%-body SIZE")
    assert.equal(2, select(3, run ""))
  end)

  it("says its version", function()
    assert.truthy(run("version"):find "^photon %d+%.%d+%.%d+")
    assert.truthy(run("--version"):find "^photon %d+%.%d+%.%d+")
  end)

  it("refuses wrong usage with 2, and guesses what was meant", function()
    refused(2, "no command serv; did you mean serve%?", "serv")
    refused(2, "no command chekc; did you mean check%?", "chekc")
    refused(2, "no command frobnicate %(", "frobnicate")
    refused(2, "%-%-wokers; did you mean %-%-workers%?", "serve --wokers 2")
    refused(2, "%-%-workers", "serve --workers none")
    refused(2, "%-%-listen", "serve --listen")
    refused(2, "one APP", "serve a b")
    refused(2, "PHOTON_MAX_BODY", "check", "PHOTON_MAX_BODY=lots")
  end)

  it("fails when what it prints cannot be written", function()
    for _, arguments in ipairs { "version", "routes . --json", "bench --help", "test ok_spec.lua" } do
      write("ok_spec.lua", 'it("passes", function() end)')
      refused(1, "standard output cannot be written", arguments .. " >/dev/full")
    end
  end)

  it("warns of variables that nothing reads", function()
    local output, errors, status = run("check", "PHOTON_MAX_BODDY=5")
    assert.equal("photon: . ok (4 routes)\n", output)
    assert.equal("photon: warning: nothing reads the variable PHOTON_MAX_BODDY; did you mean PHOTON_MAX_BODY?\n",
      errors)
    assert.equal(0, status)
    local server = live.start { source = GOOD, env = "PHOTON_DRIAN=1" }
    assert.truthy(server:has_logged "nothing reads the variable PHOTON_DRIAN; did you mean PHOTON_DRAIN?")
    server:stop()
  end)

  it("checks an app", function()
    local output, errors, status = run "check"
    assert.equal("photon: . ok (4 routes)\n", output)
    assert.equal("", errors)
    assert.equal(0, status)
    assert.equal("photon: app.lua ok (4 routes)\n", (run "check app.lua"))
  end)

  it("reports what is wrong with an app, with its place", function()
    refused(1, "no app at elsewhere", "check elsewhere")
    write("bad.lua", "return {\n")
    refused(1, "bad%.lua:", "check bad.lua")
    write("bad.lua", "local photon = require 'photon'\nerror 'on purpose'\n")
    refused(1, "bad%.lua:2: on purpose", "check bad.lua")
    write("bad.lua", "local function deep(n) return 1 + deep(n + 1) end\ndeep(1)\n")
    refused(1, "bad%.lua:1: stack overflow", "check bad.lua")
    write("bad.lua", "local function deep(s) return (s:gsub('.', deep)) end\ndeep 'x'\n")
    refused(1, "endless recursion through C functions", "check bad.lua")
    refused(1, "endless recursion through C functions", "routes bad.lua")
    write("bad.lua", "return {}\n")
    refused(1, "^photon: bad%.lua must return the app that photon%.app%(%) makes, not another table:[^\n]*\n$",
      "check bad.lua")
    write("bad.lua", "local app = require('photon').app()\nlocal f = function() end\n"
      .. "app:get('/a', f)\napp:get('/a', f)\nreturn app\n")
    refused(1, "bad%.lua:4.*bad%.lua:3", "check bad.lua")
  end)

  it("notices routes that depend on chance", function()
    write("app.lua", [[
      local app = require("photon").app()
      app:get("/" .. tostring({}):match "0x(%x+)", function() end)
      return app]])
    refused(1, "different routes", "check")
  end)

  build.stopping(it, pending)("stops a loop at load", function()
    write("app.lua", "while true do local x = {} end\n")
    local output, errors, status = run "check --lua-budget 0.2"
    assert.equal("", output)
    assert.truthy(errors:find "lua_budget", errors)
    assert.equal(1, status)
  end)

  it("lists routes", function()
    local output, _, status = run "routes"
    assert.equal(0, status)
    assert.truthy(output:find "\nGET +/ +static +no +app%.lua:3\n", output)
    assert.truthy(output:find "\nGET +/users/:id +lua +yes +app%.lua:4\n")
    assert.truthy(output:find "\nGET +/clock +stream +yes +app%.lua:5\n")
    assert.truthy(output:find "\nGET +/metrics +metrics +no +app%.lua:6\n")
    local list = cjson.decode((run "routes --json"))
    assert.equal(4, #list)
    assert.same({ method = "GET", pattern = "/users/:id", kind = "lua", place = "app.lua:4", enters_lua = true },
      list[2])
  end)

  it("fails the start of a server that cannot start", function()
    refused(1, "no app at nowhere", "serve nowhere --listen 127.0.0.1:0")
    refused(2, '%-%-listen: cannot listen on "nonsense": write host:port', "serve --listen nonsense")
    refused(2, 'PHOTON_LISTEN: cannot listen on ":x": the port is a number', "serve", "PHOTON_LISTEN=:1,:x")
    write("app.lua", "return 1")
    refused(1, "must return the app", "serve --listen 127.0.0.1:0")
    write("app.lua", [[
      local app = require("photon").app()
      app:on_start(function() error "cannot begin" end)
      return app]])
    for workers = 1, 2 do
      local output, errors, status = run("serve --log off --listen 127.0.0.1:0 --workers " .. workers)
      assert.equal("", output)
      assert.truthy(errors:find "^photon: [^\n]*app%.lua:2: cannot begin\n$", errors)
      assert.equal(1, status)
    end
  end)

  it("says which address is taken", function()
    local server = live.start { source = GOOD }
    refused(1, "127%.0%.0%.1:" .. server.port .. ".*in use", "serve --listen 127.0.0.1:" .. server.port)
    server:stop()
  end)

  it("serves a unix socket, and removes it", function()
    local server = live.start { source = GOOD, flags = ("--listen unix:%s/s"):format(folder) }
    assert.equal("socket", lfs.attributes(folder .. "/s", "mode"))
    server:stop()
    assert.is_nil(lfs.attributes(folder .. "/s"))
  end)

  it("starts without standard input and error, and gives their numbers to nothing else", function()
    local server = live.start {
      source = GOOD,
      before = [[sh -c 'exec "$@" <&- 2>&-' sh ]],
      flags = "--access-log",
    }
    server:get "/users/7"
    assert.truthy(server:reload())
    server:get "/users/7"
    for _, number in ipairs { 0, 2 } do
      assert.equal("/dev/null", uv.fs_readlink(("/proc/%d/fd/%d"):format(server.pid, number)))
    end
    server:stop()
  end)

  it("outlives a file that meets the limit of its size", function()
    local server = live.start {
      source = [[
        local app = require("photon").app()
        app:get("/", function(req)
          local file = assert(io.open(req.query.file, "wb"))
          file:setvbuf "no"
          return { ok = file:write(("x"):rep(100000)) or false, closed = file:close() }
        end)
        return app]],
      before = "ulimit -f 8; ",
    }
    local body = server:get("/?file=" .. folder .. "/large").body
    assert.same({ ok = false, closed = true }, cjson.decode(body))
    server:stop()
  end)

  it("logs requests where it is told to", function()
    local server = live.start { source = GOOD, flags = "--access-log --log json" }
    server:get "/users/7"
    assert.truthy(server:has_logged '"/users/7"')
    server:stop()
  end)
end)

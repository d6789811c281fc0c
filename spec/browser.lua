-- A real browser for specs: headless, with a profile of its own in `folder`.
local cjson = require "cjson"
local ffi = require "ffi"
local live = require "spec.live"
local socket = require "spec.socket"

local browser = {}

local CHROMIUM = "/usr/bin/chromium"
local FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
  .. "--disable-background-networking --disable-component-update --disable-sync"

function browser.is_there()
  local file = io.open(CHROMIUM)
  if file then file:close() end
  return file ~= nil
end

-- Opens an address in a browser of its own: its process id.
function browser.open(url, folder)
  local output = io.popen(("%s %s --remote-debugging-port=0 --user-data-dir=%s '%s' >/dev/null 2>&1 & echo $!"):format(
    CHROMIUM, FLAGS, folder, url))
  local pid = tonumber(output:read "*l")
  output:close()
  return pid
end

function browser.close(pid)
  ffi.C.spec_kill(pid, live.signals.TERM)
end

-- What a page has reported to the server, decoded, when GET `target` has it.
function browser.wait_for_report(server, target)
  local reply
  socket.eventually(function()
    reply = server:get(target)
    return reply.status == 200
  end, "the page reports at " .. target)
  return cjson.decode(reply.body)
end

-- An app of the folder apps/ and, at /watch, a page that looks at it in frames and reports what it sees.
local SOURCE = [==[
package.path = "apps/APP/?.lua;" .. package.path
local photon = require "photon"
local app = photon.app()
local reports = photon.shared "reports"
CODE
app:mount("AT", dofile "apps/APP/app.lua")
app:post("/report/:name", function(req) reports:set(req.params.name, req:body()) end)
app:get("/report/:name", function(req) return reports:get(req.params.name) or photon.problem(404) end)
app:static("/watch", [=[
<!doctype html>
<title>watch</title>
<script>
  const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
  const until = async condition => {
    for (;;) {
      try { if (await condition()) return; } catch (error) { /* the frame is being loaded */ }
      await pause(10);
    }
  };
  const report = (name, value) => fetch("/report/" + name, { method: "POST", body: JSON.stringify(value) });
</script>
PAGE
]=], { type = "text/html; charset=utf-8" })
return app
]==]

local Watch = {}
Watch.__index = Watch

-- What is started with options: app = a folder's name in apps/, at = where it is mounted, page = what
-- watches it (HTML that has pause, until and report), code = Lua before the app is loaded, flags.
function browser.watch(options)
  return setmetatable({ options = options }, Watch)
end

function Watch:start()
  local options = self.options
  local texts = { APP = options.app, AT = options.at, CODE = options.code or "", PAGE = options.page }
  self.server = live.start { source = SOURCE:gsub("%u+", texts), flags = options.flags }
  self.folder = live.folder()
end

function Watch:open(query)
  local url = ("http://127.0.0.1:%d/watch?%s"):format(self.server.port, query or "")
  self.pid = browser.open(url, self.folder .. "/" .. (query or "profile"))
end

function Watch:report(name)
  return browser.wait_for_report(self.server, "/report/" .. name)
end

-- Closes what is open.
function Watch:close()
  if self.pid then browser.close(self.pid) end
  self.pid = nil
end

function Watch:stop()
  self:close()
  self.server:stop()
  os.execute("rm -rf " .. self.folder)
end

return browser

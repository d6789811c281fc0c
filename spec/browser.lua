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

return browser

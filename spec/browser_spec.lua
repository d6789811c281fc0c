-- The page of apps/tokens in a real browser: tokens are shown one after the other. The page runs in a
-- frame of a page that watches it and reports what it saw.
local browser = require "spec.browser"
local live = require "spec.live"

local APP = [==[
package.path = "apps/tokens/?.lua;" .. package.path
local photon = require "photon"
local app = photon.app()
local reports = photon.shared "reports"

app:mount("/tokens-app", dofile "apps/tokens/app.lua")
app:post("/report/:way", function(req) reports:set(req.params.way, req:body()) end)
app:get("/report/:way", function(req) return reports:get(req.params.way) end)
app:static("/watch", [=[
<!doctype html>
<title>watch</title>
<iframe src="/tokens-app/"></iframe>
<script>
  const frame = document.querySelector("iframe");
  const way = location.search.slice(1);
  frame.onload = () => {
    const page = frame.contentDocument, lengths = [], turns = new Set();
    const answer = page.querySelector("#answer"), status = page.querySelector("#status");
    new MutationObserver(() => {
      lengths.push(answer.textContent.length);
      turns.add(performance.now());
    }).observe(answer, { childList: true, characterData: true, subtree: true });
    new MutationObserver(() => {
      if (!status.textContent.startsWith("Done")) return;
      fetch("/report/" + way, { method: "POST", body: JSON.stringify({
        lengths, turns: turns.size, text: answer.textContent, status: status.textContent,
        busy: answer.getAttribute("aria-busy"), can_send: !page.querySelector("#send").disabled,
      }) });
    }).observe(status, { childList: true, characterData: true, subtree: true });
    page.querySelector(`[value=${way}]`).checked = true;
    page.querySelector("#prompt").value = "hé <b>there</b>";
    page.querySelector("#send").click();
  };
</script>
]=], { type = "text/html; charset=utf-8" })
return app
]==]

describe("in a browser, tokens are shown one after the other:", function()
  if not browser.is_there() then
    pending "chromium is not installed"
    return
  end

  local server, pid, folder
  setup(function()
    server = live.start { source = APP }
    folder = live.folder()
  end)
  after_each(function()
    if pid then browser.close(pid) end
    pid = nil
  end)
  teardown(function()
    server:stop()
    os.execute("rm -rf " .. folder)
  end)

  for _, way in ipairs { "EventSource", "fetch" } do
    it(way, function()
      pid = browser.open(("http://127.0.0.1:%d/watch?%s"):format(server.port, way), folder .. "/" .. way)
      local report = browser.wait_for_report(server, "/report/" .. way)
      assert.truthy(report.text:find("hé <b>there</b>", 1, true), report.text)
      local _, words = report.text:gsub("%S+", "")
      assert.truthy(report.status:find("^Done: " .. words .. " tokens"), report.status)
      assert.truthy(report.turns > words / 2, report.turns .. " turns for " .. words .. " tokens")
      for i = 2, #report.lengths do assert.truthy(report.lengths[i] >= report.lengths[i - 1]) end
      assert.equal("false", report.busy)
      assert.is_true(report.can_send)
    end)
  end
end)

-- The page of apps/tokens in a real browser, loaded anew in the middle of an answer: the answer goes on,
-- and no token of it is missing or doubled. The page runs in a frame that is watched.
local browser = require "spec.browser"
local live = require "spec.live"
local sse = require "photon.sse"
local json = require("photon").json

local APP = [==[
package.path = "apps/tokens/?.lua;" .. package.path
local photon = require "photon"
local model = require "model"
local app = photon.app()
local reports, made = photon.shared "reports", photon.shared "made"

local tokens = model.tokens
function model.tokens(...)
  made:incr("answers", 1)
  return tokens(...)
end

app:mount("/tokens-app", dofile "apps/tokens/app.lua")
app:get("/made", function() return tostring(made:get "answers") end)
app:post("/report/:way", function(req) reports:set(req.params.way, req:body()) end)
app:get("/report/:way", function(req) return reports:get(req.params.way) or photon.problem(404) end)
app:static("/watch", [=[
<!doctype html>
<title>watch</title>
<iframe src="/tokens-app/"></iframe>
<script>
  const frame = document.querySelector("iframe");
  const way = location.search.slice(1);
  const find = id => frame.contentDocument.getElementById(id);
  const pause = () => new Promise(resolve => setTimeout(resolve, 10));
  const until = async condition => {
    for (;;) {
      try { if (condition()) return; } catch (error) { /* the frame is being loaded */ }
      await pause();
    }
  };
  async function run() {
    await until(() => find("send") && frame.contentDocument.readyState === "complete");
    frame.contentDocument.querySelector(`[value=${way}]`).checked = true;
    find("prompt").value = "again";
    find("send").click();
    const seen = [];
    for (const words of [8, 20]) {
      await until(() => find("answer").textContent.split(" ").length > words);
      seen.push(find("answer").textContent);
      const old = frame.contentDocument;
      frame.contentWindow.location.reload();
      await until(() => frame.contentDocument !== old);
    }
    await until(() => find("status").textContent.startsWith("Done"));
    await fetch("/report/" + way, { method: "POST", body: JSON.stringify({ seen, text: find("answer").textContent,
      prompt: find("prompt").value, status: find("status").textContent }) });
  }
  run();
</script>
]=], { type = "text/html; charset=utf-8" })
return app
]==]

-- The answer, as a client without a key gets it.
local function whole_answer(server)
  local text = {}
  local reply = server:get "/tokens-app/tokens?prompt=again"
  for _, event in ipairs(sse.parse(reply.body)) do
    if event.event == "token" then text[#text + 1] = json.decode(event.data).text end
  end
  return table.concat(text)
end

describe("in a browser, an answer goes on when its page is loaded anew:", function()
  if not browser.is_there() then
    pending "chromium is not installed"
    return
  end

  local server, folder, pid, whole
  setup(function()
    server = live.start { source = APP, flags = "--workers 2" }
    folder = live.folder()
    whole = whole_answer(server)
  end)
  after_each(function()
    if pid then browser.close(pid) end
    pid = nil
  end)
  teardown(function()
    server:stop()
    os.execute("rm -rf " .. folder)
  end)

  for i, way in ipairs { "EventSource", "fetch" } do
    it(way, function()
      pid = browser.open(("http://127.0.0.1:%d/watch?%s"):format(server.port, way), folder .. "/" .. way)
      local report = browser.wait_for_report(server, "/report/" .. way)
      assert.equal(whole, report.text)
      assert.equal("again", report.prompt)
      for _, text in ipairs(report.seen) do
        assert.truthy(#text < #whole)
        assert.equal(text, whole:sub(1, #text))
      end
      assert.equal(tostring(i + 1), server:get("/made").body)
    end)
  end
end)

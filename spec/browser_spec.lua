-- The page of apps/tokens in a real browser: tokens are shown one after the other. The page runs in a
-- frame of a page that watches it and reports what it saw.
local browser = require "spec.browser"

-- Each token waits until the one before is shown.
local CODE = [[
local model, shown = require "model", photon.shared "shown"
local tokens = model.tokens
function model.tokens(...)
  local next_token = tokens(...)
  return function()
    local number, text = next_token()
    while number and (shown:get "words") < number - 1 do photon.sleep(0.002) end
    return number, text
  end
end
app:post("/shown", function(req) shown:set("words", tonumber(req:body())) end)
]]

local PAGE = [[
<iframe src="/tokens-app/"></iframe>
<script>
  const frame = document.querySelector("iframe");
  const way = location.search.slice(1);
  const tell = words => fetch("/shown", { method: "POST", body: String(words) });
  frame.onload = async () => {
    const page = frame.contentDocument, lengths = [], turns = new Set();
    const answer = page.querySelector("#answer"), status = page.querySelector("#status");
    await tell(0);
    new MutationObserver(() => {
      lengths.push(answer.textContent.length);
      turns.add(performance.now());
      tell(answer.textContent.split(/\s+/).filter(word => word).length);
    }).observe(answer, { childList: true, characterData: true, subtree: true });
    new MutationObserver(() => {
      if (!status.textContent.startsWith("Done")) return;
      report(way, {
        lengths, turns: turns.size, text: answer.textContent, status: status.textContent,
        busy: answer.getAttribute("aria-busy"), can_send: !page.querySelector("#send").disabled,
      });
    }).observe(status, { childList: true, characterData: true, subtree: true });
    page.querySelector(`[value=${way}]`).checked = true;
    page.querySelector("#prompt").value = "hé <b>there</b>";
    page.querySelector("#send").click();
  };
</script>
]]

describe("in a browser, tokens are shown one after the other:", function()
  if not browser.is_there() then
    pending "chromium is not installed"
    return
  end

  local watch = browser.watch { app = "tokens", at = "/tokens-app", code = CODE, page = PAGE }
  setup(function() watch:start() end)
  after_each(function() watch:close() end)
  teardown(function() watch:stop() end)

  for _, way in ipairs { "EventSource", "fetch" } do
    it(way, function()
      watch:open(way)
      local report = watch:report(way)
      assert.truthy(report.text:find("hé <b>there</b>", 1, true), report.text)
      local _, words = report.text:gsub("%S+", "")
      assert.truthy(report.status:find("^Done: " .. words .. " tokens"), report.status)
      assert.truthy(report.turns >= words, report.turns .. " turns for " .. words .. " tokens")
      for i = 2, #report.lengths do assert.truthy(report.lengths[i] >= report.lengths[i - 1]) end
      assert.equal("false", report.busy)
      assert.is_true(report.can_send)
    end)
  end
end)

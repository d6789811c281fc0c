-- The page of apps/tokens in a real browser, loaded anew in the middle of an answer: the answer goes on,
-- and no token of it is missing or doubled. The page runs in a frame that is watched.
local browser = require "spec.browser"
local sse = require "photon.sse"
local json = require("photon").json

-- Tokens beyond those that the page allows wait: it is loaded anew in the middle, however slow it is.
local CODE = [[
local model, made, allowed = require "model", photon.shared "made", photon.shared "allowed"
local tokens = model.tokens
function model.tokens(...)
  made:incr("answers", 1)
  local next_token = tokens(...)
  return function()
    local number, text = next_token()
    while number and number > (allowed:get "tokens" or math.huge) do photon.sleep(0.002) end
    return number, text
  end
end
app:get("/made", function() return tostring(made:get "answers") end)
app:post("/allow", function(req) allowed:set("tokens", tonumber(req:body())) end)
]]

local PAGE = [==[
<iframe src="/tokens-app/"></iframe>
<script>
  const frame = document.querySelector("iframe");
  const way = location.search.slice(1);
  const find = id => frame.contentDocument.getElementById(id);
  const allow = tokens => fetch("/allow", { method: "POST", body: String(tokens) });
  async function run() {
    await until(() => find("send") && frame.contentDocument.readyState === "complete");
    await allow(12);
    frame.contentDocument.querySelector(`[value=${way}]`).checked = true;
    find("prompt").value = "again";
    find("send").click();
    const seen = [];
    for (const [words, next] of [[8, 24], [20, 1000]]) {
      await until(() => find("answer").textContent.split(" ").length > words);
      seen.push(find("answer").textContent);
      const old = frame.contentDocument;
      frame.contentWindow.location.reload();
      await allow(next);
      await until(() => frame.contentDocument !== old);
    }
    await until(() => find("status").textContent.startsWith("Done"));
    await report(way, { seen, text: find("answer").textContent, prompt: find("prompt").value,
      status: find("status").textContent });
  }
  run();
</script>
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

  local watch = browser.watch { app = "tokens", at = "/tokens-app", code = CODE, page = PAGE, flags = "--workers 2" }
  local whole
  setup(function()
    watch:start()
    whole = whole_answer(watch.server)
  end)
  after_each(function() watch:close() end)
  teardown(function() watch:stop() end)

  for i, way in ipairs { "EventSource", "fetch" } do
    it(way, function()
      watch:open(way)
      local report = watch:report(way)
      assert.equal(whole, report.text)
      assert.equal("again", report.prompt)
      for _, text in ipairs(report.seen) do
        assert.truthy(#text < #whole)
        assert.equal(text, whole:sub(1, #text))
      end
      assert.equal(tostring(i + 1), watch.server:get("/made").body)
    end)
  end
end)

-- The page of apps/chat in a real browser, twice: two people talk, while the server runs several
-- workers and loads its code anew, and one of them loads the page anew. The two pages run in frames
-- of a page that types for them and reports what it saw.
local browser = require "spec.browser"
local live = require "spec.live"

local APP = [==[
package.path = "apps/chat/?.lua;" .. package.path
local photon = require "photon"
local app = photon.app()
local reports = photon.shared "reports"

app:mount("/", dofile "apps/chat/app.lua")
app:post("/report/:name", function(req) reports:set(req.params.name, req:body()) end)
app:get("/report/:name", function(req) return reports:get(req.params.name) or photon.problem(404) end)
app:static("/watch", [=[
<!doctype html>
<title>watch</title>
<iframe id="ann" src="/?name=ann&room=lua" width="600" height="500"></iframe>
<iframe id="bob" src="/?name=b%C3%B6b&room=lua" width="360" height="500"></iframe>
<script>
  const page = who => document.getElementById(who).contentDocument;
  const texts = (who, what) => [...page(who).querySelectorAll(what)].map(each => each.textContent);
  const said = who => [...page(who).querySelectorAll("#log li:not(.note)")].map(each =>
    each.querySelector("b").textContent + ": " + each.lastChild.textContent);
  const pause = () => new Promise(resolve => setTimeout(resolve, 20));
  const until = async condition => {
    for (;;) {
      try { if (await condition()) return; } catch (error) { /* the frame is not there yet */ }
      await pause();
    }
  };
  const report = (name, value) => fetch("/report/" + name, { method: "POST", body: JSON.stringify(value) });
  function say(who, text) {
    page(who).querySelector("#text").value = text;
    page(who).querySelector("#say button").click();
  }
  async function run() {
    await until(() => ["ann", "bob"].every(who => texts(who, "#members li").length === 2));
    say("ann", "one");
    await until(() => said("bob").length === 1);
    say("bob", "<i>two</i>");
    await until(() => said("ann").length === 2);
    await report("first", { ann: said("ann"), bob: said("bob"), members: texts("bob", "#members li") });
    await until(async () => (await fetch("/report/go")).ok);
    document.getElementById("bob").contentWindow.location.reload();
    for (const text of ["three", "four", "five"]) say("ann", text);
    await until(() => said("ann").length === 5);
    await until(() => said("bob").length >= 5 && texts("bob", "#members li").length === 2);
    await report("last", { ann: said("ann"), bob: said("bob"), status: texts("bob", "#status"),
      markup: page("ann").querySelectorAll("#log i").length });
  }
  run();
</script>
]=], { type = "text/html; charset=utf-8" })
return app
]==]

describe("in a browser, a chat", function()
  if not browser.is_there() then
    pending "chromium is not installed"
    return
  end

  local server, folder, pid
  setup(function()
    server = live.start { source = APP, flags = "--workers 3" }
    folder = live.folder()
  end)
  teardown(function()
    if pid then browser.close(pid) end
    server:stop()
    os.execute("rm -rf " .. folder)
  end)

  it("goes on over workers, new code and a new page: nothing is missing or doubled", function()
    pid = browser.open(("http://127.0.0.1:%d/watch"):format(server.port), folder .. "/profile")
    local first = browser.wait_for_report(server, "/report/first")
    assert.same({ "ann: one", "böb: <i>two</i>" }, first.ann)
    assert.same(first.ann, first.bob)
    table.sort(first.members)
    assert.same({ "ann", "böb" }, first.members)
    server:signal "HUP"
    assert.truthy(server:has_logged "reloaded generation 2 in ")
    assert.equal(204, server:request("POST", "/report/go", nil, "now").status)
    local last = browser.wait_for_report(server, "/report/last")
    table.sort(last.ann)
    table.sort(last.bob)
    assert.same({ "ann: five", "ann: four", "ann: one", "ann: three", "böb: <i>two</i>" }, last.ann)
    assert.same(last.ann, last.bob)
    assert.same({ "böb in lua" }, last.status)
    assert.equal(0, last.markup)
  end)
end)

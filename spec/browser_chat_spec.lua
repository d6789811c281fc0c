-- The page of apps/chat in a real browser, twice: two people talk, while the server runs several
-- workers and loads its code anew, and one of them loads the page anew. The two pages run in frames
-- of a page that types for them and reports what it saw. A third person is refused, and told so.
local browser = require "spec.browser"

local PAGE = [[
<iframe id="ann" src="/?name=ann&room=lua" width="600" height="500"></iframe>
<iframe id="bob" src="/?name=b%C3%B6b&room=lua" width="360" height="500"></iframe>
<iframe id="stranger" src="/?name=a-name-of-more-than-thirty-characters&room=lua" width="360" height="500"></iframe>
<script>
  const page = who => document.getElementById(who).contentDocument;
  const texts = (who, what) => [...page(who).querySelectorAll(what)].map(each => each.textContent);
  const said = who => [...page(who).querySelectorAll("#log li:not(.note)")].map(each =>
    each.querySelector("b").textContent + ": " + each.lastChild.textContent);
  function say(who, text) {
    page(who).querySelector("#text").value = text;
    page(who).querySelector("#say button").click();
  }
  async function run() {
    await until(() => ["ann", "bob"].every(who => texts(who, "#members li").length === 2));
    await until(() => texts("stranger", "#status")[0].includes("not let you in"));
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
]]

describe("in a browser, a chat", function()
  if not browser.is_there() then
    pending "chromium is not installed"
    return
  end

  local watch = browser.watch { app = "chat", at = "/", page = PAGE, flags = "--workers 3" }
  setup(function() watch:start() end)
  teardown(function() watch:stop() end)

  it("goes on over workers, new code and a new page: nothing is missing or doubled", function()
    watch:open()
    local first = watch:report "first"
    assert.same({ "ann: one", "böb: <i>two</i>" }, first.ann)
    assert.same(first.ann, first.bob)
    table.sort(first.members)
    assert.same({ "ann", "böb" }, first.members)
    watch.server:signal "HUP"
    assert.truthy(watch.server:has_logged "reloaded generation 2 in ")
    assert.equal(204, watch.server:request("POST", "/report/go", nil, "now").status)
    local last = watch:report "last"
    table.sort(last.ann)
    table.sort(last.bob)
    assert.same({ "ann: five", "ann: four", "ann: one", "ann: three", "böb: <i>two</i>" }, last.ann)
    assert.same(last.ann, last.bob)
    assert.same({ "böb in lua" }, last.status)
    assert.equal(0, last.markup)
  end)
end)

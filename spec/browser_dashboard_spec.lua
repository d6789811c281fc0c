-- The page of apps/dashboard in a real browser, at a phone's and at a desktop's width. It runs in frames
-- of a page that watches them and reports what it saw.
local browser = require "spec.browser"
local live = require "spec.live"

local APP = [==[
package.path = "apps/dashboard/?.lua;" .. package.path
local photon = require "photon"
local app = photon.app()
local reports = photon.shared "reports"

app:mount("/dashboard-app", dofile "apps/dashboard/app.lua")
app:post("/report/:width", function(req) reports:set(req.params.width, req:body()) end)
app:get("/report/:width", function(req) return reports:get(req.params.width) end)
app:static("/watch", [=[
<!doctype html>
<title>watch</title>
<script>
  const wait = ms => new Promise(resolve => setTimeout(resolve, ms));
  const lines = page => [...page.querySelectorAll("svg path")].map(path => path.getAttribute("d")).join();

  async function watch(width) {
    const frame = document.createElement("iframe"), faults = [];
    frame.style = `width: ${width}px; height: 900px; border: 0`;
    frame.src = "/dashboard-app/";
    document.body.append(frame);
    await new Promise(resolve => { frame.onload = resolve; });
    frame.contentWindow.onerror = message => { faults.push(message); };
    const page = frame.contentDocument, find = id => page.getElementById(id);
    const settle = async is_over => { while (!is_over()) await wait(50); };

    await settle(() => page.querySelector("svg path.one").getAttribute("d")?.includes("L"));
    await settle(() => find("routes").textContent.includes("/report/"));
    const charts = [...page.querySelectorAll("figure")];
    const report = {
      faults, status: find("status").textContent, about: find("about").textContent,
      titles: charts.map(chart => chart.querySelector("h2").textContent),
      labels: charts.map(chart => chart.querySelector("svg").getAttribute("aria-label")),
      columns: new Set(charts.map(chart => chart.offsetLeft)).size,
      overflow: page.documentElement.scrollWidth - page.documentElement.clientWidth,
      clipped: charts.filter(chart => chart.scrollWidth > chart.clientWidth).length,
      small: [...page.querySelectorAll("button, input")].filter(e => e.getBoundingClientRect().height < 44).length,
      cursor: page.querySelector(".cursor").getAttribute("visibility"),
    };

    find("pause").click();
    await settle(() => find("pause").getAttribute("aria-pressed") === "true");
    await wait(100);
    const paused = lines(page);
    await wait(2200); // two samples come meanwhile
    report.stands_still = paused === lines(page);
    find("moment").value = -1;
    find("moment").dispatchEvent(new Event("input"));
    await settle(() => page.querySelector(".cursor").getAttribute("visibility") === "visible");
    report.when = find("when").textContent;
    find("pause").click();
    await settle(() => lines(page) !== paused);
    await fetch("/report/" + width, { method: "POST", body: JSON.stringify(report) });
  }
  onload = () => { watch(390); watch(1280); };
</script>
]=], { type = "text/html; charset=utf-8" })
return app
]==]

describe("in a browser, the dashboard", function()
  if not browser.is_there() then
    pending "chromium is not installed"
    return
  end

  local server, pid, folder
  setup(function()
    server = live.start { source = APP }
    folder = live.folder()
    pid = browser.open(("http://127.0.0.1:%d/watch"):format(server.port), folder)
  end)
  teardown(function()
    browser.close(pid)
    server:stop()
    os.execute("rm -rf " .. folder)
  end)

  for width, columns in pairs { [390] = 1, [1280] = 4 } do
    it(("draws at a width of %d"):format(width), function()
      local report = browser.wait_for_report(server, "/report/" .. width)
      assert.same({}, report.faults)
      assert.equal("Live", report.status)
      assert.truthy(report.about:find "^Photon %d", report.about)
      assert.equal(8, #report.titles)
      for _, label in ipairs(report.labels) do assert.truthy(label:find "last five minutes: .+; at most ", label) end
      assert.equal(columns, report.columns)
      assert.equal(0, report.overflow)
      assert.equal(0, report.clipped)
      assert.equal(0, report.small)
      assert.equal("hidden", report.cursor)
      assert.is_true(report.stands_still)
      assert.truthy(report.when:find "%d:%d%d:%d%d", report.when)
    end)
  end
end)

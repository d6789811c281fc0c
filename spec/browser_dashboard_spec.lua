-- The page of apps/dashboard in a real browser, at a phone's and at a desktop's width. It runs in frames
-- of a page that watches them and reports what it saw.
local browser = require "spec.browser"

local PAGE = [[
<script>
  const lines = page => [...page.querySelectorAll("svg path")].map(path => path.getAttribute("d")).join();

  async function watch(width) {
    const frame = document.createElement("iframe"), faults = [];
    frame.style = `width: ${width}px; height: 900px; border: 0`;
    frame.src = "/dashboard-app/";
    document.body.append(frame);
    await new Promise(resolve => { frame.onload = resolve; });
    frame.contentWindow.onerror = message => { faults.push(message); };
    const page = frame.contentDocument, find = id => page.getElementById(id);

    await until(() => page.querySelector("svg path.one").getAttribute("d")?.includes("L"));
    await until(() => find("routes").textContent.includes("/report/"));
    const charts = [...page.querySelectorAll("figure")];
    const seen = {
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
    await until(() => find("pause").getAttribute("aria-pressed") === "true");
    await pause(100);
    const paused = lines(page);
    await pause(2200); // two samples come meanwhile
    seen.stands_still = paused === lines(page);
    find("moment").value = -1;
    find("moment").dispatchEvent(new Event("input"));
    await until(() => page.querySelector(".cursor").getAttribute("visibility") === "visible");
    seen.when = find("when").textContent;
    find("pause").click();
    await until(() => lines(page) !== paused);
    await report(width, seen);
  }
  onload = () => { watch(390); watch(1280); };
</script>
]]

describe("in a browser, the dashboard", function()
  if not browser.is_there() then
    pending "chromium is not installed"
    return
  end

  local watch = browser.watch { app = "dashboard", at = "/dashboard-app", page = PAGE }
  setup(function()
    watch:start()
    watch:open()
  end)
  teardown(function() watch:stop() end)

  for width, columns in pairs { [390] = 1, [1280] = 4 } do
    it(("draws at a width of %d"):format(width), function()
      local report = watch:report(width)
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

-- How `photon bench` tells what it has found, and refuses what it is wrongly told.
local bench = require "spec.bench_run"
local cjson = require "cjson"
local live = require "spec.live"

local run, read, write, url_of = bench.run, bench.read, bench.write, bench.url_of

local function refused(pattern, arguments, status)
  local output, errors, got = run(arguments)
  assert.equal("", output)
  assert.truthy(errors:find "^photon: [^\n]+\n$", errors)
  assert.truthy(errors:find(pattern), errors)
  assert.equal(status or 2, got)
end

describe("photon bench", function()
  setup(bench.start)
  teardown(bench.stop)

  it("tells people, too", function()
    local output, errors, status = run "-n 10 -c 2 %/five"
    assert.equal(0, status)
    assert.equal("", errors) -- no progress line where there is no terminal
    for _, pattern in ipairs { "^GET http://127%.0%.0%.1:%d+/five  %(sse, 2 connections",
      "\n  streams +10 opened, 10 ended", "\n  events +50  %(", "\n  errors +0\n", "\n  stalls +0 over 5 s\n",
      "\n  first event ", "p50 +p90 +p99 +p99%.9 +max", "\n  gap between events\n.-█",
      "used %d+ %% of one processor" } do
      assert.truthy(output:find(pattern), pattern .. " in " .. output)
    end
    output, errors, status = run("-n 3 -c 1 " .. url_of "empty")
    assert.equal(1, status)
    assert.truthy(output:find "errors +3\n +truncated +3  %(first: closed without a response%)")
    assert.truthy(errors:find "^photon: bench: nothing succeeded: closed without a response\n$")
    errors, status = select(2, run("-n 3 -c 1 " .. url_of "huge_event")) -- a head alone is no success
    assert.equal(1, status)
    assert.truthy(errors:find "^photon: bench: nothing succeeded: an event is larger than 1 MiB\n$", errors)
  end)

  it("draws a line while it runs, on a terminal", function()
    local program = live.command(("bench -d 2 -c 2 http://127.0.0.1:%d/"):format(bench.server.port))
    local pipe = io.popen(("timeout 60 script -qec \"%s\" /dev/null </dev/null"):format(program))
    local output = pipe:read "*a"
    pipe:close()
    if output == "" then return pending "script is not installed" end
    assert.truthy(output:find "\r\27%[K[%d.]+ of 2 s   [%d,]+ requests   [%d,.]+/s   [%d.]+ %wB/s   0 errors")
    assert.truthy(output:find "\r\27%[KGET http")
  end)

  it("ends early when it is interrupted, and tells what it knows", function()
    local result = bench.run_until_open(2)
    assert.equal(2, result.streams.open)
    assert.is_true(result.seconds < 3600)
  end)

  it("writes a page that needs nothing else", function()
    local page = bench.folder .. "/report.html"
    for arguments, words in pairs {
      ["-n 20 '%/five?a=<b>&c'"] = { "Gaps between events", "Events a second", "a=&lt;b&gt;&amp;c", "p99" },
      ["-n 20 %/"] = { "Latency by percentile", "Requests a second", "<path class=\"curve\"" },
      ["-n 1 %/"] = { "Latency" },
      ["-n 4 " .. url_of "empty"] = { "closed without a response", "<td>truncated<td>4" },
    } do
      local _, errors = run(arguments .. " --html " .. page)
      local text = read(page)
      assert.truthy(text:find "^<!doctype html>.*</html>\n$", errors)
      for _, word in ipairs(words) do assert.truthy(text:find(word, 1, true), word) end
      assert.is_nil(text:find("nan", 1, true) or text:find("inf%f[%W]"))
      for _, outside in ipairs { "src=", "href=", "url%(", "@import", "<script" } do
        assert.is_nil(text:find(outside), outside)
      end
      assert.truthy(text:find("prefers-color-scheme", 1, true))
      local _, opened = text:gsub("<svg", "")
      local _, closed = text:gsub("</svg>", "")
      assert.equal(opened, closed)
    end
    refused("cannot write the report /nowhere/x.html: No such file or directory; make its folder, or name another",
      "-d 1000 %/ --html /nowhere/x.html", 1) -- before anything is measured
    refused("not also x%.json %(%-%-json writes to standard output%)", "%/ --json x.json")
  end)

  describe("--compare", function()
    local function save(name, requests, p99)
      write(bench.folder .. "/" .. name, cjson.encode { photon_bench = 1, url = "http://x/", mode = "http",
        requests_per_second = requests, latency_ms = { p99 = p99 }, errors = { total = 0 },
        series = { { requests = 5 } }, client = { is_limit = requests > 1000 } })
    end

    local function compare() return run(("--compare %s/a %s/b"):format(bench.folder, bench.folder)) end

    it("tells the change, and which way is better", function()
      save("a", 1000, 2)
      save("b", 1200, 3)
      local output, errors, status = compare()
      assert.equal(0, status, errors)
      assert.truthy(output:find "\nrequests_per_second +1,000 +1,200 +%+20%.0 %%  better\n", output)
      assert.truthy(output:find "\nlatency_ms%.p99 +2%.00 ms +3%.00 ms +%+50%.0 %%  worse\n", output)
      assert.truthy(output:find "\nb  [^\n]*limited by its client\n")
      assert.is_nil(output:find "errors") -- none on either side
    end)

    it("reads what bench has written", function()
      for _, name in ipairs { "a", "b" } do
        local output = run "--json -n 10 %/five"
        write(bench.folder .. "/" .. name, output)
      end
      local output, _, status = compare()
      assert.equal(0, status)
      for _, name in ipairs { "events_per_second", "streams.opened", "first_event_ms.p50", "connect_ms.p99" } do
        assert.truthy(output:find("\n" .. name .. " ", 1, true), name .. output)
      end
      assert.truthy(output:find "\nevents +50 +50 +=\n")
    end)

    it("refuses other files", function()
      save("a", 1, 1)
      write(bench.folder .. "/b", "{}")
      refused("/b: not written by photon bench", ("--compare %s/a %s/b"):format(bench.folder, bench.folder), 1)
      write(bench.folder .. "/b", "{")
      refused("/b: ", ("--compare %s/a %s/b"):format(bench.folder, bench.folder), 1)
      refused("/none: No such file", ("--compare %s/a %s/none"):format(bench.folder, bench.folder), 1)
      refused("two files", ("--compare %s/a"):format(bench.folder))
    end)
  end)

  it("refuses wrong usage", function()
    refused("wants a URL", "")
    refused("no TLS", "https://example.com/")
    refused("write http://", "example.com")
    refused("host is missing", "http:///x")
    refused("port is a number", "http://h:x/")
    refused("port is a number", "http://h:0/")
    refused("port is a number", "http://h:65536/")
    refused("bracket", "http://[::1/")
    refused("authorization", "http://me:pw@h/")
    refused("no spaces", "'http://h/a b'")
    refused("path of the socket is missing", "unix:")
    refused("no.such.host.invalid", "-n 1 http://no.such.host.invalid/")
    refused("one URL", "% %")
    refused("does not know %-%-wrong", "% --wrong")
    refused("%-c wants a number of connections", "-c 0 %")
    refused("%-c wants a number of connections", "-c 1.5 %")
    refused("%-n wants a number", "-n many %")
    refused("%-d wants seconds", "-d 5s %")
    refused("%-%-rate wants", "--rate 0 %")
    refused("%-%-mode wants auto", "--mode fast %")
    refused("%-H nonsense", "-H nonsense %")
    refused("is no method", "-X 'a b' %")
    refused("No such file", "--body @" .. bench.folder .. "/none %")
    refused("%-d wants a value", "% -d")
    assert.truthy(run("--help"):find "usage: photon bench URL")
  end)
end)

-- `photon bench` against servers that behave and servers that do not. What it counts is asserted,
-- never how long it took.
local bench = require "spec.bench_run"
local cjson = require "cjson"
local live = require "spec.live"

local run, write, url_of = bench.run, bench.write, bench.url_of

-- The result as a table; the exit status must be the one that is wanted (0).
local function measure(arguments, wanted)
  local output, errors, status = run("--json " .. arguments)
  assert.equal(wanted or 0, status, errors .. output)
  return cjson.decode(output)
end

-- `n` errors of one kind, no others; `n` of nil: none at all.
local function assert_errors(result, kind, n)
  for name, count in pairs(result.errors) do
    local expected = (name == kind or name == "total") and n or 0
    assert.equal(expected, count, name)
  end
end

describe("photon bench", function()
  setup(bench.start)
  teardown(bench.stop)

  describe("in http mode", function()
    it("counts requests", function()
      local result = measure "-n 100 -c 7 %/"
      assert.equal("http", result.mode)
      assert.equal(100, result.requests)
      assert.equal(7, result.connections)
      assert.equal(7, result.connect_ms.count)
      assert.same({ ["200"] = 100 }, result.statuses)
      for _, name in ipairs { "latency_ms", "first_byte_ms" } do
        local times = result[name]
        assert.equal(100, times.count)
        local ordered = { times.min, times.p50, times.p90, times.p99, times.p999, times.max }
        for i = 2, #ordered do assert.is_true(ordered[i] >= ordered[i - 1]) end
        assert.is_true(times.min > 0 and times.mean >= times.min and times.mean <= times.max)
      end
      assert.is_nil(result.service_ms)
      assert_errors(result)
    end)

    it("accounts for every value and byte", function()
      local result = measure "-n 50 -c 3 %/"
      local sums = { histogram = 0, series = 0, bytes = 0 }
      for _, row in ipairs(result.histogram) do
        sums.histogram = sums.histogram + row.count
        assert.is_true(row.from_ms < row.to_ms)
      end
      for _, slot in ipairs(result.series) do
        sums.series, sums.bytes = sums.series + slot.requests, sums.bytes + slot.bytes
      end
      assert.same({ histogram = 50, series = 50, bytes = result.bytes }, sums)
      assert.is_true(result.bytes > 50 * #"hello\n")
    end)

    it("runs for a time", function()
      local result = measure "-d 0.5 -c 2 %/"
      assert.is_true(result.seconds >= 0.5)
      assert.is_true(result.requests > 2)
      assert_errors(result)
    end)

    it("needs no more connections than requests", function()
      assert.equal(3, measure("-n 3 -c 50 %/").connections)
    end)

    it("sends method, headers and body", function()
      local here = "127.0.0.1:" .. bench.server.port
      write(bench.folder .. "/body", "from a file")
      for arguments, expected in pairs {
        [""] = { method = "GET", body = "", accept = "*/*", host = here, agent = "photon-bench" },
        ["-H 'X-Name: me' -H 'User-Agent: x' -X PUT --body text"] = { method = "PUT", body = "text", name = "me",
          length = "4", accept = "*/*", host = here, agent = "x" },
        [("--body @%s/body"):format(bench.folder)] = { method = "POST", body = "from a file", length = "11",
          accept = "*/*", host = here, agent = "photon-bench" },
        ["-H 'Accept: text/plain' -H 'Host:elsewhere' -X POST"] = { method = "POST", body = "", length = "0",
          accept = "text/plain", host = "elsewhere", agent = "photon-bench" },
      } do
        assert.equal(2, measure("-n 2 -c 1 %/note " .. arguments).requests)
        assert.same(expected, cjson.decode(bench.server:get("/last").body))
      end
    end)

    it("sends large bodies", function()
      write(bench.folder .. "/body", ("x"):rep(1000000))
      assert.equal(6, measure(("-n 6 -c 3 --body @%s/body %%/note"):format(bench.folder)).requests)
      assert.equal("1000000", cjson.decode(bench.server:get("/last").body).length)
    end)

    it("asks for no body by HEAD", function()
      local result = measure "-n 10 -X HEAD %/"
      assert.equal(10, result.requests)
      assert_errors(result)
    end)

    it("follows a rate, and charges the requests that had to wait", function()
      -- One connection, 0.2 s a request: the fifth of those that are due at once waits for four.
      local result = measure "--rate 1000 -n 5 -c 1 %/slow"
      assert.equal(5, result.requests)
      assert.equal(1000, result.rate)
      assert.equal(5, result.latency_ms.count)
      assert.equal(5, result.service_ms.count)
      assert.is_true(result.latency_ms.max >= 900)
      assert.is_true(result.latency_ms.max > result.service_ms.max)
      assert.is_true(result.latency_ms.p50 >= 500)
    end)

    it("counts what is due and was never answered", function()
      local result = measure("--rate 100 -d 1 -c 1 " .. url_of "mute", 1)
      assert.equal(0, result.requests)
      assert.is_true(math.abs(result.unfinished.count - 100 * result.seconds) < 5)
      assert.equal(result.unfinished.count, result.latency_ms.count)
      assert.is_true(result.unfinished.oldest_ms >= 900)
    end)

    it("opens a connection for each request where it must", function()
      local result = measure("-n 6 -c 2 " .. url_of "one_each")
      assert.equal(6, result.requests)
      assert.equal(6, result.connect_ms.count)
      assert_errors(result)
    end)
  end)

  describe("in sse mode", function()
    it("counts streams and events", function()
      local result = measure "-n 20 -c 4 %/five"
      assert.equal("sse", result.mode)
      assert.same({ opened = 20, ended = 20, open = 0 }, result.streams)
      assert.equal(100, result.events)
      assert.equal(20, result.first_event_ms.count)
      assert.equal(20, result.first_byte_ms.count)
      assert.equal(80, result.gap_ms.count)
      assert.equal(0, result.stalls)
      assert_errors(result)
    end)

    it("counts streams that are still open", function()
      local result = bench.run_until_open(8)
      assert.same({ opened = 8, ended = 0, open = 8 }, result.streams)
      assert.equal(8, result.events)
      assert.is_true(result.comments >= 8)
      assert_errors(result)
    end)

    it("measures answers to a POST", function()
      local result = measure "-n 3 --body 'so many words' %/answer"
      assert.equal(9, result.events)
      assert.equal("POST", result.method)
    end)

    it("reads streams by their rules, however they are cut", function()
      local result = measure("-n 2 -c 2 " .. url_of "pieces")
      assert.equal(4, result.events)
      assert.equal(2, result.streams.ended)
      result = measure("-n 3 -c 1 " .. url_of "until_close")
      assert.equal(6, result.events)
      assert.equal(3, result.comments)
      assert.equal(3, result.streams.ended)
      assert_errors(result)
    end)

    it("takes a stream for a response when it is told to", function()
      local result = measure "-n 4 --mode http %/five"
      assert.equal(4, result.requests)
      assert.is_nil(result.events)
    end)

    it("takes a response for a stream when it is told to", function()
      local result = measure "-n 4 --mode sse %/"
      assert.same({ opened = 4, ended = 4, open = 0 }, result.streams)
      assert.equal(0, result.events)
      assert_errors(result)
    end)

    it("counts silences", function()
      local result = measure("-d 4 --stall 0.5 -c 3 " .. url_of "stall") -- however late they connect
      assert.equal(3, result.stalls)
      assert.equal(3, result.streams.open)
      assert.equal(0, measure("-d 0.5 --stall 30 -c 3 " .. url_of "stall").stalls)
    end)
  end)

  describe("tells errors by their kind:", function()
    for _, case in ipairs {
      -- way, kind, mode, events of each
      { "truncated_body", "truncated", "http" },
      { "truncated_chunk", "truncated", "sse", 1 },
      { "no_last_chunk", "truncated", "sse", 2 },
      { "within_event", "truncated", "sse", 1 },
      { "empty", "truncated", "http" },
      { "reset", "reset", "http" },
      { "bad_chunk", "framing", "sse", 1 },
      { "bad_head", "framing", "http" },
      { "unavailable", "status", "http" },
      { "huge_event", "framing", "sse", 0 },
    } do
      local way, kind, mode, events = unpack(case, 1, 4)
      it(way, function()
        local has_events = (events or 0) > 0
        local result = measure("-n 4 -c 2 " .. url_of(way), has_events and 0 or 1)
        assert.equal(mode, result.mode)
        assert_errors(result, kind, 4)
        assert.truthy(#result.error_examples[kind] > 5)
        if mode == "http" then assert.equal(0, result.requests) end
        if events then assert.equal(4 * events, result.events) end
      end)
    end

    it("extra", function()
      -- What comes after the end is that, or the begin of the next response, as the bytes are cut.
      local result = cjson.decode((run("--json -n 4 -c 2 " .. url_of "extra")))
      assert.is_true(result.errors.framing >= 2)
      assert.equal(4, result.requests + result.errors.framing)
    end)

    it("reset_stream", function()
      -- A reset may overtake what was sent before it.
      local result = cjson.decode((run("--json --mode sse -n 4 -c 2 " .. url_of "reset_stream")))
      assert_errors(result, "reset", 4)
      assert.equal(result.streams.opened, result.events)
      assert.equal(0, result.streams.ended)
    end)

    it("connect", function()
      local result = measure("-n 4 -c 2 http://127.0.0.1:1/", 1)
      assert_errors(result, "connect", 4)
      assert.equal("Connection refused", result.error_examples.connect)
      assert_errors(measure(("-n 2 unix:%s/none:/"):format(bench.folder), 1), "connect", 2)
    end)

    it("timeout", function()
      local result = measure("-n 4 -c 2 --timeout 0.2 " .. url_of "mute", 1)
      assert_errors(result, "timeout", 4)
      assert.equal("no response within 0.2 s", result.error_examples.timeout)
    end)

    it("status of a page, which may succeed later", function()
      local result = measure("-n 6 -c 2 %/gone", 1)
      assert_errors(result, "status", 6)
      assert.same({ ["410"] = 6 }, result.statuses)
      assert.equal("status 410", result.error_examples.status)
    end)

    it("status of a stream", function()
      assert_errors(measure("-n 3 --mode sse %/gone", 1), "status", 3)
      local result = measure("-n 3 " .. url_of "stream_refused", 1)
      assert.equal("sse", result.mode)
      assert_errors(result, "status", 3)
    end)

    it("type of what is no stream any more", function()
      local result = measure("-n 4 -c 1 " .. url_of "turncoat")
      assert.equal("sse", result.mode)
      assert.equal(2, result.events)
      assert_errors(result, "type", 2)
    end)
  end)

  it("asks as often as it says", function()
    local function count() return cjson.decode(bench.server:get("/counts").body).truncated_body end
    local before = count()
    measure("-n 9 -c 3 " .. url_of "truncated_body", 1)
    assert.equal(9, count() - before)
  end)

  it("measures a unix socket", function()
    local unix = live.start { app = "spec/bench_app.lua", flags = ("--listen unix:%s/s"):format(bench.folder) }
    assert.equal(40, measure(("-n 40 -c 4 unix:%s/s"):format(bench.folder)).requests)
    assert.equal(10, measure(("-n 2 'unix:%s/s:/five?x=1'"):format(bench.folder)).events)
    unix:stop()
  end)
end)

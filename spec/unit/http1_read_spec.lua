-- What llhttp leaves to the reader, one test for each; then bodies, and the reader over several
-- requests.
local reader = require "spec.unit.http1_reader"

local HOST, get, chunked, told = reader.HOST, reader.get, reader.chunked, reader.told
local read, names = reader.read_surely, reader.names

local function head_of(bytes)
  local events = read(bytes)
  assert.equal("head", events[1].event, reader.describe(events))
  return events[1]
end

local function body_of(events)
  return events[2].pieces and table.concat(events[2].pieces)
end

describe("what llhttp leaves to the reader:", function()
  it("two Host lines, or none, or an invalid one", function()
    assert.equal("400", told(get(HOST)))
    assert.equal("400", told "GET / HTTP/1.1\r\nX-Host: a\r\n\r\n")
    assert.equal("400", told "GET / HTTP/1.1\r\nHost: a b\r\n\r\n")
    assert.equal("head end", told(get()))
  end)

  it("transfer codings beside or in place of chunked", function()
    local function coded(value)
      return told("POST / HTTP/1.1\r\n" .. HOST .. "Transfer-Encoding: " .. value .. "\r\n\r\n0\r\n\r\n")
    end
    for _, value in ipairs { "cow, chunked", "identity, chunked", "gzip, chunked", "identity", ",chunked",
      "xchunked", "chunk" } do
      assert.equal("501", coded(value), value)
    end
    for _, value in ipairs { "chunked, identity", "chunked;q=1", "chunked chunked", "chunked,",
      "chunked, chunked", "chunked\0", "\11chunked" } do
      assert.truthy(coded(value):find "^[45]0[01]$", value)
    end
    assert.equal("400", told("POST / HTTP/1.1\r\n" .. HOST
      .. "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
    assert.equal("head end", told("POST / HTTP/1.1\r\n" .. HOST
      .. "Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n"))
  end)

  it("an upgrade that is not taken: body and next request live", function()
    local upgrade = "Connection: upgrade\r\nUpgrade: foo/2\r\n"
    local events = read(get(upgrade .. "Content-Length: 5\r\n") .. "hello" .. get(nil, "/next"))
    assert.equal("head body end head end", names(events))
    assert.equal("hello", body_of(events))
    assert.equal("/next", events[4].path)
    events = read(get(upgrade) .. get(nil, "/next"))
    assert.equal("head end head end", names(events))
    assert.equal("/next", events[3].path)
    events = read(get(upgrade .. "Transfer-Encoding: chunked\r\n") .. "2\r\nhi\r\n0\r\n\r\n" .. get(nil, "/next"))
    assert.equal("head body end head end", names(events))
  end)

  it("bytes after a request with Connection: close", function()
    local events, one = read(get "Connection: close\r\n" .. get(nil, "/smuggled"))
    assert.equal("head end", names(events))
    assert.equal("", one.rest)
    assert.equal("head end", told(get "Connection: close\r\n" .. "\0\1junk"))
    assert.equal("head end", told(get(nil, "/", "1.0") .. get()))
  end)

  it("an empty Transfer-Encoding, and versions that are not ours", function()
    assert.equal("400", told(get "Transfer-Encoding:\r\nContent-Length: 5\r\n" .. "hello"))
    assert.equal("400", told(get "Transfer-Encoding:\r\n"))
    assert.equal("400", told(get "Transfer-Encoding: \t\r\n"))
    for _, version in ipairs { "2.0", "0.9", "1.2", "3.0", "9.9" } do
      assert.equal("505", told(get("", "/", version)), version)
    end
    for _, version in ipairs { "1", "11", "1.10", "1.", ".1", "1.1 ", "a.b", "1,1", "01.1" } do
      assert.equal("400", told(get("", "/", version)), version)
    end
    assert.equal("400", told("GET / http/1.1\r\n" .. HOST .. "\r\n"))
    assert.equal("400", told "GET /\r\n")
    assert.equal("505", told "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
  end)

  it("percent escapes, which the router checks", function()
    assert.equal("/a%zz%", head_of(get(nil, "/a%zz%")).path)
  end)

  it("chunk extensions and trailers without a limit", function()
    local limits = { max_header = 256 }
    local line = "1;" .. ("e"):rep(100) .. "\r\nz\r\n"
    assert.equal("head body end", told(chunked(line:rep(2), "0\r\n\r\n"), limits))
    assert.equal("head body 431", told(chunked(line:rep(3), "0\r\n\r\n"), limits))
    assert.equal("head 431", told(chunked("1;" .. ("e"):rep(1000)), limits))
    assert.equal("head end", told(chunked("0\r\n" .. ("X: y\r\n"):rep(40), "\r\n"), limits))
    assert.equal("head 431", told(chunked("0\r\n" .. ("X: y\r\n"):rep(43), "\r\n"), limits))
    assert.equal("head 431", told(chunked("0\r\nX: " .. ("y"):rep(1000)), limits))
    -- Chunks without extensions are not limited by number.
    assert.equal("head body end", told(chunked(("1\r\nz\r\n"):rep(1000), "0\r\n\r\n"), limits))
  end)

  it("a tab after a field value", function()
    local head = head_of(get "X-A: a\tb\t\r\nConnection:\tclose \t\r\nContent-Length:\t0\t\r\n")
    assert.same({ "host: photon.test", "x-a: a\tb", "connection: close", "content-length: 0" }, head.headers)
    assert.is_false(head.keep_alive)
    assert.equal("head body end", told("POST / HTTP/1.1\r\nHost: a\t\r\nTransfer-Encoding:\tchunked\t\r\n\r\n"
      .. "1\r\nz\r\n0\r\nX-A:\ta\t\r\n\r\n"))
    assert.equal("head end", told(get "X-A:\t\r\n"))
  end)

  it("chunk sizes up to 2^64-1, refused when they are announced", function()
    for _, size in ipairs { "ffffffffffffffff", "fffffffffffffffe", "8000000000000000", "100001" } do
      assert.equal("head 413", told(chunked(size .. "\r\n")), size)
    end
    assert.equal("head body 413", told(chunked("5\r\nhello\r\nfffffffffffffffb\r\n")))
    assert.equal("head 400", told(chunked("10000000000000000\r\n")))
    assert.equal("head 400", told(chunked("00000000000000001\r\nz")))
    assert.equal("head body end", told(chunked("5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n"), { max_body = 10 }))
    assert.equal("head body 413", told(chunked("5\r\nhello\r\n6\r\n"), { max_body = 10 }))
    assert.equal("head 413", told("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", { max_body = 10 }))
  end)

  it("a bare CR or a bare LF as a line end", function()
    for _, bytes in ipairs {
      "GET / HTTP/1.1\rHost: a\r\r", "GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\n\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n", "\nGET / HTTP/1.1\r\n",
      "\rGET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX: b\rContent-Length: 5\r\n\r\n",
    } do
      assert.equal("400", told(bytes), ("%q"):format(bytes))
    end
    for _, body in ipairs { "1\nz\r\n0\r\n\r\n", "1\r\nz\n0\r\n\r\n", "1\rz\r\n0\r\n\r\n", "1;a\nz\r\n0\r\n\r\n",
      "1\r\nz\r0\r\n\r\n" } do
      assert.truthy(told(chunked(body)):find "400$", ("%q"):format(body))
    end
    assert.equal("head 400", told(chunked "0\r\nX: y\n\r\n"))
    assert.equal("head 400", told(chunked "0\r\nX: y\rZ: z\r\n\r\n"))
    assert.equal("head 400", told(chunked "0\r\n\n"))
  end)

  it("folded field lines, also the first one and trailers", function()
    for _, blank in ipairs { " ", "\t" } do
      assert.equal("400", told("GET / HTTP/1.1\r\n" .. blank .. "X: y\r\n" .. HOST .. "\r\n"))
      assert.equal("400", told(get("Transfer-Encoding:\r\n" .. blank .. "chunked\r\n")))
      assert.equal("400", told(get("X: y\r\n" .. blank .. "\r\n")))
      assert.equal("400", told(get("X: y\r\n" .. blank .. "z\r\n")))
      assert.equal("head 400", told(chunked("0\r\nX: y\r\n" .. blank .. "z\r\n\r\n")))
    end
  end)

  it("Transfer-Encoding under HTTP/1.0", function()
    assert.equal("400", told("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
  end)
end)

describe("the body", function()
  it("comes in chunks of every size", function()
    local events = read(chunked("A\r\n0123456789\r\n1;a;b=c;d=\"x;\\\"y\"\r\n\0\r\n3\r\n\r\n0\r\n0;z\r\nX: y\r\n\r\n",
      get(nil, "/next")))
    assert.equal("head body end head end", names(events))
    assert.equal("0123456789\0\r\n0", body_of(events))
    assert.equal("/next", events[4].path)
  end)

  it("is refused when its framing is odd", function()
    for _, body in ipairs { "\r\n", "x\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", " 1\r\n", "\t1\r\n", "1 \r\n", "1 ;a\r\n",
      "1;\r\n", "1;=a\r\n", "1;a=\r\n", "1;a=\"b\r\n", "1;a=\"b\"c\r\n", "1;a b\r\n", "1;a=\0\r\n", "1;\195\r\n",
      "1,a\r\n" } do
      assert.equal("head 400", told(chunked(body)), ("%q"):format(body))
    end
    for _, body in ipairs { "1\r\nzz", "1\r\nzz\r\n", "1\r\nz0\r\n", "1\r\nz\r\n\r\n" } do
      assert.equal("head body 400", told(chunked(body)), ("%q"):format(body))
    end
    for _, trailer in ipairs { "X\r\n", ": y\r\n", "X : y\r\n", "X: \0\r\n", "X: \127\r\n", "\1: y\r\n" } do
      assert.equal("head 400", told(chunked("0\r\n" .. trailer .. "\r\n")), ("%q"):format(trailer))
    end
  end)

  it("is not changed by trailers that speak of framing", function()
    local events = read(chunked("1\r\nz\r\n0\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n"
      .. "Connection: close\r\nUpgrade: x\r\n\r\n", get(nil, "/next")))
    assert.equal("head body end head end", names(events))
    assert.equal(1, #events[1].headers - 1)
  end)

  it("obeys a limit that is set after the head", function()
    local bytes = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world"
    local function limited(n, text)
      return names((reader.read(text or bytes, nil, { max_body = 10 }, function(_, set) set(n) end)))
    end
    assert.equal("head body end", limited(11))
    assert.equal("head 413", limited(5))
    assert.equal("head 413", limited(0))
    -- It holds for this one request.
    local first = true
    local events = reader.read(bytes .. bytes, nil, { max_body = 10 }, function(_, set)
      if first then set(11) end
      first = false
    end)
    assert.equal("head body end head 413", names(events))
  end)
end)

describe("the reader", function()
  it("knows when it is between requests", function()
    local one = reader.new()
    assert.is_true(one.is_idle())
    one.feed "\r\n"
    assert.is_true(one.is_idle())
    one.feed "\r"
    assert.is_true(one.is_idle())
    one.feed "\nG"
    assert.is_false(one.is_idle())
    one.feed "ET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"
    assert.is_false(one.is_idle())
    one.feed "z"
    assert.is_true(one.is_idle())
    one.feed "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    assert.is_true(one.is_idle())
  end)

  it("starts each request anew", function()
    local events = read(get "Connection: upgrade\r\nUpgrade: a\r\nX: y\r\n" .. chunked("1\r\nz\r\n0\r\n\r\n")
      .. "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" .. get("", "/last"))
    assert.equal("head end head body end head end head end", names(events))
    assert.same({ "host: photon.test" }, events[8].headers)
    assert.is_false(events[8].is_http10)
  end)
end)

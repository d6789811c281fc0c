-- What the parser and the JSON library leave to us, and the kinds of fault that brought down servers
-- of this kind, as far as a client can see them.
local live = require "spec.live"
local replies = require "spec.replies"
local socket = require "spec.socket"

local server

setup(function() server = live.start { app = "spec/reports/app.lua" } end)
teardown(function() server:stop() end)

local function head(request_line, ...)
  return table.concat({ request_line .. " HTTP/1.1", "host: photon.test", ... }, "\r\n") .. "\r\n\r\n"
end

local NEXT = head "GET /admin"

-- One refusal with one of the statuses, a close, and nothing behind it was run.
local function refused(bytes, ...)
  local list, is_closed = server:exchange(bytes .. NEXT, { "POST" }, 2)
  assert.equal(1, #list)
  local allowed = { [400] = true }
  for _, status in ipairs { ... } do allowed[status] = true end
  assert.truthy(allowed[list[1].status], list[1].status)
  assert.is_true(is_closed)
  assert.same({}, list[1].faults)
  assert.equal('{"ran":false}', server:get("/admin/ran").body)
end

local CHUNKED = "transfer-encoding: chunked"

describe("the parser lets pass, and we refuse:", function()
  local variants = {
    ["two Hosts"] = "GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    ["the same Host twice"] = "GET / HTTP/1.1\r\nhost: a\r\nhost: a\r\n\r\n",
    ["no Host"] = "GET / HTTP/1.1\r\n\r\n",
    ["a Host with a path"] = "GET / HTTP/1.1\r\nhost: a/b\r\n\r\n",
    ["a Host with a space"] = "GET / HTTP/1.1\r\nhost: a b\r\n\r\n",
    ["cow, chunked"] = head("POST /echo", "transfer-encoding: cow, chunked") .. "0\r\n\r\n",
    ["identity, chunked"] = head("POST /echo", "transfer-encoding: identity, chunked") .. "0\r\n\r\n",
    ["chunked, chunked"] = head("POST /echo", "transfer-encoding: chunked, chunked") .. "0\r\n\r\n",
    ["an empty coding beside a length"] = head("POST /echo", "transfer-encoding: ", "content-length: 2") .. "hi",
    ["HTTP/2.0"] = "GET / HTTP/2.0\r\nhost: a\r\n\r\n",
    ["HTTP/0.9"] = "GET / HTTP/0.9\r\nhost: a\r\n\r\n",
    ["a coding under HTTP/1.0"] = "POST /echo HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    ["a folded line"] = head("GET /", "x-a: b\r\n c"),
    ["a folded coding"] = "POST /echo HTTP/1.1\r\nhost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    ["a bare CR in a field"] = "GET / HTTP/1.1\r\nhost: a\r\nx-a: b\rx-c: d\r\n\r\n",
    ["a bare CR for a line end"] = "GET / HTTP/1.1\rhost: a\r\r",
    ["a malformed escape"] = head "GET /users/%zz",
    ["a length over 64 bits"] = head("POST /echo", "content-length: 18446744073709551616"),
    ["a length with a sign"] = head("POST /echo", "content-length: +2") .. "hi",
    ["a chunk size over 64 bits"] = head("POST /echo", CHUNKED) .. "10000000000000000\r\n",
    ["a chunk size in words"] = head("POST /echo", CHUNKED) .. "five\r\nhello\r\n0\r\n\r\n",
  }
  for name, bytes in pairs(variants) do
    it(name, function() refused(bytes, 501, 505, 413) end)
  end
  it("a folded line, wherever it is split", function()
    local bytes = head("GET /", "x-a: b\r\n c")
    for at = 1, #bytes - 1 do
      local s = server:connect()
      s:send(bytes:sub(1, at))
      s:receive(0.001)
      s:send(bytes:sub(at + 1))
      assert.is_true(s:closes())
      assert.equal(400, replies.read(s.received, {}, true)[1].status)
      s:close()
    end
  end)
  it("but a tab after a value is legal", function()
    assert.equal(200, server:exchange(head("GET /", "x-a: b\t"))[1].status)
  end)
end)

describe("sizes are bounded before the bytes come:", function()
  it("a length", function()
    refused(head("POST /small", "content-length: 1001"), 413)
    refused(head("POST /small", "content-length: 18446744073709551615"), 413)
  end)
  it("a chunk's size", function()
    refused(head("POST /small", CHUNKED) .. "3e9\r\n", 413)
    refused(head("POST /small", CHUNKED) .. "ffffffffffffffff\r\n", 413)
  end)
  it("chunks together", function()
    refused(head("POST /small", CHUNKED) .. ("64\r\n" .. ("x"):rep(100) .. "\r\n"):rep(11), 413)
  end)
  it("chunk extensions", function()
    refused(head("POST /echo", CHUNKED) .. ("1;" .. ("e"):rep(1000) .. "\r\nx\r\n"):rep(100), 413, 431)
  end)
  it("and the largest that is allowed is taken", function()
    assert.equal(200, server:request("POST", "/small", {}, ("x"):rep(1000)).status)
  end)
end)

describe("what is left unread is no request:", function()
  local SMUGGLED = head "GET /admin"
  local function answers(bytes, methods)
    local list = server:exchange(bytes .. head("GET /", "connection: close"), methods, 4)
    assert.equal('{"ran":false}', server:get("/admin/ran").body)
    return list
  end
  local length = "content-length: " .. #SMUGGLED

  it("the body of a handler that does not read it", function()
    assert.equal("unread", answers(head("POST /unread", length) .. SMUGGLED, { "POST" })[1].body)
  end)
  it("of an unknown path", function()
    assert.equal(404, answers(head("POST /nowhere", length) .. SMUGGLED, { "POST" })[1].status)
  end)
  it("of a static route", function()
    assert.equal("ok", answers(head("GET /", length) .. SMUGGLED, { "GET" })[1].body)
  end)
  it("of HEAD", function()
    assert.equal(200, answers(head("HEAD /", length) .. SMUGGLED, { "HEAD" })[1].status)
  end)
  it("of an upgrade that is not taken", function()
    local fields = { "connection: upgrade", "upgrade: made-up", length }
    assert.equal(SMUGGLED, answers(head("POST /echo", unpack(fields)) .. SMUGGLED, { "POST" })[1].body)
  end)
  it("and an upgrade without a body leaves the next request", function()
    local list = answers(head("GET /users/1", "connection: upgrade", "upgrade: made-up"), {})
    assert.equal('{"id":"1"}', list[1].body)
    assert.equal("ok", list[2].body)
  end)
  it("nothing after `connection: close`", function()
    local list, is_closed = server:exchange(head("GET /", "connection: close") .. SMUGGLED, {}, 2)
    assert.equal(1, #list)
    assert.is_true(is_closed)
    assert.equal('{"ran":false}', server:get("/admin/ran").body)
  end)
end)

describe("slow and lost peers", function()
  local hasty
  setup(function()
    hasty = live.start { app = "spec/reports/app.lua", env = "PHOTON_HEADER_TIMEOUT=0.5 PHOTON_BODY_TIMEOUT=0.5" }
  end)
  teardown(function() hasty:stop() end)

  it("do not hold half a head open", function()
    local s = hasty:connect()
    s:send "GET / HTTP/1.1\r\nhost: a\r\nx-a"
    assert.is_true(s:closes())
    local reply = replies.read(s.received, {}, true)[1]
    if reply then assert.equal(408, reply.status) end
    s:close()
  end)
  it("nor half a body", function()
    local s = hasty:connect()
    s:send(head("POST /echo", "content-length: 10") .. "half")
    assert.is_true(s:closes())
    local reply = replies.read(s.received, { "POST" }, true)[1]
    if reply then assert.equal(408, reply.status) end
    s:close()
  end)
  it("may go at any point", function()
    local request = head("POST /echo", "content-length: 5") .. "hello"
    for at = 1, #request do
      local s = server:connect()
      s:send(request:sub(1, at))
      s:reset()
    end
    assert.equal("ok", server:get("/").body)
  end)
  it("may ask for much before they read", function()
    local s = server:connect()
    assert.is_true(s:send((head "GET /users/7"):rep(5000)))
    assert.is_true(s:receive_until(function(received)
      return select(2, received:gsub('{"id":"7"}', "")) == 5000
    end))
    s:close()
  end)
end)

describe("numbers in JSON", function()
  for _, text in ipairs { "9007199254740991", "-9007199254740991", "0.1", "1234567890.123456", "1e+300", "5e-324",
    "123456789012345680" } do
    it("keep their value: " .. text, function()
      local back = server:request("POST", "/back", { "content-type: application/json" }, "[" .. text .. "]").body
      assert.equal(tonumber(text), tonumber(back:match "%[(.*)%]"))
    end)
  end
end)

describe("no descriptors left", function()
  it("is a pause, not an end", function()
    local small = live.start { app = "spec/reports/app.lua", before = "ulimit -n 48;" }
    local open = {}
    for i = 1, 100 do
      open[i] = socket.connect(small.port)
      if open[i] then open[i]:send "GET /" end
    end
    socket.sleep(0.1)
    for _, s in pairs(open) do s:close() end
    socket.eventually(function()
      local list = small:exchange(head "GET /")
      return list[1] and list[1].status == 200
    end, "a request is answered")
    local _, lines = small:log():gsub("\n", "")
    assert.truthy(lines < 50, lines .. " lines in the log")
    small:stop()
  end)
end)

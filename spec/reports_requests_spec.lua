-- What went wrong with requests in other servers: framing, pipelining, Expect, limits.
local live = require "spec.live"
local replies = require "spec.replies"

local server

setup(function() server = live.start { app = "spec/reports/app.lua" } end)
teardown(function() server:stop() end)

local function statuses(list)
  local found = {}
  for i, reply in ipairs(list) do found[i] = reply.status end
  return found
end

local function head(request_line, ...)
  return table.concat({ request_line .. " HTTP/1.1", "host: photon.test", ... }, "\r\n") .. "\r\n\r\n"
end

describe("two lengths in one request", function()
  local SMUGGLED = head "GET /admin"
  local variants = {
    ["length and coding"] = { "content-length: 4", "transfer-encoding: chunked" },
    ["two lengths"] = { "content-length: 4", "content-length: 5" },
    ["a list of lengths"] = { "content-length: 5, 6" },
    ["an unknown coding"] = { "transfer-encoding: xchunked" },
    ["a space before the colon"] = { "transfer-encoding : chunked" },
    ["a coding before chunked"] = { "transfer-encoding: gzip, chunked" },
    ["an empty coding and a length"] = { "transfer-encoding:", "content-length: 5" },
  }
  for name, fields in pairs(variants) do
    it("is refused: " .. name, function()
      local list, is_closed = server:exchange(head("POST /echo", unpack(fields)) .. "0\r\n\r\n" .. SMUGGLED, {}, 2)
      assert.equal(1, #list)
      assert.truthy(list[1].status == 400 or list[1].status == 501, list[1].status)
      assert.is_true(is_closed)
      assert.equal('{"ran":false}', server:get("/admin/ran").body)
    end)
  end
  it("is refused: chunked under HTTP/1.0", function()
    local request = "POST /echo HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n" .. SMUGGLED
    local list, is_closed = server:exchange(request, {}, 2)
    assert.same({ 400 }, statuses(list))
    assert.is_true(is_closed)
  end)
end)

describe("requests in one write", function()
  local REQUESTS = head "GET /slow" .. head("POST /echo", "content-length: 3") .. "abc" .. head "GET /users/7"
    .. head("GET /", "connection: close")

  local function check(list, is_closed)
    local bodies = {}
    for i, reply in ipairs(list) do bodies[i] = reply.body end
    assert.same({ "slow", "abc", '{"id":"7"}', "ok" }, bodies)
    assert.is_true(is_closed)
  end

  it("are answered in order, then the connection is closed", function()
    local list, is_closed = server:exchange(REQUESTS .. head "GET /admin", {}, 5)
    check(list, is_closed)
  end)
  it("wherever they are split", function()
    for at = 1, #REQUESTS - 1 do
      local s = server:connect()
      s:send(REQUESTS:sub(1, at))
      s:receive(0.001)
      s:send(REQUESTS:sub(at + 1))
      s:closes()
      check(replies.read(s.received, {}, s.is_closed), s.is_closed)
      s:close()
    end
  end)
end)

describe("Expect: 100-continue", function()
  local function ask(target, fields)
    local s = server:connect()
    s:send(head("POST " .. target, "expect: 100-continue", unpack(fields)))
    return s
  end
  local function has_head(received) return received:find("\r\n\r\n", 1, true) end

  it("is answered before the body comes", function()
    local s = ask("/echo", { "content-length: 5" })
    assert.is_true(s:receive_until(has_head))
    assert.equal("HTTP/1.1 100 Continue\r\n\r\n", s.received)
    s:send "hello"
    assert.is_true(s:receive_until(function(received) return received:find "hello$" end))
    local list = replies.read(s.received, { "POST" }, false)
    assert.same({ 200 }, statuses(list))
    assert.equal(1, #list[1].interim)
    s:close()
  end)

  local function refused(status, target, fields)
    local s = ask(target, fields)
    assert.is_true(s:receive_until(has_head))
    assert.falsy(s.received:find("100 Continue", 1, true))
    assert.truthy(s.received:find("^HTTP/1.1 " .. status), s.received)
    s:close()
  end
  it("not when the body is too large", function() refused(413, "/small", { "content-length: 1001" }) end)
  it("not when the path is unknown", function() refused(404, "/nowhere", { "content-length: 5" }) end)
  it("not when the method is another", function() refused(405, "/users/1", { "content-length: 5" }) end)
  it("not when nobody wants the body", function() refused(200, "/unread", { "content-length: 5" }) end)
  it("not to HTTP/1.0", function()
    local request = "POST /echo HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\nhi"
    local list = server:exchange(request, { "POST" })
    assert.same({ 200 }, statuses(list))
    assert.equal(0, #list[1].interim)
  end)
  it("another expectation cannot be met", function()
    local list = server:exchange(head("POST /echo", "expect: 200-maybe", "content-length: 2") .. "hi", { "POST" })
    assert.truthy(list[1].status == 417 or list[1].status == 200, list[1].status)
  end)
end)

describe("HEAD", function()
  it("has GET's headers and no body, and the next request is understood", function()
    local list = server:exchange(head "HEAD /" .. head "GET /", { "HEAD", "GET" }, 2)
    assert.same({ 200, 200 }, statuses(list))
    assert.equal("2", list[1]:get "content-length")
    assert.equal(list[2]:get "etag", list[1]:get "etag")
    assert.equal("ok", list[2].body)
  end)
  it("of a handler", function()
    local list = server:exchange(head "HEAD /users/12" .. head "GET /users/12", { "HEAD", "GET" }, 2)
    assert.equal(list[2]:get "content-length", list[1]:get "content-length")
    assert.equal(list[2]:get "content-type", list[1]:get "content-type")
  end)
  it("of a stream runs nothing", function()
    local list = server:exchange(head "HEAD /events" .. head "GET /", { "HEAD", "GET" }, 2)
    assert.same({ 200, 200 }, statuses(list))
    assert.equal("text/event-stream", list[1]:get "content-type")
  end)
  it("of an unknown path", function()
    local list = server:exchange(head "HEAD /missing" .. head "GET /", { "HEAD", "GET" }, 2)
    assert.same({ 404, 200 }, statuses(list))
  end)
end)

describe("limits", function()
  local function request_with(count) -- beside Host, which does not count
    local fields = {}
    for i = 1, count do fields[i] = "x-" .. i .. ": y" end
    return head("GET /", unpack(fields))
  end
  it("count header fields", function()
    assert.equal(200, server:exchange(request_with(99))[1].status)
    assert.equal(200, server:exchange(request_with(100))[1].status)
    local list, is_closed = server:exchange(request_with(101), {}, 2)
    assert.same({ 431 }, statuses(list))
    assert.is_true(is_closed)
  end)
  it("bound a header line", function()
    local list, is_closed = server:exchange(head("GET /", "x-a: " .. ("y"):rep(65536)), {}, 2)
    assert.same({ 431 }, statuses(list))
    assert.is_true(is_closed)
  end)
  it("bound the target", function()
    local list, is_closed = server:exchange(head("GET /" .. ("y"):rep(65536)), {}, 2)
    assert.same({ 414 }, statuses(list))
    assert.is_true(is_closed)
  end)
  it("bound the trailers", function()
    local request = head("POST /echo", "transfer-encoding: chunked") .. "0\r\n"
    local list, is_closed = server:exchange(request .. ("x-a: " .. ("y"):rep(1000) .. "\r\n"):rep(1000), { "POST" }, 2)
    assert.truthy(#list <= 1)
    if list[1] then assert.truthy(list[1].status >= 400, list[1].status) end
    assert.is_true(is_closed)
  end)
  it("do not mind many small chunks", function()
    local chunks = ("1\r\nz\r\n"):rep(10000) .. "0\r\n\r\n"
    local reply = server:exchange(head("POST /echo", "transfer-encoding: chunked") .. chunks, { "POST" })[1]
    assert.equal(("z"):rep(10000), reply.body)
  end)
  it("leave the others alone", function()
    local other = server:connect()
    server:exchange(head("GET /" .. ("y"):rep(65536)), {}, 2)
    other:send(head "GET /")
    assert.is_true(other:receive_until(function(received) return received:find "ok$" end))
    other:close()
  end)
end)

describe("metrics", function()
  local function count_series()
    local _, count = server:get("/metrics").body:gsub("\n[%a_]+[{ ]", "")
    return count
  end
  it("do not grow with what clients invent", function()
    local function visit(from, to)
      for i = from, to do
        server:get("/random/" .. i * 7919)
        server:get("/users/" .. i * 7919)
        server:request("FOO" .. i, "/")
        server:exchange(("GET / HTTP/1.1\r\nhost: h%d.test\r\n\r\n"):format(i))
      end
    end
    visit(1, 2)
    count_series()
    local before = count_series()
    assert.truthy(before > 10)
    visit(3, 60)
    assert.equal(before, count_series())
  end)
end)

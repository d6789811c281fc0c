-- Heads: their limits, methods, targets, hosts, persistence, expectations and lengths.
local reader = require "spec.unit.http1_reader"

local HOST, get, told, read = reader.HOST, reader.get, reader.told, reader.read_surely

local function head_of(bytes)
  local events = read(bytes)
  assert.equal("head", events[1].event, reader.describe(events))
  return events[1]
end

describe("the head", function()
  it("is limited in size, target and number of fields, complete or not", function()
    local limits = { max_header = 200, max_target = 20, max_headers = 3 }
    local head = get("X: " .. ("y"):rep(200 - #get "X: \r\n") .. "\r\n")
    assert.equal(200, #head)
    assert.equal("head end", told(head, limits))
    assert.equal("431", told((head:gsub("X: ", "X:  ")), limits))
    assert.equal("431", told("GET / HTTP/1.1\r\nX: " .. ("y"):rep(300), limits))
    assert.equal("431", told("GET / HTTP/1.1\r\n" .. ("y"):rep(300), limits))
    assert.equal("head end", told(get(nil, "/" .. ("a"):rep(19)), limits))
    assert.equal("414", told(get(nil, "/" .. ("a"):rep(20)), limits))
    assert.equal("414", told("GET /" .. ("a"):rep(20), limits))
    assert.equal("", told("GET /" .. ("a"):rep(19), limits))
    assert.equal("head end", told(get "A: 1\r\nB: 2\r\nC: 3\r\n", limits))
    assert.equal("431", told(get "A: 1\r\nB: 2\r\nC: 3\r\nD", limits))
  end)

  it("may follow a few blank lines, not many", function()
    assert.equal("head end", told("\r\n\r\n" .. get()))
    assert.equal("head end head end", told(get() .. "\r\n" .. get()))
    assert.equal("400", told(("\r\n"):rep(20) .. get()))
  end)

  it("fails on junk as soon as it is seen", function()
    assert.equal("400", told "\22\3\1\2\0\1\0\1\252\3\3")
    assert.equal("400", told "\255")
    assert.equal("400", told "G\0")
    assert.equal("head end 400", told(get() .. "BROKEN\r\n"))
    assert.equal("400", told " / HTTP/1.1\r\n")
    assert.equal("400", told "GET  / HTTP/1.1\r\n")
    assert.equal("400", told "GET\t/ HTTP/1.1\r\n")
    assert.equal("400", told "GET / HTTP/1.1 \r\n")
    assert.equal("400", told "G(T / HTTP/1.1\r\n")
    assert.equal("400", told(get "X : y\r\n"))
    assert.equal("400", told(get "X\t: y\r\n"))
    assert.equal("400", told(get "X\r\n"))
    assert.equal("400", told(get ": y\r\n"))
    assert.equal("400", told(get "X: \127\r\n"))
    assert.equal("head end", told(get "X: \128\255\r\n"))
  end)

  it("has a method that is known, or 501", function()
    for i, method in ipairs { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND" } do
      local head = head_of(method .. " / HTTP/1.1\r\n" .. HOST .. "\r\n")
      assert.equal(method, head.method_name)
      assert.equal(i - 1, head.method)
    end
    for _, method in ipairs { "FROBNICATE", "get", "GETX", "G", "QUERY", "SETUP", "PLAY" } do
      assert.equal("501", told(method .. " / HTTP/1.1\r\n" .. HOST .. "\r\n"), method)
    end
    assert.equal("501", told("CONNECT photon.test:443 HTTP/1.1\r\n" .. HOST .. "\r\n"))
  end)

  it("has a target in origin, absolute or asterisk form", function()
    local head = head_of(get(nil, "/a/b?c=d?e"))
    assert.same({ "/a/b", "c=d?e", "photon.test" }, { head.path, head.query, head.host })
    head = head_of(get(nil, "http://other.test:81/a?b"))
    assert.same({ "/a", "b", "other.test:81" }, { head.path, head.query, head.host })
    assert.equal("http://other.test:81/a?b", head.target)
    head = head_of(get(nil, "HTTPS://other.test"))
    assert.same({ "/", "", "other.test" }, { head.path, head.query, head.host })
    head = head_of(get(nil, "http://other.test?b=c"))
    assert.same({ "/", "b=c", "other.test" }, { head.path, head.query, head.host })
    head = head_of(get(nil, "http://[::1]:80/"))
    assert.same({ "/", "", "[::1]:80" }, { head.path, head.query, head.host })
    head = head_of("OPTIONS * HTTP/1.1\r\n" .. HOST .. "\r\n")
    assert.same({ "*", "" }, { head.path, head.query })
    for _, target in ipairs { "*", "a", "a/b", "ftp://a/", "http://", "http:///a", "http://u@a/", "http://u:p@a/",
      "/a#b", "http:/a", "mailto:a", "/\\\127", "/\195\164", "**", "photon.test:80" } do
      assert.equal("400", told(get(nil, target)), target)
    end
  end)

  it("has a host that can be one", function()
    for _, host in ipairs { "a", "A.b-c.d", "a:80", "a:", "a:65535", "127.0.0.1", "[::1]", "[::1]:8080",
      "[2001:db8::1]:", "xn--a", "a_b", "a%20b" } do
      assert.equal(host, head_of("GET / HTTP/1.1\r\nHost: " .. host .. "\r\n\r\n").host)
    end
    for _, host in ipairs { "", "###", "a/b", "u@a", "a:b", "a:80a", "a:65536", "a:123456", ":80", "[::1", "[]",
      "[::g]", "[::1]x", "[1.2.3.4]", "::1", "a%2", "a%zz", "a b", "a,\"b", "[::1%25eth0]", "a\\b", "\195\164" } do
      assert.equal("400", told("GET / HTTP/1.1\r\nHost: " .. host .. "\r\n\r\n"), host)
    end
    assert.equal("", head_of("GET / HTTP/1.0\r\n\r\n").host)
    assert.equal("400", told "GET / HTTP/1.0\r\nHost: a b\r\n\r\n")
    assert.equal("400", told "GET http://a/ HTTP/1.1\r\n\r\n")
  end)

  it("says whether the peer stays", function()
    local function stays(fields, version) return head_of(get(fields, "/", version)).keep_alive end
    assert.is_true(stays "")
    assert.is_true(stays "Connection: closed\r\n")
    assert.is_true(stays "Connection: foo\r\n")
    assert.is_false(stays "Connection: Close\r\n")
    assert.is_false(stays "Connection: foo,\tclose , bar\r\n")
    assert.is_false(stays "Connection: keep-alive\r\nConnection: close\r\n")
    assert.is_false(stays("", "1.0"))
    assert.is_true(stays("Connection: Keep-Alive\r\n", "1.0"))
    assert.is_false(stays("Connection: keep-alive, close\r\n", "1.0"))
  end)

  it("says whether the peer waits for 100", function()
    local function waits(fields, version)
      return head_of(("POST / HTTP/%s\r\n%s%s\r\n"):format(version or "1.1", HOST, fields)).expects_continue
    end
    assert.is_true(waits "Expect: 100-Continue\r\nContent-Length: 5\r\n")
    assert.is_true(waits "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n")
    assert.is_false(waits "Expect: 100-continue\r\n")
    assert.is_false(waits "Content-Length: 5\r\n")
    assert.is_false(waits("Expect: 100-continue\r\nContent-Length: 5\r\n", "1.0"))
    assert.is_false(waits("Expect: other\r\nContent-Length: 5\r\n", "1.0"))
    for _, value in ipairs { "200-ok", "100-continue, x", "100-continue;a", "" } do
      assert.equal("417", told(get("Expect: " .. value .. "\r\n")), value)
    end
  end)

  it("has one length, of digits alone", function()
    local function length(value)
      return told(("POST / HTTP/1.1\r\n%sContent-Length: %s\r\n\r\n"):format(HOST, value))
    end
    assert.equal("head end", length "0")
    assert.equal("head end", length "000")
    assert.equal("head", length "5")
    assert.equal("head 413", length "9223372036854775807")
    assert.equal("413", length "9223372036854775808")
    assert.equal("413", length "18446744073709551615")
    for _, value in ipairs { "", "+5", "-5", "5,5", "5, 5", "5 5", "0x5", "5a", "1e1", "99999999999999999999999" } do
      assert.equal("400", length(value), value)
    end
    assert.equal("400", told(get "Content-Length: 5\r\nContent-Length: 5\r\n" .. "hello"))
    assert.equal("400", told(get "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n"))
    assert.equal("400", told(get "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n"))
  end)
end)

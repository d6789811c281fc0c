local rooms = require "spec.unit.rooms"
local Table = require "spec.unit.router_table"

local c = rooms.c

describe("router: patterns", function()
  it("literals match as they stand", function()
    local t = Table.of { "/", "/a", "/a/", "/a/b", "/A", "//" }
    for _, path in ipairs { "/", "/a", "/a/", "/a/b", "/A", "//" } do assert.equal(path, (t:get(path))) end
    for _, path in ipairs { "/b", "/a/b/", "/ab", "/a//b", "///", "/a/B", "", "*", "a" } do
      assert.equal("not found", (t:get(path)), path)
    end
  end)

  it("a parameter takes one segment of at least one byte", function()
    local t = Table.of { "/:id", "/users/:id", "/x/:a/y/:b" }
    assert.same({ "/:id", { id = "7" } }, { t:get "/7" })
    assert.same({ "/:id", { id = "users" } }, { t:get "/users" })
    assert.same({ "/users/:id", { id = "7" } }, { t:get "/users/7" })
    assert.same({ "/x/:a/y/:b", { a = "1", b = "2" } }, { t:get "/x/1/y/2" })
    for _, path in ipairs { "/", "/users/", "/users/7/", "/users//7", "/x//y/2", "/x/1/y/" } do
      assert.equal("not found", (t:get(path)), path)
    end
  end)

  it("a prefix stands before a parameter; the longest wins", function()
    local t = Table.of { "/:any", "/u:one", "/user_:name", "/user_:name/about", "/user_x", "/u/:id" }
    assert.same({ "/user_:name", { name = "go" } }, { t:get "/user_go" })
    assert.same({ "/user_:name/about", { name = "go" } }, { t:get "/user_go/about" })
    assert.same({ "/u:one", { one = "ser_" } }, { t:get "/user_" })
    assert.same({ "/u:one", { one = "ser" } }, { t:get "/user" })
    assert.same({ "/:any", { any = "u" } }, { t:get "/u" })
    assert.same({ "/user_x", {} }, { t:get "/user_x" })
    assert.same({ "/user_:name", { name = "xy" } }, { t:get "/user_xy" })
    assert.same({ "/u/:id", { id = "1" } }, { t:get "/u/1" })
  end)

  it("the rest may be empty, but needs its slash", function()
    local t = Table.of { "/src/*path", "/:code", "/deep/:a/*rest" }
    assert.same({ "/src/*path", { path = "" } }, { t:get "/src/" })
    assert.same({ "/src/*path", { path = "a/b//c/" } }, { t:get "/src/a/b//c/" })
    assert.same({ "/:code", { code = "src" } }, { t:get "/src" })
    assert.same({ "/deep/:a/*rest", { a = "1", rest = "2/3" } }, { t:get "/deep/1/2/3" })
    assert.equal("/*all", (Table.of({ "/*all" }):get "/"))
  end)

  it("literal before parameter before rest, with backtracking", function()
    local t = Table.of { "/a/b/c", "/a/:x/d", "/:y/b/e", "/a/*rest", "/*all", "/a/b:z/f" }
    assert.same({ "/a/b/c", {} }, { t:get "/a/b/c" })
    assert.same({ "/a/:x/d", { x = "b" } }, { t:get "/a/b/d" })
    assert.same({ "/a/*rest", { rest = "b/e" } }, { t:get "/a/b/e" })
    assert.same({ "/:y/b/e", { y = "q" } }, { t:get "/q/b/e" })
    assert.same({ "/a/b:z/f", { z = "b" } }, { t:get "/a/bb/f" })
    assert.same({ "/a/:x/d", { x = "bb" } }, { t:get "/a/bb/d" })
    assert.same({ "/*all", { all = "q/b/x" } }, { t:get "/q/b/x" })
  end)

  it("the names belong to the route, not to the place in the tree", function()
    local routes = { "GET /items/:lang", "DELETE /items/:id", "GET /items/:ref/pending" }
    for _, order in ipairs { { 1, 2, 3 }, { 3, 2, 1 }, { 2, 1, 3 } } do
      local t = Table.of { routes[order[1]], routes[order[2]], routes[order[3]] }
      assert.same({ "found", "DELETE /items/:id", { id = "42" } }, { t:match("DELETE", "/items/42") })
      assert.same({ "found", "GET /items/:lang", { lang = "42" } }, { t:match("GET", "/items/42") })
      assert.same({ "/items/:ref/pending", { ref = "42" } }, { t:get "/items/42/pending" })
    end
  end)

  it("legal neighbours register", function()
    local t = Table.of { "/assets/*path", "/:code", "/:first/tail", "/rooms/:id", "/rooms/:name/inspect",
      "POST /copy", "POST /:id/run" }
    assert.equal("/assets/*path", (t:get "/assets/x.css"))
    assert.equal("/:code", (t:get "/assets"))
    assert.equal("/:first/tail", (t:get "/rooms2/tail"))
    assert.same({ "/rooms/:name/inspect", { name = "9" } }, { t:get "/rooms/9/inspect" })
  end)

  it("labels of every length are found", function()
    local patterns = {}
    for len = 1, 100 do
      patterns[#patterns + 1] = "/" .. ("s"):rep(len)
      patterns[#patterns + 1] = "/" .. ("p"):rep(len) .. "/:x"
      patterns[#patterns + 1] = "/" .. ("q"):rep(len) .. ":x"
    end
    local t = Table.of(patterns)
    for len = 1, 100 do
      assert.equal(patterns[3 * len - 2], (t:get("/" .. ("s"):rep(len))))
      assert.equal(patterns[3 * len - 1], (t:get("/" .. ("p"):rep(len) .. "/1")))
      assert.same({ patterns[3 * len], { x = "z" } }, { t:get("/" .. ("q"):rep(len) .. "z") })
    end
    assert.equal("not found", (t:get("/" .. ("s"):rep(101))))
  end)
end)

describe("router: escapes", function()
  it("are decoded once, in parameters and against literals", function()
    local t = Table.of { "/search/:query", "/a/b", "/α", "/α/:x", "/pre-β:x", "/f/*rest", "/a%20b", "/c%3Ad/:x" }
    assert.same({ "/search/:query", { query = "a b+c" } }, { t:get "/search/a%20b+c" })
    assert.same({ "/search/:query", { query = "%41" } }, { t:get "/search/%2541" })
    assert.equal("/a/b", (t:get "/%61/%62"))
    assert.equal("/α", (t:get "/%CE%B1"))
    assert.equal("/α", (t:get "/%ce%b1"))
    assert.equal("/α", (t:get "/α"))
    assert.same({ "/α/:x", { x = "ü" } }, { t:get "/%CE%B1/%C3%BC" })
    assert.same({ "/pre-β:x", { x = "α" } }, { t:get "/pr%65-%CE%B2%CE%B1" })
    assert.equal("not found", (t:get "/pr%65-%CE%B2"))
    assert.same({ "/f/*rest", { rest = "a b/c" } }, { t:get "/f/a%20b/c" })
    assert.equal("/a%20b", (t:get "/a%20b"))
    assert.same({ "/c%3Ad/:x", { x = "1" } }, { t:get "/c:d/1" })
    assert.same({ "/c%3Ad/:x", { x = "1" } }, { t:get "/c%3ad/1" })
  end)

  it("an escaped slash separates nothing", function()
    local t = Table.of { "/a/b", "/:x", "/p/:x/q", "/r/*rest", "/s/:x" }
    assert.same({ "/:x", { x = "a/b" } }, { t:get "/a%2Fb" })
    assert.same({ "/p/:x/q", { x = "1/2" } }, { t:get "/p/1%2f2/q" })
    assert.same({ "/r/*rest", { rest = "1/2" } }, { t:get "/r/1%2f2" })
    assert.same({ "/:x", { x = "/" } }, { t:get "/%2F" })
    assert.same({ "/:x", { x = "s/" } }, { t:get "/s%2F" })
  end)

  it("an escaped NUL is a byte of the value", function()
    assert.same({ "/:x", { x = "a\0b" } }, { Table.of({ "/:x" }):get "/a%00b" })
  end)

  it("malformed ones are refused for every path", function()
    local t = Table.of { "/a", "/u/:id", "/f/*rest" }
    for _, path in ipairs { "/u/%", "/u/%4", "/u/%zz", "/f/%E0%A4%A", "/nowhere/%", "/a%", "%", "*%g1", "/%%41",
      "/a/long/path/that/leads/nowhere/%4" } do
      assert.equal("bad path", (t:get(path)), path)
      assert.equal("", t:allow(path), path)
    end
    assert.same({ "/u/:id", { id = "\192\128" } }, { t:get "/u/%C0%80" })
  end)

  it("take memory only for values that hold one", function()
    local t, arena = Table.of { "/a/:x/:y", "/α" }, rooms.arena()
    local before = c.mem_count()
    t:match("GET", "/%CE%B1", arena)
    t:match("GET", "/%61/1/2", arena)
    assert.equal(before, c.mem_count())
    t:match("GET", "/a/1/%32", arena)
    assert.equal(before + 1, c.mem_count())
  end)
end)

describe("router: methods", function()
  local t = Table.of { "GET /users/me", "PATCH /users/:id", "DELETE /users/:id", "* /any/:x", "GET /any/get",
    "PURGE /cache/*key", "GET /cache/:id", "HEAD /head", "GET /head", "BREW /cache/pot", "POST /post" }

  it("have trees of their own", function()
    assert.same({ "found", "GET /users/me", {} }, { t:match("GET", "/users/me") })
    assert.same({ "found", "PATCH /users/:id", { id = "me" } }, { t:match("PATCH", "/users/me") })
    assert.same({ "found", "PURGE /cache/*key", { key = "a/b" } }, { t:match("PURGE", "/cache/a/b") })
    assert.same({ "found", "PURGE /cache/*key", { key = "pot" } }, { t:match("PURGE", "/cache/pot") })
  end)

  it("HEAD asks GET's tree after its own", function()
    assert.same({ "found", "GET /users/me", {} }, { t:match("HEAD", "/users/me") })
    assert.same({ "found", "HEAD /head", {} }, { t:match("HEAD", "/head") })
    assert.equal("other method", (t:match("HEAD", "/post")))
  end)

  it("routes for any method come after the method's own", function()
    assert.same({ "found", "GET /any/get", {} }, { t:match("GET", "/any/get") })
    assert.same({ "found", "* /any/:x", { x = "get" } }, { t:match("POST", "/any/get") })
    assert.same({ "found", "* /any/:x", { x = "q" } }, { t:match("WEIRD", "/any/q") })
  end)

  it("another method's path is told from an unknown one", function()
    assert.equal("other method", (t:match("POST", "/users/me")))
    assert.equal("other method", (t:match("GET", "/post")))
    assert.equal("other method", (t:match("get", "/users/me")))
    assert.equal("other method", (t:match("*", "/users/me")))
    assert.equal("other method", (t:match("GET", "/cache/a/b")))
    assert.equal("not found", (t:match("POST", "/nowhere")))
  end)

  it("Allow is the union over all patterns that match", function()
    assert.equal("GET, HEAD, PATCH, DELETE, OPTIONS", t:allow "/users/me")
    assert.equal("PATCH, DELETE, OPTIONS", t:allow "/users/you")
    assert.equal("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS", t:allow "/any/1")
    assert.equal("GET, HEAD, OPTIONS, BREW, PURGE", t:allow "/cache/pot")
    assert.equal("POST, OPTIONS", t:allow "/post")
    assert.equal("", t:allow "/nowhere")
    assert.equal("GET, HEAD, OPTIONS", t:allow("/cache/pot", 21))
    assert.equal("", t:allow("/cache/pot", 1))
  end)
end)

describe("router: refusals", function()
  local refused = {
    { "", "empty" }, { "a", 'begins with "/"' }, { "*all", 'begins with "/"' },
    { "/:", "without a name" }, { "/a/:/b", "without a name" }, { "/a:", "without a name" }, { "/*", "without a name" },
    { "/:a:b", "two parameters" }, { "/x:a:b", "two parameters" }, { "/:a:", "two parameters" },
    { "/*a/b", "must be last" }, { "/*a/", "must be last" },
    { "/a*", "inside a segment" }, { "/a*b", "inside a segment" }, { "/:a*b", "inside a segment" },
    { "/a*b:c", "inside a segment" }, { "/*a*b", "not a name" }, { "/*a:b", "two parameters" },
    { "/:a/:a", "stands twice" }, { "/:a/x/*a", "stands twice" },
    { "/a b", "space" }, { "/a\tb", "control byte" }, { "/a\nb", "control byte" }, { "/a\0b", "control byte" },
    { "/a\127", "control byte" }, { "/a?b", "path alone" }, { "/a#b", "path alone" }, { "/:a?", "path alone" },
    { "/%", "hex digits" }, { "/%4", "hex digits" }, { "/%g1", "hex digits" }, { "/%2F", "escaped slash" },
    { "/%00", "escaped control" }, { "/%7F", "escaped control" },
    { "/:1a", "not a name" }, { "/:a-b", "not a name" }, { "/:ä", "not a name" }, { "/*a.b", "not a name" },
    { "/:a%20b", "not a name" }, { "/" .. ("a"):rep(8192), "shorten" },
  }

  for _, case in ipairs(refused) do
    it((case[1]:sub(1, 20):gsub("%c", ".")), function()
      local t = Table.new()
      local done, message = t:add("GET", case[1], "app.lua:7")
      assert.is_nil(done)
      assert.truthy(message:find(case[2], 1, true), message)
      assert.truthy(message:find("GET ", 1, true) == 1 and message:find("(app.lua:7): ", 1, true), message)
      assert.falsy(message:find "%c", message)
      assert.equal(0, t:count())
      assert.is_nil(t:find("GET", case[1]))
    end)
  end

  it("methods that are no tokens", function()
    local t = Table.new()
    for _, method in ipairs { "", "GE T", "GET/", "G\0T", "(" } do assert.is_nil((t:add(method, "/"))) end
    assert.is_true(t:add("M-SEARCH", "/"))
  end)

  it("more than 64 parameters", function()
    local names = {}
    for i = 1, 64 do names[i] = "/:p" .. i end
    local t = Table.new()
    assert.is_true(t:add("GET", table.concat(names)))
    local _, params = t:get(("/v"):rep(64))
    assert.equal("v", params.p64)
    local done, message = t:add("GET", table.concat(names) .. "/*rest")
    assert.is_nil(done)
    assert.truthy(message:find("more than 64", 1, true), message)
  end)

  it("one shape twice, naming both", function()
    local pairs_of = { { "/a", "/a" }, { "/u/:id", "/u/:id" }, { "/foo/:name", "/foo/:names" }, { "/x/*a", "/x/*b" },
      { "/α", "/%CE%B1" }, { "/a%20b/:x", "/a%20b/:y" }, { "/p:x", "/p:y" } }
    for _, pair in ipairs(pairs_of) do
      local t = Table.new()
      assert.is_true(t:add("GET", pair[1], "a.lua:1"))
      local done, message = t:add("GET", pair[2], "b.lua:2")
      assert.is_nil(done)
      for _, part in ipairs { pair[1], pair[2], "a.lua:1", "b.lua:2" } do
        assert.truthy(message:find(part, 1, true), message)
      end
      assert.is_true(t:add("POST", pair[2]))
      assert.is_true(t:add("*", pair[2]))
      assert.is_true(t:add("PURGE", pair[2]))
      assert.is_nil((t:add("PURGE", pair[2])))
    end
  end)

  it("leave the table as it was", function()
    local t = Table.of { "/a/:x" }
    for _, case in ipairs(refused) do t:add("GET", case[1]) end
    t:add("GET", "/a/:y")
    assert.equal(1, t:count())
    assert.same({ "/a/:x", { x = "1" } }, { t:get "/a/1" })
  end)
end)

describe("router: the table", function()
  it("lists and finds its routes", function()
    local patterns = { "/a", "/a/:x", "/a/p:x", "/a/*x", "/b/:x/c" }
    local t = Table.of(patterns)
    assert(t:add("*", "/a"))
    assert(t:add("PURGE", "/a"))
    for _ = 1, 2 do
      assert.equal(7, t:count())
      for i, pattern in ipairs(patterns) do
        assert.equal("GET " .. pattern, t:at(i - 1))
        assert.equal("GET " .. pattern, t:find("GET", pattern))
      end
      assert.equal("* /a", t:find("*", "/a"))
      assert.equal("PURGE /a", t:find("PURGE", "/a"))
      assert.is_nil(t:at(7))
      for _, pattern in ipairs { "/", "/a/:y", "/a/", "/b/:x", "/b/:x/c/d", "/a/p:y", "/a/*y", "/:", "" } do
        assert.is_nil(t:find("GET", pattern), pattern)
      end
      assert.is_nil(t:find("POST", "/a"))
      assert.is_nil(t:find("BREW", "/a"))
      assert.is_true(t:seal())
    end
  end)

  it("survives every failed allocation", function()
    local routes = { "GET /a", "GET /a/:x", "PURGE /p/q:x", "* /f/*rest", "GET /" .. ("l"):rep(60) .. "/:x" }
    for i = 1, 40 do routes[#routes + 1] = ("GET /r%d/:a/p%d:b"):format(i, i) end
    local failed = rooms.fail_each(function()
      local t = Table.new()
      if not t then return false end
      for _, route in ipairs(routes) do
        local method, pattern = route:match "^(%S+) (.*)$"
        local done, message = t:add(method, pattern)
        if not done then
          assert(message:find("out of memory", 1, true), message)
          return false
        end
      end
      if not t:seal() then
        assert(t:get "/a" == "/a")
        return false
      end
      return true
    end)
    assert.truthy(failed > 10, failed)
    local t = Table.of { "/:x" }
    assert.equal(1, rooms.fail_each(function()
      local result = t:match("GET", "/%41")
      assert(result == "found" or result == "no memory", result)
      return result == "found"
    end))
  end)
end)

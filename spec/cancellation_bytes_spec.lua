-- Clients that go at every byte: of what they send, and of what they are sent.
local server = require "spec.cancellation.server"

local BODY = ("b"):rep(23)

local requests = {
  plain = "GET /hello HTTP/1.1\r\nhost: a\r\n\r\n",
  body = "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 23\r\n\r\n" .. BODY,
  chunked = "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    .. "a;x=y\r\nbbbbbbbbbb\r\nd\r\nbbbbbbbbbbbbb\r\n0\r\nt: v\r\n\r\n",
  expect = "POST /echo HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 23\r\n\r\n" .. BODY,
  stream = "GET /few HTTP/1.1\r\nhost: a\r\n\r\n",
  channel = "GET /last HTTP/1.1\r\nhost: a\r\n\r\n",
  pipelined = "GET /hello HTTP/1.1\r\nhost: a\r\n\r\n"
    .. "POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 23\r\n\r\n" .. BODY,
}

local replies = { "/hello", "/static", "/few", "/last", "/nothing" }

local function check_nothing_is_left()
  server.wait_empty()
  local begun = server.count "echo_begun"
  assert.equal(begun, server.count "echo_closed")
  assert.equal(begun, server.count "echo_deferred")
  assert.equal(0, server.count "survived")
end

describe("a client that goes", function()
  setup(function()
    server.start()
    for _ = 1, 3 do server.live:request("POST", "/publish") end
  end)
  teardown(server.stop)

  for name, text in pairs(requests) do
    for way, leave in pairs(server.ways) do
      it(("at any byte of a request leaves nothing behind: %s, %s"):format(name, way), function()
        local list = {}
        for count = 0, #text do
          local s = server.live:connect()
          assert.is_true(s:send(text:sub(1, count)))
          list[#list + 1] = s
        end
        leave(list)
        check_nothing_is_left()
        if way ~= "half" then return end
        for count = 0, #text do
          local status = tonumber(list[count + 1].received:match "HTTP/1.1 ([2-5]%d%d) ")
          if count == #text then assert.equal(200, status)
          else assert.is_true(not status or status == 400 or name == "pipelined", tostring(status)) end
        end
      end)
    end
  end

  local function length_of(target)
    local s = server.live:connect()
    s:send("GET " .. target .. " HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
    if target == "/last" then
      assert.is_true(s:receive_until(function(text) return select(2, text:gsub("\ndata: ", "")) == 3 end))
    else
      assert.is_true(s:closes())
    end
    s:close()
    return #s.received
  end

  for _, target in ipairs(replies) do
    for _, way in ipairs { "close", "reset" } do
      it(("at any byte of its reply leaves nothing behind: %s, %s"):format(target, way), function()
        local list = {}
        for count = 0, length_of(target) do
          local s = server.live:connect()
          s:send("GET " .. target .. " HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
          list[#list + 1] = s
          assert.is_true(server.read(s, count))
        end
        server.ways[way](list)
        check_nothing_is_left()
      end)
    end
  end
end)

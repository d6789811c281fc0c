-- The log writes to standard error, so each test lends it a file or a pipe for that long.
local ffi = require "ffi"
local cjson = require "cjson"
local lib = require "spec.lib"
local rooms = require "spec.unit.rooms"

local c, slice = rooms.c, rooms.slice
local TEXT, JSON, OFF = 0, 1, 2
local DEBUG, INFO, WARN, ERROR = 0, 1, 2, 3
local STAMP = "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ "
local O_RDWR, O_NONBLOCK = 2, 2048

for _, declaration in ipairs {
  "int dup(int fd);", "int dup2(int from, int to);", "int close(int fd);", "int pipe2(int fds[2], int flags);",
  "int open(const char *path, int flags, ...);", "long read(int fd, void *to, size_t len);", "int fork(void);",
  "int waitpid(int pid, int *status, int options);", "void _exit(int status);", "int usleep(unsigned micros);",
} do
  pcall(ffi.cdef, declaration)
end

local C = ffi.C
-- Runs work() while standard error is `fd`.
local function lend(fd, work)
  io.stderr:flush()
  local saved = C.dup(2)
  C.dup2(fd, 2)
  local ok, message = pcall(work)
  C.dup2(saved, 2)
  C.close(saved)
  if not ok then error(message, 0) end
end

-- What is logged by work(), as text.
local function capture(work)
  local path = os.tmpname()
  local fd = C.open(path, O_RDWR)
  assert(fd >= 0)
  lend(fd, work)
  C.close(fd)
  local text = lib.read(path)
  os.remove(path)
  return text
end

local function with_log(form, least, work)
  return capture(function()
    assert(c.log_open(form, least))
    local ok, message = pcall(work)
    c.log_close()
    if not ok then error(message, 0) end
  end)
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "([^\n]*)\n" do lines[#lines + 1] = line end
  return lines
end

local function say(level, text)
  c.log_write_slice(level, slice(text))
end

local function access(fields)
  local entry = ffi.new "struct log_access"
  entry.method, entry.target = slice(fields.method or "GET"), slice(fields.target or "/")
  entry.ip, entry.id = slice(fields.ip or "127.0.0.1"), slice(fields.id or "")
  entry.status, entry.bytes, entry.micros = fields.status or 200, fields.bytes or 0, fields.micros or 0
  c.log_write_access(entry)
end

describe("log", function()
  after_each(function()
    c.log_open(OFF, INFO)
    c.log_close()
  end)

  it("writes a line with time, level and text", function()
    local lines = lines_of(with_log(TEXT, DEBUG, function()
      say(DEBUG, "one")
      c.log_write(INFO, "two %d %s", ffi.cast("int", 2), "x")
      say(WARN, "three")
      say(ERROR, "")
    end))
    for i, text in ipairs { "debug one", "info two 2 x", "warn three", "error " } do
      assert.truthy(lines[i]:find(STAMP), lines[i])
      assert.equal(text, lines[i]:sub(26))
    end
    assert.equal(4, #lines)
    assert.equal(os.date "!%Y-%m", lines[1]:sub(1, 7))
  end)

  it("passes over what is below its level", function()
    local lines = lines_of(with_log(TEXT, WARN, function()
      say(INFO, "quiet")
      c.log_write(DEBUG, "%s", "quiet")
      say(WARN, "loud")
    end))
    assert.equal(1, #lines)
    assert.truthy(lines[1]:find "loud")
  end)

  it("keeps silent when it is off", function()
    assert.equal("", with_log(OFF, DEBUG, function()
      say(ERROR, "nothing")
      c.log_write(ERROR, "nothing")
      access {}
    end))
  end)

  it("writes directly before and after", function()
    local text = capture(function()
      c.log_open(TEXT, INFO)
      c.log_close()
      say(INFO, "direct")
      c.log_close()
      say(WARN, "again")
    end)
    assert.truthy(text:find "info direct\n.* warn again\n$")
  end)

  it("indents the lines of a traceback, so that none can be forged", function()
    local text = with_log(TEXT, INFO, function()
      say(ERROR, "boom\nstack traceback:\n\tapp.lua:3: in f\n2026-01-01T00:00:00.000Z error forged\n\n")
      say(INFO, "esc \27[31m cr\rdel \127 nul \0 utf \195\164 end")
    end)
    local lines = lines_of(text)
    assert.equal("error boom", lines[1]:sub(26))
    assert.equal("    stack traceback:", lines[2])
    assert.equal("    \tapp.lua:3: in f", lines[3])
    assert.equal("    2026-01-01T00:00:00.000Z error forged", lines[4])
    assert.equal([[info esc \x1b[31m cr\x0ddel \x7f nul \x00 utf ]] .. "\195\164 end", lines[5]:sub(26))
  end)

  it("writes JSON that reads back as it was", function()
    local hostile = 'quote " back \\ line\n\ttab \27 \0 \1 \127 \195\164 \240\159\166\139 \226\128\168'
    local lines = lines_of(with_log(JSON, INFO, function() say(ERROR, hostile) end))
    assert.equal(1, #lines)
    local entry = cjson.decode(lines[1])
    assert.equal("error", entry.level)
    assert.equal(hostile, entry.message)
    assert.truthy((entry.time .. " "):find(STAMP))
  end)

  it("replaces what is no UTF-8 in JSON", function()
    local bad = {
      "\255", "\128", "\192\128", "\193\191", "\195", "\224\159\191", "\237\160\128", "\244\144\128\128", "\245",
      "\240\159\166", "\226\130",
    }
    local lines = lines_of(with_log(JSON, INFO, function()
      for _, bytes in ipairs(bad) do say(INFO, "a" .. bytes .. "b") end
    end))
    for i, bytes in ipairs(bad) do
      assert.equal("a" .. ("\239\191\189"):rep(#bytes) .. "b", cjson.decode(lines[i]).message)
    end
  end)

  it("keeps long messages whole up to 16 KiB, in both forms", function()
    local frames = {}
    while #frames < 500 do frames[#frames + 1] = ("\tapp.lua:%d: in function \"f\""):format(#frames) end
    local message = table.concat(frames, "\n"):sub(1, 16384)
    local json = with_log(JSON, INFO, function() say(ERROR, message) end)
    assert.equal(message, cjson.decode(json).message)
    local text = with_log(TEXT, INFO, function() c.log_write(ERROR, "%s", message) end)
    assert.equal("error " .. message, (text:sub(26, -2):gsub("\n    ", "\n")))
  end)

  it("cuts what is longer and says so", function()
    for _, size in ipairs { 16385, 16386, 100000 } do
      local json = with_log(JSON, INFO, function()
        say(INFO, ("m"):rep(size))
        c.log_write(INFO, "%s", ("m"):rep(size))
      end)
      for _, line in ipairs(lines_of(json)) do
        assert.equal(("m"):rep(16384) .. " ... (cut)", cjson.decode(line).message)
      end
    end
  end)

  it("cuts what grows too long by escaping, and the line stays whole", function()
    for _, byte in ipairs { "\1", "\n", "\255", '"' } do
      local lines = lines_of(with_log(JSON, INFO, function() say(INFO, "x" .. byte:rep(16383)) end))
      assert.equal(1, #lines)
      assert.truthy(cjson.decode(lines[1]).message)
    end
    local text = with_log(TEXT, INFO, function() say(INFO, "x" .. ("\n"):rep(16000) .. "y") end)
    assert.truthy(text:find "%.%.%. %(cut%)\n$")
  end)

  it("writes the access log", function()
    local fields = {
      method = "GET", target = "/a?b=c", status = 200, bytes = 17, micros = 1042, ip = "::1", id = "abc",
    }
    local text = with_log(TEXT, ERROR, function() access(fields) end)
    assert.equal("access GET /a?b=c 200 17B 1.042ms ::1 abc\n", text:sub(26))
    local entry = cjson.decode(with_log(JSON, ERROR, function() access(fields) end))
    entry.time = nil
    fields.level, fields.message = "info", "request"
    assert.same(fields, entry)
  end)

  it("keeps an access line sound whatever the client sent", function()
    local fields = { method = ('"\n'):rep(900), target = ("/\255\1"):rep(5000), id = ("\27"):rep(9000) }
    local lines = lines_of(with_log(JSON, INFO, function() access(fields) end))
    assert.equal(1, #lines)
    assert.equal(200, cjson.decode(lines[1]).status)
    local text = with_log(TEXT, INFO, function() access { target = "/a\nforged" } end)
    assert.is_nil(text:find "\nforged")
  end)

  it("loses nothing and keeps the order while there is room", function()
    local before = c.log_dropped()
    local lines = lines_of(with_log(TEXT, INFO, function()
      for i = 1, 5000 do say(INFO, "line " .. i) end
    end))
    assert.equal(0, tonumber(c.log_dropped() - before))
    assert.equal(5000, #lines)
    for i, line in ipairs(lines) do assert.equal("info line " .. i, line:sub(26)) end
  end)

  it("goes round its ring", function()
    local fds, room, expected, read, size = ffi.new "int[2]", ffi.new "char[65536]", {}, {}, 0
    local function say_much(bytes)
      local said = 0
      while said < bytes do
        local line = ("%d %s"):format(#expected + 1, ("z"):rep(#expected % 700))
        expected[#expected + 1] = line
        say(INFO, line)
        said = said + #line + 31
      end
      return said
    end
    local function read_until(bytes)
      for _ = 1, 5000 do
        local n = tonumber(C.read(fds[0], room, 65536))
        if n > 0 then
          read[#read + 1] = ffi.string(room, n)
          size = size + n
        end
        if size >= bytes then return end
        C.usleep(1000)
      end
      error "the log does not come"
    end
    assert(C.pipe2(fds, O_NONBLOCK) == 0)
    local before = c.log_dropped()
    lend(fds[1], function()
      assert(c.log_open(TEXT, INFO))
      local said = say_much(900000)
      for _ = 1, 4 do -- never empty, so that its end is crossed each time
        read_until(said - 150000)
        said = said + say_much(700000)
      end
      read_until(said)
      c.log_close()
    end)
    C.close(fds[1])
    C.close(fds[0])
    assert.equal(0, tonumber(c.log_dropped() - before))
    for i, line in ipairs(lines_of(table.concat(read))) do
      if line:sub(31) ~= expected[i] then assert.equal(expected[i], line:sub(31)) end
      expected[i] = nil
    end
    assert.same({}, expected)
  end)

  it("drops and counts when nobody reads, and says so when there is room", function()
    local fds, room, read = ffi.new "int[2]", ffi.new "char[65536]", {}
    assert(C.pipe2(fds, 0) == 0)
    local before = c.log_dropped()
    lend(fds[1], function()
      assert(c.log_open(TEXT, INFO))
      for i = 1, 3000 do say(INFO, i .. " " .. ("x"):rep(1000)) end
      assert(c.log_dropped() > before)
      repeat
        local n = C.read(fds[0], room, 65536)
        read[#read + 1] = ffi.string(room, n)
      until (read[#read - 1] or ""):sub(-200):find "dropped" or read[#read]:find "dropped"
      c.log_close()
    end)
    C.close(fds[1])
    C.close(fds[0])
    local lost = tonumber(c.log_dropped() - before)
    local text = table.concat(read)
    assert.equal(lost, tonumber(text:match "warn (%d+) log lines were dropped"))
    local _, written = text:gsub("info ", "")
    assert.equal(3000, lost + written)
  end)

  it("waits for a full pipe that does not block", function()
    local fds, room = ffi.new "int[2]", ffi.new "char[65536]"
    assert(C.pipe2(fds, O_NONBLOCK) == 0)
    local total, expected = 0, 0
    lend(fds[1], function()
      assert(c.log_open(TEXT, INFO))
      for _ = 1, 300 do
        say(INFO, ("x"):rep(1000))
        expected = expected + 25 + 5 + 1000 + 1
      end
      for _ = 1, 2000 do
        local n = C.read(fds[0], room, 65536)
        total = total + math.max(tonumber(n), 0)
        if total == expected then break end
        C.usleep(1000)
      end
      c.log_close()
    end)
    C.close(fds[1])
    C.close(fds[0])
    assert.equal(expected, total)
  end)

  it("does not end the process when standard error is gone", function()
    local fd = C.open("/dev/full", 1)
    lend(fd, function()
      assert(c.log_open(TEXT, INFO))
      for _ = 1, 100 do say(INFO, "lost") end
      c.log_close()
    end)
    C.close(fd)
  end)

  it("lets a forked child write, once", function()
    local text = capture(function()
      assert(c.log_open(TEXT, INFO))
      say(INFO, "before")
      local pid = C.fork()
      if pid == 0 then
        say(INFO, "child")
        c.log_close()
        C._exit(0)
      end
      C.waitpid(pid, nil, 0)
      say(INFO, "parent")
      c.log_close()
    end)
    for _, word in ipairs { "before", "child", "parent" } do
      local _, times = text:gsub("info " .. word .. "\n", "")
      assert.equal(1, times, word)
    end
  end)

  it("says so when there is no memory for its ring", function()
    assert.equal(1, rooms.fail_each(function()
      local ok = c.log_open(TEXT, INFO)
      c.log_close()
      return ok
    end))
  end)
end)

-- Streams that are compressed as they go: opt-in, negotiated, and flushed at every push.
local ffi = require "ffi"
local photon = require "photon"
local test = require "photon.test"

ffi.cdef [[
  typedef struct {
    const char *next_in; unsigned avail_in; unsigned long total_in;
    char *next_out; unsigned avail_out; unsigned long total_out;
    const char *msg; void *state; void *zalloc; void *zfree; void *opaque;
    int data_type; unsigned long adler, reserved;
  } photon_spec_zstream;
  int inflateInit2_(photon_spec_zstream *z, int bits, const char *version, int size);
  int inflate(photon_spec_zstream *z, int flush);
  int inflateEnd(photon_spec_zstream *z);
  const char *zlibVersion(void);
]]

-- A reader that is given compressed bytes piece by piece and returns the text so far known.
local function reader()
  local z = ffi.new "photon_spec_zstream"
  assert.equal(0, ffi.C.inflateInit2_(z, 31, ffi.C.zlibVersion(), ffi.sizeof(z)))
  ffi.gc(z, ffi.C.inflateEnd)
  return function(bytes)
    local room = ffi.new("char[?]", 65536)
    z.next_in, z.avail_in, z.next_out, z.avail_out = bytes, #bytes, room, 65536
    local result = ffi.C.inflate(z, 2)
    return ffi.string(room, 65536 - z.avail_out), result
  end
end

local function new_app()
  local app = photon.app()
  app:sse("/events", { compress = true }, function(stream)
    for i = 1, 3 do
      stream:send("event number " .. i)
      photon.sleep(0.01)
    end
  end)
  app:sse("/burst", { compress = true, heartbeat = 0 }, function(stream)
    for i = 1, 1000 do stream:send("event number " .. i) end
  end)
  app:sse("/own", { compress = true, headers = { ["content-encoding"] = "br" } }, function(stream)
    stream:send "as it is"
  end)
  app:sse("/plain", function(stream) stream:send "plain" end)
  return app
end

describe("a compressed stream", function()
  local client = test.app(new_app())

  local function open(path, accept)
    return client:stream(path, { headers = { ["accept-encoding"] = accept } })
  end

  it("lets every event be read as soon as it is sent", function()
    local s, read = open("/events", "br, gzip"), reader()
    assert.equal("gzip", s.headers["content-encoding"])
    assert.equal("accept-encoding", s.headers.vary)
    for i = 1, 3 do assert.equal("data: event number " .. i .. "\n\n", (read(s:read()))) end
  end)

  it("ends with gzip's trailer", function()
    local s, read = open("/burst", "gzip"), reader()
    local bytes = s:all()
    local text, result = read(bytes)
    assert.equal(1, result) -- Z_STREAM_END: length and checksum are right
    assert.equal("data: event number 1000\n\n", text:sub(-25))
    assert.is_true(#bytes < #text / 3)
  end)

  it("is for clients that accept gzip", function()
    for _, accept in ipairs { "br", "gzip;q=0", "*, gzip;q=0", "identity", "gzip;q=0.000" } do
      local s = open("/events", accept)
      assert.is_nil(s.headers["content-encoding"], accept)
      assert.equal("accept-encoding", s.headers.vary)
      assert.equal("data: event number 1\n\n", s:read())
      s:close()
    end
    for _, accept in ipairs { "gzip", "GZIP", "*", "br, gzip;q=0.5", "identity;q=0, gzip;q=1.0" } do
      local s = open("/events", accept)
      assert.equal("gzip", s.headers["content-encoding"], accept)
      s:close()
    end
  end)

  it("leaves alone what has a coding, and what did not ask for it", function()
    local own = open("/own", "gzip")
    assert.equal("br", own.headers["content-encoding"])
    assert.equal("data: as it is\n\n", own:read())
    local plain = open("/plain", "gzip")
    assert.is_nil(plain.headers["content-encoding"])
    assert.is_nil(plain.headers.vary)
    plain:close()
  end)

  it("says so to HEAD", function()
    local res = client:head("/events", { headers = { ["accept-encoding"] = "gzip" } })
    assert.equal("gzip", res.headers["content-encoding"])
  end)
end)

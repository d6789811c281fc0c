local ffi = require "ffi"
local rooms = require "spec.unit.rooms"

local c, slice = rooms.c, rooms.slice

local function of_name(name)
  return rooms.text(c.mime_of_name(slice(name)))
end

local function parameter(content_type, name)
  local value = ffi.new "struct slice"
  if not c.mime_parameter(slice(content_type), slice(name), value) then return nil end
  return rooms.text(value)
end

describe("mime", function()
  it("knows the types of the web", function()
    local known = {
      html = "text/html; charset=utf-8", css = "text/css; charset=utf-8", js = "text/javascript; charset=utf-8",
      mjs = "text/javascript; charset=utf-8", txt = "text/plain; charset=utf-8", json = "application/json",
      svg = "image/svg+xml", png = "image/png", jpg = "image/jpeg", jpeg = "image/jpeg", webp = "image/webp",
      wasm = "application/wasm", woff2 = "font/woff2", mp4 = "video/mp4", pdf = "application/pdf",
      webmanifest = "application/manifest+json", xml = "application/xml", ["7z"] = "application/x-7z-compressed",
    }
    for extension, mime in pairs(known) do
      assert.equal(mime, of_name("/some/file." .. extension))
      assert.equal(mime, of_name("FILE." .. extension:upper()))
    end
  end)

  it("takes bytes for all others", function()
    for _, name in ipairs {
      "", "name", "a.", ".", "a.unknown", "a.html/", "dir.html/name", "a.html.x", "a.htmlhtmlhtmlhtml",
    } do
      assert.equal("application/octet-stream", of_name(name), name)
    end
    assert.equal("application/gzip", of_name "a.tar.gz")
  end)

  it("finds the essence", function()
    for text, essence in pairs {
      ["application/json; charset=utf-8"] = "application/json", [" Text/HTML ;a=b"] = "Text/HTML",
      ["text/plain"] = "text/plain", [""] = "", [";x=y"] = "",
    } do
      assert.equal(essence, rooms.text(c.mime_essence(slice(text))))
    end
  end)

  it("tells JSON", function()
    for _, text in ipairs {
      "application/json", "Application/JSON", "application/json; charset=utf-8", "application/problem+json",
      "application/vnd.api+json;x=y", "image/svg+JSON",
    } do
      assert.is_true(c.mime_is_json(slice(text)), text)
    end
    for _, text in ipairs {
      "", "application/jsonp", "text/plain", "json", "+json", "application/+json", "application/x-ndjson",
      "/a+json", "application", "text/plain; a=application/json", "application/a b+json", "application/json-seq",
    } do
      assert.is_false(c.mime_is_json(slice(text)), text)
    end
  end)

  it("finds parameters", function()
    assert.equal("utf-8", parameter("text/html; charset=utf-8", "charset"))
    assert.equal("UTF-8", parameter("text/html;CharSet=UTF-8 ; a=b", "charset"))
    assert.equal("b c", parameter('multipart/form-data; boundary="b c"', "boundary"))
    assert.equal("2", parameter('a/b; x="1; y=9"; y=2', "y"))
    assert.equal('say \\"hi\\"', parameter('a/b; x="say \\"hi\\""; y=2', "x"))
    assert.equal("", parameter('a/b; x=""', "x"))
    assert.equal("", parameter("a/b; x=", "x"))
    assert.equal("2", parameter("a/b; flag; x=2", "x"))
    assert.equal("1", parameter("a/b; x=1; x=2", "x"))
    assert.equal("1", parameter("a/b;;; x=1", "x"))
  end)

  it("finds none where there is none", function()
    assert.is_nil(parameter("text/html", "charset"))
    assert.is_nil(parameter("charset=utf-8", "charset"))
    assert.is_nil(parameter("text/html; charset", "charset"))
    assert.is_nil(parameter("text/html; xcharset=1", "charset"))
    assert.is_nil(parameter('a/b; x="open', "x"))
    assert.is_nil(parameter('a/b; x="open\\"', "x"))
    assert.is_nil(parameter('a/b; x="open\\', "x"))
    assert.is_nil(parameter('a/b; x="', "x"))
    assert.is_nil(parameter('a/b; x="open; y=2', "y"))
    assert.is_nil(parameter("", "x"))
    assert.is_nil(parameter(";", "x"))
  end)
end)

-- load with a reader is photon's own; it must do what LuaJIT's does.

-- A reader of these pieces.
local function pieces(list)
  local at = 0
  return function()
    at = at + 1
    return list[at]
  end
end

describe("load", function()
  it("reads the pieces of a function until nil or an empty one", function()
    assert.equal(12, load(pieces { "return ", 1, "2" })())
    assert.equal(1, load(pieces { "return 1", "", "2" })())
    assert.equal("function", type(load(pieces {})))
  end)

  it("takes byte code", function()
    local code = string.dump(function() return "dumped" end)
    assert.equal("dumped", load(pieces { code:sub(1, 1), code:sub(2) })())
    local fn, why = load(pieces { code }, "code", "t")
    assert.is_nil(fn)
    assert.truthy(why:find("wrong mode", 1, true), why)
  end)

  it("names the chunk", function()
    assert.equal('[string "return"]', debug.getinfo(load "return", "S").short_src)
    assert.equal("(load)", debug.getinfo(load(pieces { "return" }), "S").short_src)
    assert.equal("a.lua", debug.getinfo(load(pieces { "return" }, "@a.lua"), "S").short_src)
  end)

  it("sets the environment", function()
    assert.equal(5, load(pieces { "return x" }, nil, nil, { x = 5 })())
    assert.equal(6, load("return x", nil, nil, { x = 6 })())
  end)

  it("returns nil and the message of what went wrong", function()
    local fn, why = load(pieces { "return +" })
    assert.is_nil(fn)
    assert.truthy(why:find("(load):1: ", 1, true), why)
    local problem = {}
    assert.equal(problem, select(2, load(function() error(problem) end)))
    fn, why = load(pieces { {} })
    assert.is_nil(fn)
    assert.equal("reader function must return a string", why)
  end)

  it("raises when it is given neither text nor a function", function()
    assert.error_matches(function() load {} end, "bad argument #1")
    assert.error_matches(function() load() end, "bad argument #1")
  end)
end)

-- What a spec says whose program or library has not been built.
local programs = require "spec.programs"

describe("a program that is not built", function()
  it("is named, with the way to build it", function()
    local ok, message = pcall(programs.run, "no_such_program")
    assert.is_false(ok)
    assert.truthy(message:find "spec/programs/no_such_program is not built yet: run `make test`, or `make %S+`")
  end)
end)

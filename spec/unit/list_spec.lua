-- Lists are inline in their header, so a small program exercises them.
local programs = require "spec.programs"

describe("list", function()
  it("does what an array does", function()
    assert.equal("ok\nstatus 0\n", (programs.run "list"))
  end)
end)

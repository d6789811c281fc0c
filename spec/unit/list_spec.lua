-- Lists are inline in their header, so a small program exercises them.
describe("list", function()
  it("does what an array does", function()
    local build = os.getenv "PHOTON_BUILD" or "build"
    local program = assert(io.popen(("'%s/spec/programs/list' 2>&1"):format(build)))
    local said = program:read "*a"
    program:close()
    assert.equal("ok\n", said)
  end)
end)

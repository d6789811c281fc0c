-- The rooms of serve that need exchanges, threads or an environment are tested by C programs.
local programs = require "spec.programs"
local settings = require "photon.settings"

for _, name in ipairs { "serve_fixed", "serve_fixed_wire", "serve_metrics", "serve_config", "serve_processors",
  "serve_journal", "serve_journal_damage", "serve_journal_failing", "channel_reading", "channel_keeping",
  "channel_ending", "channel_names", "channel_wire", "channel_wire_slow", "channel_flow", "channel_log",
  "channel_log_limits" } do
  describe(name, function() programs.define(name, it) end)
end

describe("the settings", function()
  it("are the same in C and in Lua", function()
    local text = programs.run("serve_config", "list")
    local in_c, in_lua = {}, {}
    for line in text:gmatch "setting ([^\n]+)" do in_c[#in_c + 1] = line end
    for i, setting in ipairs(settings.list) do
      local default = setting.default
      if type(default) == "boolean" then default = default and 1 or 0 end
      if type(default) == "table" then default = 0 end
      in_lua[i] = ("%s %s %.10g"):format(setting.name, setting.kind, default)
    end
    assert.same(in_lua, in_c)
  end)
end)

-- Every odd byte around Transfer-Encoding: the cases of spec/cases/raw_te_bytes.jsonl.
local conformance = require "spec.conformance.server"

describe("raw_te_bytes:", function()
  conformance.describe(getfenv(1), "spec/cases/raw_te_bytes.jsonl")
end)

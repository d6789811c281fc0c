-- JSON texts as bodies. The cases are third-party data: they are run from where they lie, when they
-- are there.
local conformance = require "spec.conformance.server"

local CASES = os.getenv "PHOTON_CASES" or "../shared/cases"

describe("json_text:", function()
  conformance.describe(getfenv(1), CASES .. "/json_text.jsonl")
end)

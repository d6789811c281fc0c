-- HTTP/1.1 as it comes over the wire, right and wrong: the cases of spec/cases/raw_http.jsonl.
local conformance = require "spec.conformance.server"

describe("raw_http:", function()
  conformance.describe(getfenv(1), "spec/cases/raw_http.jsonl")
end)

-- What the stream API makes of events: the cases of spec/cases/sse_encode.jsonl, fired at a real server.
local conformance = require "spec.conformance.server"

describe("sse_encode:", function()
  conformance.describe(getfenv(1), "spec/cases/sse_encode.jsonl")
end)

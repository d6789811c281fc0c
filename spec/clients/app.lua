-- Serves the cases of spec/cases/sse_encode.jsonl to clients that can only GET: case N, counted from
-- 0, at /case/N. An event `end-of-case` ends each.
local photon = require "photon"

local app = photon.app()
local reports = photon.shared "reports"
local cases, types = {}, { "message", "rejected" }

local function add_types(outcome)
  for _, reply in ipairs(outcome.sse or {}) do
    for _, event in ipairs(reply.events) do types[#types + 1] = event.type end
  end
end

for line in io.lines "spec/cases/sse_encode.jsonl" do
  local case = assert(photon.json.decode(line))
  if case.api then
    cases[#cases + 1] = case.api
    for _, outcome in ipairs(case.expect.any_of or { case.expect }) do add_types(outcome) end
  end
end

local function send_case(stream, events)
  for i, event in ipairs(events) do
    if not pcall(stream.event, stream, event) then stream:send("rejected", tostring(i - 1)) end
  end
  stream:send("end-of-case", "")
end

app:get("/cases", function() return { count = #cases, types = types } end)

app:get("/case/:number", function(req)
  local events = cases[tonumber(req.params.number) + 1]
  if not events then return "no such case\n", 404 end
  return photon.stream(function(stream) send_case(stream, events) end)
end)

app:get("/report", function() return reports:get "browser" end)
app:post("/report", function(req) reports:set("browser", req:body()) end)

app:static("/clients.js", assert(io.open "spec/clients/receive.js"):read "*a", { type = "text/javascript" })
app:static("/watch", [[
<!doctype html>
<title>watch</title>
<script type="module">
  import { receiveAll } from "/clients.js";
  const body = await receiveAll(EventSource, location.origin).then(JSON.stringify, (e) => `{"error":"${e}"}`);
  fetch("/report", { method: "POST", body });
</script>
]], { type = "text/html; charset=utf-8" })

return app

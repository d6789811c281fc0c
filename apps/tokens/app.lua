-- Tokens: an answer that arrives word by word, as a language model gives it.

local photon = require "photon"
local model = require "model"
local page = require "page"

local app = photon.app()

local function prompt_of(value)
  if type(value) ~= "string" or not value:find "%S" then
    error(photon.problem(422, "say something: prompt is a text"))
  end
  return value
end

-- Sends the tokens of an answer, each with its number as id, after those the reader has already.
local function send_answer(stream, prompt)
  local seen = tonumber(stream.last_event_id) or 0
  for number, token in model.tokens(prompt, seen) do
    local ok = stream:event { event = "token", id = tostring(number), data = { text = token } }
    if not ok then return end -- the reader has gone: stop producing
  end
  stream:send("done", "")
end

app:static("/", page, { type = "text/html; charset=utf-8" })

-- For EventSource: the prompt is in the query.
app:sse("/tokens", function(stream, req)
  send_answer(stream, prompt_of(req.query.prompt))
end)

-- For fetch: the prompt is in the body, which may be long.
app:post("/tokens", function(req)
  local input = req:json()
  local prompt = prompt_of(type(input) == "table" and input.prompt)
  return photon.stream(function(stream) send_answer(stream, prompt) end)
end)

return app

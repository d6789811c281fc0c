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

-- An answer with a key is made once, whatever becomes of its reader: whoever comes with the key gets it
-- from the beginning, or from the last event that was seen. The page makes the keys up.
local function keyed_answer(key, prompt)
  if not key:find "^[%w-]+$" or #key < 16 or #key > 64 then
    error(photon.problem(422, "a key is made of 16 to 64 letters, digits and hyphens"))
  end
  local channel = photon.channel("answer:" .. key, { replay = 10000, replay_age = 600 })
  return photon.stream({ resume = channel }, function(stream)
    for _, token in model.tokens(prompt, 0) do stream:send("token", { text = token }) end
    stream:send("done", "")
  end)
end

app:static("/", page, { type = "text/html; charset=utf-8" })

-- For EventSource: the prompt is in the query.
app:sse("/tokens", function(stream, req)
  send_answer(stream, prompt_of(req.query.prompt))
end)

-- For fetch: the prompt is in the body, which may be long.
local function read_prompt(req)
  local input = req:json()
  return prompt_of(type(input) == "table" and input.prompt)
end

app:post("/tokens", function(req)
  local prompt = read_prompt(req)
  return photon.stream(function(stream) send_answer(stream, prompt) end)
end)

-- The same, for answers that survive a lost connection and a reloaded page.
app:get("/answers/:key", function(req) return keyed_answer(req.params.key, prompt_of(req.query.prompt)) end)
app:post("/answers/:key", function(req) return keyed_answer(req.params.key, read_prompt(req)) end)

return app

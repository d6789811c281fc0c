-- model: stands for whatever makes the tokens. It takes its time over each one.

local photon = require "photon"

local PAUSE = 0.04 -- seconds

local ANSWER = "You said: “%s”. Here is an answer that is made while you read it. Every word leaves the "
  .. "server at the moment it is ready; nothing collects them first. The handler is a plain loop: it "
  .. "makes a word, sends it, and waits for the next. While it waits, the same worker serves everyone "
  .. "else. When you close this page, the next send tells the loop, and it stops."

local model = {}

-- Splits a text into words with the space after them.
function model.split(text)
  local words = {}
  for word in text:gmatch "%S+%s*" do words[#words + 1] = word end
  return words
end

-- Iterates over the number and text of each token of an answer, from the one after `seen`.
function model.tokens(prompt, seen)
  local words = model.split(ANSWER:format(prompt))
  local number = seen
  return function()
    number = number + 1
    if not words[number] then return nil end
    photon.sleep(PAUSE)
    return number, words[number]
  end
end

return model

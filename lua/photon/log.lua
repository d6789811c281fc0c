-- log: photon.log. Values become text here, in Lua: see photon.failure.

local log = require("photon.core").log

local select, tostring, type, unpack = select, tostring, type, unpack

local function text_of(value)
  if type(value) == "string" then return value end
  return tostring(value)
end

local function level(write)
  return function(...)
    local count = select("#", ...)
    local texts = { ... }
    for i = 1, count do texts[i] = text_of(texts[i]) end
    return write(unpack(texts, 1, count))
  end
end

return { debug = level(log.debug), info = level(log.info), warn = level(log.warn), error = level(log.error) }

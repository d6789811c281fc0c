-- load: a reader function is called from here, not by LuaJIT's load. An error that passes from a hook through
-- that leaves LuaJIT convinced that it still runs a hook, so that no hook is called any more: neither that of
-- the time guard nor that of lua_memory.

local concat, load, pcall, rawset, type = table.concat, load, pcall, rawset, type

-- All pieces until one is nil or empty.
local function read(reader)
  local pieces = {}
  while true do
    local piece = reader()
    if piece == nil or piece == "" then return concat(pieces) end
    if type(piece) ~= "string" and type(piece) ~= "number" then return nil, "reader function must return a string" end
    pieces[#pieces + 1] = piece
  end
end

-- load(chunk, [name], [mode], [env]) as LuaJIT's manual has it: a function, or nil and a message.
local function checked_load(chunk, name, mode, env)
  if type(chunk) == "function" then
    local ok, text, why = pcall(read, chunk)
    if not ok then return nil, text end
    if not text then return nil, why end
    chunk, name = text, name == nil and "=(load)" or name
  end
  local fn, why = load(chunk, name, mode, env)
  if fn then return fn end
  return nil, why
end

rawset(_G, "load", checked_load)

return checked_load

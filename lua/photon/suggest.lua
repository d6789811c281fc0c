-- suggest: for a name that is unknown, the known one that was probably meant.

local min, max = math.min, math.max

-- How many letters must be changed, added, dropped or swapped with their neighbour.
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + cost)
      local is_swap = i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j)
      if is_swap then row[j] = min(row[j], before[j - 2] + 1) end
    end
    before, last = last, row
  end
  return last[#b]
end

-- A tail for an error message: "; did you mean X?", or "" when nothing is near.
return function(name, known)
  if type(name) ~= "string" or #name > 100 then return "" end
  local best, least = nil, max(1, math.floor(#name / 3)) + 1
  for _, candidate in ipairs(known) do
    local d = distance(name:lower(), candidate:lower())
    if d < least then best, least = candidate, d end
  end
  return best and ("; did you mean %s?"):format(best) or ""
end

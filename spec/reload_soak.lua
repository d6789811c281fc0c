-- luacheck: globals setup init mixed seen kinds response done
-- For wrk: every answer of the app of reload_soak_spec must be of one generation alone. Prints what
-- was seen.
local threads = {}

function setup(thread)
  threads[#threads + 1] = thread
end

function init()
  mixed, seen, kinds = 0, {}, 0
end

function response(status, _, body)
  local first = body:match "^%d+"
  if status ~= 200 or not first or body ~= (first .. " "):rep(200) then mixed = mixed + 1 end
  if first and not seen[first] then seen[first], kinds = true, kinds + 1 end
end

function done()
  local bad, most = 0, 0
  for _, thread in ipairs(threads) do
    bad = bad + thread:get "mixed"
    most = math.max(most, thread:get "kinds")
  end
  print("mixed: " .. bad)
  print("generations: " .. most)
end

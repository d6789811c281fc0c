-- What the spec of photon.offload calls in the threads.
local photon = require "photon"

local work = {}
local calls = 0

function work.add(a, b)
  return a + b
end

function work.echo(...)
  return ...
end

-- Blocks its thread until `path` exists; nil after a minute or more.
function work.wait_for(path)
  for _ = 1, 6000 do
    local file = io.open(path)
    if file then
      file:close()
      return "found"
    end
    os.execute "sleep 0.01"
  end
end

function work.touch(path)
  assert(io.open(path, "w")):close()
  return true
end

function work.fail(message)
  error(message, 0)
end

function work.fail_here()
  error "here"
end

function work.fail_with_table()
  error {}
end

function work.give_function()
  return print
end

function work.sleep()
  photon.sleep(1)
end

function work.spawn()
  photon.spawn(print)
end

function work.events()
  local read, reader = photon.channel("offload"):events()
  return read(reader).data
end

function work.on_join()
  photon.channel("offload"):on_join(print)
end

function work.on_leave()
  photon.channel("offload"):on_leave(print)
end

-- Uses luv between collections, with other things in the place of what they free.
function work.use_luv()
  local uv, litter = require "luv", {}
  local before = uv.now()
  for round = 1, 20 do
    collectgarbage()
    for i = 1, 200 do litter[i] = ("%d "):format(round):rep(200 + i) end
    assert(#litter == 200 and uv.getaddrinfo("127.0.0.1", "80"))
    if uv.now() ~= before then return "another time" end
  end
  return "the same time"
end

-- Fills 200 MB, with luv loaded.
function work.fill()
  local kept = { require "luv" }
  for i = 1, 200 do kept[#kept + 1] = ("%d "):format(i):rep(350000) end
  return #kept
end

function work.count_calls()
  calls = calls + 1
  return calls
end

function work.share(key, value)
  return photon.shared("offload"):set(key, value)
end

function work.is_same_state()
  return rawget(_G, "spec_mark") ~= nil
end

work.no_function = 1

return work

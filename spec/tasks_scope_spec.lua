-- What becomes of the tasks of a request when the request is over.
local photon = require "photon"
local test = require "photon.test"

local seen

-- A task that waits until it is cancelled or told to go on; what became of it is put down under `name`.
local function worker(name)
  seen[name] = "waits"
  photon.defer(function() if seen[name] == "waits" then seen[name] = "cancelled" end end)
  photon.await(function(resume) seen.resume[name] = resume end)
  seen[name] = "finished"
end

local function spawn(name, options)
  if options then photon.spawn(options, worker, name) else photon.spawn(worker, name) end
  photon.sleep(0) -- it has begun
end

local function release()
  for _, resume in pairs(seen.resume) do resume() end
  test.settle()
end

local app = photon.app()

app:use(function(req, inner)
  if req.query.before then spawn "before" end
  return inner(req)
end)

app:get("/returns", function()
  spawn "one"
  return "ok"
end)

app:get("/raises", function()
  spawn "one"
  photon.spawn(function()
    spawn "grandchild"
  end):join()
  spawn("apart", { detached = true })
  error "on purpose"
end)

app:get("/problem", function()
  spawn "one"
  error(photon.problem(404, "none"))
end)

app:sse("/waits", function(stream)
  spawn "one"
  spawn("apart", { detached = true })
  stream:send "x"
  photon.await(function() end)
end)

app:sse("/breaks", function(stream)
  spawn "one"
  stream:send "x"
  stream:flush()
  error "on purpose"
end)

app:sse("/ends", function(stream)
  spawn "one"
  stream:send "x"
end)

app:group("/handled", function(group)
  group:on_error(function()
    spawn "handler"
    return "sorry"
  end)
  group:get("/raises", function()
    spawn "one"
    error "on purpose"
  end)
end)

describe("the tasks that a request has spawned", function()
  local client

  before_each(function()
    seen = { resume = {} }
    client = test.app(app)
  end)

  -- What became of each, when those that wait are let go on.
  local function ends(expected)
    test.settle()
    release()
    seen.resume = nil
    assert.same(expected, seen)
  end

  it("go on when its handler returns", function()
    assert.equal("ok", client:get("/returns?before=1").body)
    ends { before = "finished", one = "finished" }
  end)

  it("are cancelled when its handler raises, but for detached ones", function()
    assert.equal(500, client:get("/raises?before=1", { raise = false }).status)
    ends { before = "cancelled", one = "cancelled", grandchild = "cancelled", apart = "finished" }
  end)

  it("are cancelled when it raises a problem", function()
    assert.equal(404, client:get("/problem").status)
    ends { one = "cancelled" }
  end)

  it("go on when the error is the server's own", function()
    assert.equal(404, client:get("/nowhere?before=1").status)
    ends { before = "finished" }
  end)

  it("are those from before the error, not those of on_error", function()
    assert.equal("sorry", client:get("/handled/raises", { raise = false }).body)
    ends { one = "cancelled", handler = "finished" }
  end)

  it("are cancelled when its client goes", function()
    local s = client:sse "/waits"
    assert.equal("x", s:next().data)
    s:close()
    ends { one = "cancelled", apart = "finished" }
  end)

  it("are cancelled when its stream breaks, and go on when that ends", function()
    local s = client:sse("/breaks", { raise = false })
    assert.equal("x", s:next().data)
    assert.equal("broken", select(2, s:next()))
    ends { one = "cancelled" }
    seen = { resume = {} }
    s = client:sse "/ends"
    assert.equal("x", s:next().data)
    assert.equal("closed", select(2, s:next()))
    ends { one = "finished" }
  end)
end)

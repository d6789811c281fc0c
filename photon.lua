-- photon: the front door. Everything that `require "photon"` gives stands here.

local core = require "photon.core"
local app = require "photon.app"
local channel = require "photon.channel"
local log = require "photon.log"
local offload = require "photon.offload"
local response = require "photon.response"
local shared = require "photon.shared"
local task = require "photon.task"

require "photon.request"
require "photon.page"
require "photon.resume"

local photon = {}

-- An app, to be filled with routes and returned by app.lua.
photon.app = app.new

-- What a handler may return beside strings and tables.
photon.html, photon.text = response.html, response.text
photon.redirect, photon.problem = response.redirect, response.problem
photon.stream = response.stream

-- photon.json(value) is a reply; photon.json.encode and .decode are functions on values.
photon.json = setmetatable({ encode = core.json.encode, decode = core.json.decode }, {
  __call = function(_, value) return response.json(value) end,
})
photon.array, photon.null = core.json.array, core.json.null

-- Tasks and time.
photon.sleep, photon.spawn = task.sleep, task.spawn
photon.after, photon.every, photon.timeout = task.after, task.every, task.timeout
photon.await, photon.defer = task.await, task.defer
photon.cancelled = task.cancelled

-- Beyond this worker.
photon.channel, photon.shared, photon.offload = channel.open, shared.open, offload.call
photon.worker = core.worker
photon.log = log

-- The server's own numbers, as app:metrics tells them: one table.
photon.metrics = core.metrics

return photon

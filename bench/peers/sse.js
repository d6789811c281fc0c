// The routes of bench/app.lua's event streams in Node's own http: a write per event, which Node
// itself gathers until the turn of its loop ends. Prints its port.
const http = require('http')

function burst (res) {
  for (let i = 1; i <= 100; i++) res.write('data: event number ' + i + '\n\n')
}

function again (res, send, wait) {
  const next = () => {
    if (res.destroyed) return
    send(res)
    wait(next)
  }
  next()
}

// A burst later, once the socket has taken the last one.
function soon (res) {
  return next => res.writableNeedDrain ? res.once('drain', next) : setImmediate(next)
}

const later = next => setTimeout(next, 2)

const routes = {
  '/events': res => { burst(res); res.end() },
  '/bursts': res => again(res, burst, soon(res)),
  '/paced': res => again(res, burst, later),
  '/stamps': res => again(res, () => res.write('data: ' + process.hrtime.bigint() + '\n\n'), later)
}

const server = http.createServer((req, res) => {
  res.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store, no-transform',
    'x-accel-buffering': 'no'
  })
  routes[req.url](res)
})

server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => console.log(server.address().port))

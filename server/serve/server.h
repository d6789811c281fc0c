// server: what all workers of the process share. Everything in it is immutable after the start,
// atomic, or owned by one room that locks for itself.
#ifndef PHOTON_SERVE_SERVER_H
#define PHOTON_SERVE_SERVER_H

#include "serve/channel.h"
#include "serve/config.h"
#include "serve/metrics.h"

#define SERVER_VERSION "0.1.0"

enum { SERVER_MAX_WORKERS = CONFIG_MAX_WORKERS };

struct server {
    struct config *config;
    unsigned worker_count;
    struct counters *counters[SERVER_MAX_WORKERS]; // each worker's own
    struct counters own;                           // of threads that are no workers
    struct metrics *metrics;
    struct channel_registry *channels;
    _Atomic uint32_t streams;                      // open streams of all workers
    _Atomic uint64_t vm_bytes[SERVER_MAX_WORKERS]; // Lua heap of each worker's living VMs
    _Atomic unsigned generations, generation;
    _Atomic uint64_t reload_pause; // nanoseconds, the longest
    _Atomic bool is_draining;
    uint64_t started; // uv_hrtime
};

// The sum over all workers and `own`.
void server_sum(const struct server *s, struct counters *sum);

struct metrics_gauges server_gauges(const struct server *s);

// Answers /metrics and /healthz routes. Health is 200 `{"status":"ok",…}`, while draining 503.
void server_serve_metrics(struct server *s, struct exchange *x);
void server_serve_health(struct server *s, struct exchange *x);

#endif

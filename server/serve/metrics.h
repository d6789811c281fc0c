// metrics: what is counted, as Prometheus text (exposition format 0.0.4), and the health answer.
// Per-route numbers live as long as the server, whatever is reloaded; each worker counts in its own
// cells. Series are bounded: a label is a route's method and pattern, never a raw path.
#ifndef PHOTON_SERVE_METRICS_H
#define PHOTON_SERVE_METRICS_H

#include "base/counters.h"
#include "http/exchange.h"
#include "serve/router.h"

enum { METRICS_CLASSES = 5, METRICS_BUCKETS = 14 };

// One worker's numbers of one route (cell 0 of metrics_worker is for requests that matched none).
struct metrics_cell {
    _Atomic uint64_t by_class[METRICS_CLASSES]; // 1xx … 5xx
};

struct metrics; // the server's registry

struct metrics *metrics_new(unsigned workers);
void metrics_free(struct metrics *m);

// The lasting number of a route, by method and pattern; made at its first registration. From any
// one thread at a time (loads are serial). UINT32_MAX when there is no memory: counted as cell 0.
uint32_t metrics_route(struct metrics *m, struct slice method, struct slice pattern);

// Counts a finished exchange (its status, duration since x->started, bytes) for `route_number`.
void metrics_count(struct metrics *m, unsigned worker, uint32_t route_number,
                   const struct exchange *x);

// What the server knows besides counters.
struct metrics_gauges {
    uint64_t vm_bytes;
    unsigned workers, generations, generation; // alive, and the number of the current one
    double uptime; // seconds
};

// The whole text. False when there is no memory.
bool metrics_write(struct buf *to, struct metrics *m, const struct counters *sum,
                   const struct metrics_gauges *g);

#endif

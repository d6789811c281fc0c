// metrics: what is counted, as Prometheus text (exposition format 0.0.4), and the health answer.
// Per-route numbers live as long as the server, whatever is reloaded; each worker counts in its own
// cells. Series are bounded: a label is a route's method and pattern, never a raw path.
#ifndef PHOTON_SERVE_METRICS_H
#define PHOTON_SERVE_METRICS_H

#include "base/counters.h"
#include "http/exchange.h"
#include "serve/router.h"

enum {
    METRICS_CLASSES = 5,
    METRICS_BUCKETS = 16,     // 100 µs … 10 s
    METRICS_ROUTES = 1 << 16, // most that are told apart in the life of the server
};

// One worker's numbers of one route; route 0 stands for requests that matched none.
struct metrics_cell {
    _Atomic uint64_t by_class[METRICS_CLASSES]; // [0]: gone before a status; then 2xx … 5xx
};

struct metrics; // the server's registry

// NULL when there is no memory.
struct metrics *metrics_new(unsigned workers);
void metrics_free(struct metrics *m); // NULL is harmless

// The lasting number of a route, by method and pattern; made at its first registration. From any
// one thread at a time (loads are serial). UINT32_MAX when there is no memory, or METRICS_ROUTES
// are known: counted as route 0.
uint32_t metrics_route(struct metrics *m, struct slice method, struct slice pattern);

// Counts a finished exchange (its status, duration since x->started, bytes of its body) for
// `route_number`, on the worker's own thread. Streams have no duration that would say something and
// are left out of the histogram. Reading a clock twice costs more than all the rest: with
// x->started 0 (a reply that C gave at once) the exchange counts into the first bucket without.
void metrics_count(struct metrics *m, unsigned worker, uint32_t route_number,
                   const struct exchange *x);

// Reading, from any thread: numbers are sums over the workers, each as new as it was when read.

// Routes that have a number; 0 is among them.
uint32_t metrics_route_count(struct metrics *m);

// What is known of a route, for a number under the count. Names are borrowed for m's life.
struct metrics_route_sum {
    struct slice method, pattern; // both empty for route 0
    uint64_t by_class[METRICS_CLASSES];
};
struct metrics_route_sum metrics_read_route(struct metrics *m, uint32_t number);

// What is not told apart by route. up_to[b] is how many took no longer than metrics_bound(b), the
// last how many there were.
struct metrics_totals {
    uint64_t up_to[METRICS_BUCKETS + 1];
    uint64_t nanoseconds, body_bytes;
};
struct metrics_totals metrics_read_totals(struct metrics *m);

// The upper bound of a bucket in seconds; infinity for the last, METRICS_BUCKETS.
double metrics_bound(int bucket);

// "gone", "2xx" … "5xx".
const char *metrics_class_name(int class);

// What the server knows besides counters.
struct metrics_gauges {
    uint64_t vm_bytes;
    unsigned workers, generations, generation; // alive, and the number of the current one
    double uptime;                             // seconds
    double reload_pause;                       // seconds
    const char *version;
};

// The whole text, appended; from any thread. False when there is no memory.
bool metrics_write(struct buf *to, struct metrics *m, const struct counters *sum,
                   const struct metrics_gauges *g);

#endif

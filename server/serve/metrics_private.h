// metrics_private: what metrics.c (counting), metrics_read.c (adding up) and metrics_text.c
// (telling) share; for them alone.
//
// Workers count while a load registers routes and somebody reads: chunks of routes are published
// whole and never move, the count of routes last.
#ifndef PHOTON_SERVE_METRICS_PRIVATE_H
#define PHOTON_SERVE_METRICS_PRIVATE_H

#include "serve/metrics.h"

enum { METRICS_CHUNK = 256, METRICS_CHUNKS = METRICS_ROUTES / METRICS_CHUNK };

struct metrics_route {
    struct slice method, pattern;
    uint64_t hash;
};

struct metrics_chunk {
    struct metrics_route routes[METRICS_CHUNK];
    struct metrics_cell cells[]; // METRICS_CHUNK of worker 0, then of worker 1, …
};

struct metrics_worker {
    _Atomic uint64_t buckets[METRICS_BUCKETS + 1]; // the last is for all that took longer
    _Atomic uint64_t nanoseconds, body_bytes;
    char apart[64]; // no two workers write to one cache line
};

struct metrics {
    unsigned workers;
    _Atomic uint32_t count; // of routes
    _Atomic(struct metrics_chunk *) chunks[METRICS_CHUNKS];
    struct arena names;
    uint32_t *table; // by hash, open addressing; 0: free
    uint32_t table_cap;
    struct metrics_worker each[];
};

struct metrics_bound {
    uint64_t nanoseconds;
    const char *text; // in seconds
};

extern const struct metrics_bound metrics_bounds[METRICS_BUCKETS];

// Both for a number under m->count.
static inline const struct metrics_route *metrics_route_at(struct metrics *m, uint32_t number)
{
    struct metrics_chunk *chunk =
        atomic_load_explicit(&m->chunks[number / METRICS_CHUNK], memory_order_acquire);
    return &chunk->routes[number % METRICS_CHUNK];
}

static inline struct metrics_cell *metrics_cell_at(struct metrics *m, uint32_t number,
                                                   unsigned worker)
{
    struct metrics_chunk *chunk =
        atomic_load_explicit(&m->chunks[number / METRICS_CHUNK], memory_order_acquire);
    return &chunk->cells[worker * METRICS_CHUNK + number % METRICS_CHUNK];
}

#endif

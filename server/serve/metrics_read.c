#include "serve/metrics_private.h"

#include <assert.h>
#include <math.h>

uint32_t metrics_route_count(struct metrics *m)
{
    return atomic_load_explicit(&m->count, memory_order_acquire);
}

struct metrics_route_sum metrics_read_route(struct metrics *m, uint32_t number)
{
    const struct metrics_route *route = metrics_route_at(m, number);
    struct metrics_route_sum sum = {.method = route->method, .pattern = route->pattern};
    for (unsigned i = 0; i < m->workers; i++) {
        const struct metrics_cell *cell = metrics_cell_at(m, number, i);
        for (int class = 0; class < METRICS_CLASSES; class ++)
            sum.by_class[class] +=
                atomic_load_explicit(&cell->by_class[class], memory_order_relaxed);
    }
    return sum;
}

struct metrics_totals metrics_read_totals(struct metrics *m)
{
    struct metrics_totals sum = {0};
    uint64_t all = 0;
    for (int b = 0; b <= METRICS_BUCKETS; b++) {
        for (unsigned i = 0; i < m->workers; i++)
            all += atomic_load_explicit(&m->each[i].buckets[b], memory_order_relaxed);
        sum.up_to[b] = all;
    }
    for (unsigned i = 0; i < m->workers; i++) {
        const struct metrics_worker *w = &m->each[i];
        sum.nanoseconds += atomic_load_explicit(&w->nanoseconds, memory_order_relaxed);
        sum.body_bytes += atomic_load_explicit(&w->body_bytes, memory_order_relaxed);
    }
    return sum;
}

double metrics_bound(int bucket)
{
    assert(bucket >= 0 && bucket <= METRICS_BUCKETS);
    return bucket < METRICS_BUCKETS ? (double)metrics_bounds[bucket].nanoseconds / 1e9 : INFINITY;
}

const char *metrics_class_name(int class)
{
    static const char *const names[METRICS_CLASSES] = {"gone", "2xx", "3xx", "4xx", "5xx"};
    return names[class];
}

#include "serve/metrics_private.h"

#include <assert.h>
#include "base/mem.h"

const struct metrics_bound metrics_bounds[METRICS_BUCKETS] = {
    {100000, "0.0001"},  {250000, "0.00025"}, {500000, "0.0005"},  {1000000, "0.001"},
    {2500000, "0.0025"}, {5000000, "0.005"},  {10000000, "0.01"},  {25000000, "0.025"},
    {50000000, "0.05"},  {100000000, "0.1"},  {250000000, "0.25"}, {500000000, "0.5"},
    {1000000000, "1"},   {2500000000, "2.5"}, {5000000000, "5"},   {10000000000, "10"},
};

static uint64_t metrics_hash(uint64_t hash, struct slice s)
{
    for (size_t i = 0; i < s.len; i++) hash = (hash ^ (unsigned char)s.ptr[i]) * 0x100000001b3;
    return hash;
}

static void metrics_table_put(struct metrics *m, uint64_t hash, uint32_t number)
{
    uint32_t at = (uint32_t)hash & (m->table_cap - 1);
    while (m->table[at]) at = (at + 1) & (m->table_cap - 1);
    m->table[at] = number;
}

// At most half full.
static bool metrics_table_grow(struct metrics *m, uint32_t count)
{
    uint32_t cap = m->table_cap ? m->table_cap * 2 : 64;
    if (count < m->table_cap / 2) return true;
    uint32_t *table = mem_zalloc(cap * sizeof *table);
    if (!table) return false;
    mem_free(m->table);
    m->table = table;
    m->table_cap = cap;
    for (uint32_t i = 1; i < count; i++) metrics_table_put(m, metrics_route_at(m, i)->hash, i);
    return true;
}

static uint32_t metrics_find(struct metrics *m, uint64_t hash, struct slice method,
                             struct slice pattern)
{
    if (!m->table_cap) return 0;
    uint32_t at = (uint32_t)hash & (m->table_cap - 1);
    for (; m->table[at]; at = (at + 1) & (m->table_cap - 1)) {
        const struct metrics_route *route = metrics_route_at(m, m->table[at]);
        if (route->hash == hash && slice_equals(route->method, method) &&
            slice_equals(route->pattern, pattern))
            return m->table[at];
    }
    return 0;
}

static struct metrics_chunk *metrics_chunk_for(struct metrics *m, uint32_t number)
{
    _Atomic(struct metrics_chunk *) *place = &m->chunks[number / METRICS_CHUNK];
    struct metrics_chunk *chunk = atomic_load_explicit(place, memory_order_relaxed);
    if (chunk) return chunk;
    size_t cells = (size_t)m->workers * METRICS_CHUNK;
    chunk = mem_zalloc(sizeof *chunk + cells * sizeof *chunk->cells);
    if (chunk) atomic_store_explicit(place, chunk, memory_order_release);
    return chunk;
}

// The next number; UINT32_MAX when there is no memory.
static uint32_t metrics_add(struct metrics *m, uint64_t hash, struct slice method,
                            struct slice pattern)
{
    uint32_t number = atomic_load_explicit(&m->count, memory_order_relaxed);
    if (number == METRICS_ROUTES) return UINT32_MAX;
    struct metrics_chunk *chunk = metrics_chunk_for(m, number);
    if (!chunk || !metrics_table_grow(m, number)) return UINT32_MAX;
    struct metrics_route route = {
        .method = arena_copy(&m->names, method),
        .pattern = arena_copy(&m->names, pattern),
        .hash = hash,
    };
    if (!route.method.ptr || !route.pattern.ptr) return UINT32_MAX;
    chunk->routes[number % METRICS_CHUNK] = route;
    if (number) metrics_table_put(m, hash, number);
    atomic_store_explicit(&m->count, number + 1, memory_order_release);
    return number;
}

uint32_t metrics_route(struct metrics *m, struct slice method, struct slice pattern)
{
    uint64_t hash = metrics_hash(0xcbf29ce484222325, method);
    hash = metrics_hash(metrics_hash(hash, SLICE(" ")), pattern);
    uint32_t known = metrics_find(m, hash, method, pattern);
    return known ? known : metrics_add(m, hash, method, pattern);
}

struct metrics *metrics_new(unsigned workers)
{
    struct metrics *m = mem_zalloc(sizeof *m + workers * sizeof *m->each);
    if (!m) return NULL;
    m->workers = workers;
    if (metrics_add(m, 0, SLICE(""), SLICE("")) == 0) return m;
    metrics_free(m);
    return NULL;
}

void metrics_free(struct metrics *m)
{
    if (!m) return;
    for (int i = 0; i < METRICS_CHUNKS; i++) mem_free(atomic_load(&m->chunks[i]));
    arena_reset(&m->names);
    mem_free(m->table);
    mem_free(m);
}

static void metrics_time(struct metrics_worker *w, const struct exchange *x)
{
    uint64_t took = x->started ? uv_hrtime() - x->started : 0;
    int bucket = 0;
    while (bucket < METRICS_BUCKETS && took > metrics_bounds[bucket].nanoseconds) bucket++;
    counters_add(&w->buckets[bucket], 1);
    counters_add(&w->nanoseconds, (int64_t)took);
}

void metrics_count(struct metrics *m, unsigned worker, uint32_t route_number,
                   const struct exchange *x)
{
    struct metrics_worker *w = &m->each[worker];
    int class = x->status / 100 - 1;
    assert(worker < m->workers);
    if (route_number >= atomic_load_explicit(&m->count, memory_order_relaxed)) route_number = 0;
    if (class < 0 || class >= METRICS_CLASSES) class = 0;
    counters_add(&metrics_cell_at(m, route_number, worker)->by_class[class], 1);
    counters_add(&w->body_bytes, (int64_t)x->bytes_out);
    if (!x->is_stream) metrics_time(w, x);
}

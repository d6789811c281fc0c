// What a lookup costs in tables of 10 to 10,000 routes, and what registering 5,000 costs. "all"
// asks for routes of the whole table in a random order, so that the caches count; "ten" always for
// the same ten, so that only the search does.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "serve/router.h"

enum {
    PATH_ROOM = 64, // a cache line
    ORDER = 1 << 14,
    LOOKUPS = 2000000,
    MOST = 10000,
    REGISTERED = 5000,
    RUNS = 5
};

_Alignas(64) static char paths[MOST][PATH_ROOM];
static size_t path_lens[MOST];
static unsigned order[ORDER];

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint32_t random_next(void)
{
    static uint64_t state = 42;

    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(state >> 33);
}

static struct router *table_new(unsigned count, const char *pattern_format, const char *path_format)
{
    struct router *r = router_new();
    char pattern[PATH_ROOM], error[256];
    int len;

    for (unsigned i = 0; r && i < count; i++) {
        len = snprintf(pattern, sizeof(pattern), pattern_format, i * 7919 % MOST);
        path_lens[i] = (size_t)snprintf(paths[i], PATH_ROOM, path_format, i * 7919 % MOST);
        if (router_add(r,
                       &(struct route){.method = SLICE("GET"),
                                       .pattern = slice_of(pattern, (size_t)len),
                                       .place = SLICE("bench:1")},
                       error, sizeof(error)))
            continue;
        fprintf(stderr, "%s\n", error);
        exit(1);
    }
    if (r) return r;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

// Asks for the first `asked` routes.
static double lookup_ns(const struct router *r, unsigned asked)
{
    struct router_match m;
    struct arena a = {0};
    double best = 0;

    for (unsigned i = 0; i < ORDER; i++) order[i] = random_next() % asked;
    for (unsigned run = 0; run < RUNS; run++) {
        double start = now_ns(), each;
        for (unsigned i = 0; i < LOOKUPS; i++) {
            unsigned which = order[i % ORDER];
            struct slice path = slice_of(paths[which], path_lens[which]);
            // A request's path has just been read; the router is not to pay for it.
            __builtin_prefetch(paths[order[(i + 8) % ORDER]]);
            if (router_match(r, METHOD_GET, SLICE("GET"), path, &a, &m) != ROUTER_FOUND) exit(1);
        }
        each = (now_ns() - start) / LOOKUPS;
        if (!run || each < best) best = each;
    }
    return best;
}

static void print_lookups(const char *name, const char *pattern_format, const char *path_format)
{
    for (unsigned count = 10; count <= MOST; count *= 10) {
        struct router *r = table_new(count, pattern_format, path_format);
        if (!router_seal(r)) exit(1);
        printf("%-10s %6u routes %7.1f ns a lookup (all) %7.1f (ten)\n", name, count,
               lookup_ns(r, count), lookup_ns(r, 10));
        router_free(r);
    }
}

int main(void)
{
    double best = 0;

    print_lookups("literal", "/api/v1/things%04u/list", "/api/v1/things%04u/list");
    print_lookups("parameter", "/api/v1/things%04u/:id", "/api/v1/things%04u/12345");
    print_lookups("two", "/api/v1/things%04u/:id/parts/:part", "/api/v1/things%04u/12345/parts/7");
    print_lookups("rest", "/files%04u/*path", "/files%04u/css/site.css");
    for (unsigned run = 0; run < RUNS; run++) {
        double start = now_ns(), took;
        struct router *r = table_new(REGISTERED, "/api/v1/things%04u/:id", "/%u");
        if (!router_seal(r)) exit(1);
        took = (now_ns() - start) / 1e6;
        router_free(r);
        if (!run || took < best) best = took;
    }
    printf("registration %d routes %.2f ms\n", REGISTERED, best);
    return 0;
}

// What a lookup costs in tables of 10 to 10,000 routes, and what registering 5,000 costs. "all"
// asks for routes of the whole table in a random order, so that the caches count; "ten" always for
// the same ten, so that only the search does. The paths lie where a request's would, in the nearest
// cache: only the table's own bytes can be far. What making them costs has been taken off. "Bytes a
// route" are those that a lookup reads: nodes and hash table.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "serve/router_tree.h"

enum {
    PATH_ROOM = 64,   // a cache line
    RING = 64,        // paths that are ready or were asked for lately
    AHEAD = 32,       // how long before its lookup a path is made
    LOOKUPS = 100000, // of one run
    TABLES = 4,       // of 10, 100, 1,000 and 10,000 routes
    MOST = 10000,
    REGISTERED = 5000,
    RUNS = 30 // of which the best counts
};

struct family {
    const char *name, *pattern, *path; // both with a number of four digits
};

static const struct family families[] = {
    {"literal", "/api/v1/things%04u/list", "/api/v1/things%04u/list"},
    {"parameter", "/api/v1/things%04u/:id", "/api/v1/things%04u/12345"},
    {"two", "/api/v1/things%04u/:id/parts/:part", "/api/v1/things%04u/12345/parts/7"},
    {"rest", "/files%04u/*path", "/files%04u/css/site.css"},
};

// The same paths again and again, but for the number.
struct paths {
    _Alignas(64) char text[RING][PATH_ROOM];
    size_t len, number_at;
    uint64_t random;
    unsigned asked; // the first so many routes
};

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Of a table's i-th route: neighbours in the table are none in their order.
static unsigned number_of(unsigned i)
{
    return i * 7919 % MOST;
}

static struct router *table_new(unsigned count, const char *pattern_format)
{
    struct router *r = router_new();
    char pattern[PATH_ROOM], error[256] = "out of memory";

    for (unsigned i = 0; r && i < count; i++) {
        int len = snprintf(pattern, sizeof(pattern), pattern_format, number_of(i));
        struct route route = {.method = SLICE("GET"),
                              .pattern = slice_of(pattern, (size_t)len),
                              .place = SLICE("bench:1")};
        if (router_add(r, &route, error, sizeof(error))) continue;
        router_free(r);
        r = NULL;
    }
    if (r && router_seal(r)) return r;
    fprintf(stderr, "%s\n", error);
    exit(1);
}

static void paths_init(struct paths *p, const char *format, unsigned asked)
{
    char other[PATH_ROOM];

    p->asked = asked;
    p->random = 42;
    p->number_at = 0;
    p->len = (size_t)snprintf(other, PATH_ROOM, format, 1111);
    for (unsigned i = 0; i < RING; i++) snprintf(p->text[i], PATH_ROOM, format, number_of(0));
    while (strncmp(p->text[0] + p->number_at, other + p->number_at, 1) == 0) p->number_at++;
}

static void paths_make(struct paths *p, unsigned at)
{
    char *to = p->text[at % RING] + p->number_at;
    unsigned n;

    p->random = p->random * UINT64_C(6364136223846793005) + 1442695040888963407;
    n = number_of((unsigned)((p->random >> 33) * p->asked >> 31));
    to[0] = (char)('0' + n / 1000);
    to[1] = (char)('0' + n / 100 % 10);
    to[2] = (char)('0' + n / 10 % 10);
    to[3] = (char)('0' + n % 10);
}

// Nanoseconds a lookup; without a table only what making the path costs.
static double lookup_ns(const struct router *r, struct paths *p)
{
    struct router_match m;
    struct arena a = {0};
    double start = now_ns();

    for (unsigned i = 0; i < LOOKUPS; i++) {
        struct slice path = slice_of(p->text[i % RING], p->len);
        paths_make(p, i + AHEAD);
        if (r && router_match(r, METHOD_GET, SLICE("GET"), path, &a, &m) != ROUTER_FOUND) exit(1);
    }
    return (now_ns() - start) / LOOKUPS;
}

static void keep_best(double *best, double ns)
{
    if (*best == 0 || ns < *best) *best = ns;
}

// The tables take turns, so that the machine's mood meets all alike.
static void print_lookups(const struct family *f)
{
    struct router *tables[TABLES];
    double all[TABLES] = {0}, ten[TABLES] = {0}, making = 0;
    static struct paths paths;
    unsigned count = 1;

    for (unsigned i = 0; i < TABLES; i++) tables[i] = table_new(count *= 10, f->pattern);
    for (unsigned run = 0; run < RUNS; run++) {
        for (unsigned i = 0; i < TABLES; i++) {
            paths_init(&paths, f->path, router_count(tables[i]));
            keep_best(&making, lookup_ns(NULL, &paths));
            keep_best(&all[i], lookup_ns(tables[i], &paths));
            paths_init(&paths, f->path, 10);
            keep_best(&ten[i], lookup_ns(tables[i], &paths));
        }
    }
    for (unsigned i = 0; i < TABLES; i++) {
        const struct router *r = tables[i];
        printf("%-10s %6u routes %7.1f ns a lookup (all) %7.1f (ten); %+4.0f %% and %+4.0f %%; "
               "%zu bytes a route\n",
               f->name, router_count(r), all[i] - making, ten[i] - making,
               100 * ((all[i] - making) / (all[0] - making) - 1),
               100 * ((ten[i] - making) / (ten[0] - making) - 1),
               (r->cell_count * ROUTER_CELL + r->line_count * sizeof(*r->lines)) / router_count(r));
        router_free(tables[i]);
    }
}

static double registration_ms(void)
{
    double best = 0;

    for (unsigned run = 0; run < 5; run++) {
        double start = now_ns();
        struct router *r = table_new(REGISTERED, families[1].pattern);
        keep_best(&best, (now_ns() - start) / 1e6);
        router_free(r);
    }
    return best;
}

int main(void)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++) print_lookups(&families[i]);
    printf("registration %d routes %.2f ms\n", REGISTERED, registration_ms());
    return 0;
}

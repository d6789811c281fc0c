#include "bench.h"

#include <errno.h>
#include <stdio.h>

const char *const bench_error_names[BENCH_ERRORS] = {
    [BENCH_CONNECT] = "connect", [BENCH_STATUS] = "status",       [BENCH_TYPE] = "type",
    [BENCH_RESET] = "reset",     [BENCH_TRUNCATED] = "truncated", [BENCH_TIMEOUT] = "timeout",
    [BENCH_FRAMING] = "framing",
};

uint64_t bench_errors(const struct bench_result *r)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < BENCH_ERRORS; i++) sum += r->errors[i];
    return sum;
}

uint64_t bench_units(const struct bench_result *r)
{
    return r->mode == BENCH_SSE ? r->events : r->responses;
}

const char *bench_unit(const struct bench_result *r)
{
    return r->mode == BENCH_SSE ? "events" : "requests";
}

const struct histogram *bench_spread(const struct bench_result *r)
{
    return r->mode == BENCH_SSE ? &r->gap : &r->latency;
}

const char *bench_spread_name(const struct bench_result *r)
{
    return r->mode == BENCH_SSE ? "gap between events" : "latency";
}

bool bench_file_read(struct buf *to, const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t n = 0;
    if (!file) return false;
    do {
        char *room = buf_reserve(to, 65536);
        n = room ? fread(room, 1, 65536, file) : 0;
        to->len += n;
        if (!room) errno = ENOMEM;
    } while (n);
    bool ok = !ferror(file) && feof(file);
    fclose(file);
    return ok;
}

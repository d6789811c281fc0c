#include "bench_report.h"

// The steps of the scale: 0, 1, 2, 5, 10, 20, … nanoseconds.
static uint64_t bench_step(unsigned i)
{
    static const uint64_t digits[] = {1, 2, 5};
    uint64_t power = 1;
    if (i == 0) return 0;
    for (unsigned tens = (i - 1) / 3; tens; tens--) power *= 10;
    return digits[(i - 1) % 3] * power;
}

// What is below a microsecond is one row: those that came together.
unsigned bench_rows(const struct histogram *h, struct bench_row rows[BENCH_ROWS])
{
    unsigned count = 0;
    uint64_t below = 0, low = 0;
    for (unsigned i = 10; i < 46 && count < BENCH_ROWS && h->count; i++) {
        uint64_t high = bench_step(i), until = histogram_count_below(h, high);
        bool is_last = until == h->count;
        if (until > below || count > 0)
            rows[count++] = (struct bench_row){low, high, until - below};
        below = until;
        low = high;
        if (is_last) break;
    }
    return count;
}

static void bench_times_add(struct bench_times *to, unsigned *count, const char *name,
                            const char *words, const struct histogram *h)
{
    if (h->count) to[(*count)++] = (struct bench_times){name, words, h};
}

unsigned bench_times(const struct bench_options *o, const struct bench_result *r,
                     struct bench_times times[BENCH_TIMES])
{
    unsigned count = 0;
    bench_times_add(times, &count, "connect", "connect", &r->connect);
    bench_times_add(times, &count, "first_byte", "first byte", &r->first_byte);
    if (r->mode == BENCH_SSE) {
        bench_times_add(times, &count, "first_event", "first event", &r->first_event);
        bench_times_add(times, &count, "gap", "gap between events", &r->gap);
    } else {
        bench_times_add(times, &count, "latency", "latency", &r->latency);
        if (o->rate > 0)
            bench_times_add(times, &count, "service", "latency from sending", &r->service);
    }
    return count;
}

#include "bench_series.h"

static void bench_slot_add(struct bench_slot *to, const struct bench_slot *from)
{
    to->units += from->units;
    to->bytes += from->bytes;
    to->errors += from->errors;
    if (from->longest > to->longest) to->longest = from->longest;
}

static void bench_series_widen(struct bench_series *s)
{
    for (unsigned i = 0; i < BENCH_SLOTS; i++) {
        struct bench_slot slot = s->slots[i];
        s->slots[i] = (struct bench_slot){0};
        bench_slot_add(&s->slots[i / 2], &slot);
    }
    s->doublings++;
}

struct bench_slot *bench_series_at(struct bench_series *s, uint64_t time)
{
    while (time / bench_series_width(s) >= BENCH_SLOTS) bench_series_widen(s);
    return &s->slots[time / bench_series_width(s)];
}

unsigned bench_series_count(const struct bench_series *s, uint64_t time)
{
    uint64_t count = time / bench_series_width(s) + 1;
    return count < BENCH_SLOTS ? (unsigned)count : BENCH_SLOTS;
}

unsigned bench_series_shown(const struct bench_series *s, uint64_t time)
{
    uint64_t width = bench_series_width(s);
    bool is_worth_it = time < width || time % width > width / 2;
    return bench_series_count(s, is_worth_it ? time : time - width);
}

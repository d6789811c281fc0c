// bench_series: what happened when, in fixed memory: slots of equal width, which becomes twice as
// wide when the run outgrows them. Zero is a series that begins at 0.
#ifndef PHOTON_BENCH_SERIES_H
#define PHOTON_BENCH_SERIES_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_SLOTS = 120, BENCH_SLOT_FIRST = 100000000 /* 0.1 s */ };

struct bench_slot {
    uint64_t units, bytes, errors;
    uint64_t longest; // nanoseconds: the largest gap or latency
};

struct bench_series {
    uint64_t doublings; // a slot is BENCH_SLOT_FIRST << doublings wide
    struct bench_slot slots[BENCH_SLOTS];
};

// The slot of a time since the start, nanoseconds.
struct bench_slot *bench_series_at(struct bench_series *s, uint64_t time);

static inline uint64_t bench_series_width(const struct bench_series *s)
{
    return (uint64_t)BENCH_SLOT_FIRST << s->doublings;
}

// How many slots a run of `time` nanoseconds has filled, that in which it ended too.
unsigned bench_series_count(const struct bench_series *s, uint64_t time);

// How many of them a picture shows: not the last when the run has barely begun it, since its
// numbers would look like a breakdown.
unsigned bench_series_shown(const struct bench_series *s, uint64_t time);

#endif

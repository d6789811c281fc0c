// wheel: many cheap timers in the order of their time; hierarchical, one millisecond fine. Pure:
// it knows no clock, its loop tells the time. Adding and removing are a few pointer writes; what
// lies beyond the last level (12 days) waits in a list of its own.
#ifndef PHOTON_WIRE_WHEEL_H
#define PHOTON_WIRE_WHEEL_H

#include <stdint.h>
#include "base/list.h"

enum { WHEEL_LEVELS = 5, WHEEL_BITS = 6, WHEEL_SLOTS = 1 << WHEEL_BITS };

// Embedded in whatever waits; used through timer.h. Zero is a timer that does not run.
struct timer {
    struct list node;
    uint64_t at; // in loop->now's milliseconds
    void (*on_time)(struct timer *timer);
};

struct wheel {
    struct list slots[WHEEL_LEVELS][WHEEL_SLOTS];
    struct list far;
    uint64_t occupied[WHEEL_LEVELS]; // a bit for each slot that may hold timers
    uint64_t at;                     // everything up to this millisecond has fired
};

void wheel_init(struct wheel *w, uint64_t at);

// Adds a timer, which is in no list, by its `at`; one that is already due fires a millisecond
// later.
void wheel_add(struct wheel *w, struct timer *timer);

// When wheel_fire must be called next: not later than the first timer's time (but it can be
// earlier); UINT64_MAX when no timer runs.
uint64_t wheel_next(struct wheel *w);

// Fires all that is due at `now`, in order. A callback may start, stop and free any timer.
void wheel_fire(struct wheel *w, uint64_t now);

#endif

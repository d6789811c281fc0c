// timer: one-shot timers on the wheel of a loop. No uv timer per connection; starting and stopping
// are a few pointer writes.
#ifndef PHOTON_WIRE_TIMER_H
#define PHOTON_WIRE_TIMER_H

#include "wire/loop.h"

// Fires once, `ms` after loop->now and not before (0 counts as 1). A running timer is moved. It may
// be started, stopped or freed in any callback, its own included.
void timer_start(struct loop *loop, struct timer *timer, uint64_t ms,
                 void (*on_time)(struct timer *timer));

// Harmless when it is not running.
void timer_stop(struct timer *timer);

static inline bool timer_is_running(const struct timer *timer)
{
    return list_is_linked(&timer->node);
}

#endif

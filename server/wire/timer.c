#include "wire/timer.h"

void timer_start(struct loop *loop, struct timer *timer, uint64_t ms,
                 void (*on_time)(struct timer *timer))
{
    list_remove(&timer->node);
    // Callbacks that are not ours (luv's) do not refresh the clock.
    loop_refresh(loop);
    timer->at = ms < UINT64_MAX / 2 ? loop->now + ms : UINT64_MAX / 2;
    timer->on_time = on_time;
    wheel_add(&loop->wheel, timer);
    loop_tick_at(loop, timer->at);
}

void timer_stop(struct timer *timer)
{
    list_remove(&timer->node);
}

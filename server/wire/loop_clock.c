#include "wire/loop.h"

#include <time.h>

int64_t loop_unix_ms(struct loop *loop)
{
    if (loop->frozen_unix) return loop->frozen_unix + (int64_t)(loop->now - loop->frozen_at);
    struct timespec real;
    clock_gettime(CLOCK_REALTIME, &real);
    return (int64_t)real.tv_sec * 1000 + real.tv_nsec / 1000000;
}

struct slice loop_date(struct loop *loop)
{
    if (loop->now >= loop->date_until) {
        int64_t unix_ms = loop_unix_ms(loop), into_second = unix_ms % 1000;
        if (into_second < 0) into_second += 1000;
        date_format(loop->date, (unix_ms - into_second) / 1000);
        loop->date_until = loop->now + (uint64_t)(1000 - into_second);
    }
    return slice_of(loop->date, DATE_LEN);
}

void loop_clock_freeze(struct loop *loop, int64_t unix_ms)
{
    loop_refresh(loop);
    loop->frozen_unix = unix_ms ? unix_ms : 1;
    loop->frozen_at = loop->now;
    loop->date_until = 0;
}

void loop_clock_advance(struct loop *loop, uint64_t ms)
{
    if (!loop->frozen_unix) return;
    uint64_t until = loop->now + ms, next;
    while ((next = wheel_next(&loop->wheel)) <= until && loop->frozen_unix) {
        if (loop->now < next) loop->now = next;
        wheel_fire(&loop->wheel, loop->now);
    }
    // A callback may have thawed the clock, or advanced it itself.
    if (!loop->frozen_unix) return;
    if (loop->now < until) loop->now = until;
    wheel_fire(&loop->wheel, loop->now);
}

void loop_clock_thaw(struct loop *loop)
{
    if (!loop->frozen_unix) return;
    loop->frozen_unix = 0;
    loop->ahead = loop->now - uv_now(&loop->uv);
    loop->date_until = 0;
    loop->tick_at = 0;
    loop_tick_at(loop, loop->is_bounded ? loop->now + 1 : wheel_next(&loop->wheel));
}

#include "bench_pace.h"

#include <sys/timerfd.h>
#include <unistd.h>

static void bench_pace_on_poll(uv_poll_t *poll, int status, int events)
{
    struct bench_pace *p = poll->data;
    uint64_t count;
    (void)status;
    (void)events;
    if (read(p->fd, &count, sizeof(count)) != sizeof(count)) return;
    p->is_armed = false;
    p->on_due(p);
}

bool bench_pace_open(struct bench_pace *p, uv_loop_t *loop, double rate, uint64_t begun,
                     void (*on_due)(struct bench_pace *p))
{
    *p = (struct bench_pace){.interval = 1e9 / rate, .begun = begun, .on_due = on_due};
    p->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (p->fd < 0) return false;
    if (uv_poll_init(loop, &p->poll, p->fd) != 0) {
        close(p->fd);
        return false;
    }
    p->poll.data = p;
    uv_poll_start(&p->poll, UV_READABLE, bench_pace_on_poll);
    return true;
}

void bench_pace_arm(struct bench_pace *p)
{
    uint64_t at = bench_pace_next(p);
    struct itimerspec spec = {.it_value = {(time_t)(at / 1000000000), (long)(at % 1000000000)}};
    if (p->is_armed) return;
    p->is_armed = true;
    timerfd_settime(p->fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

void bench_pace_close(struct bench_pace *p)
{
    uv_close((uv_handle_t *)&p->poll, NULL);
    close(p->fd);
}

// bench_pace: when requests are due at a fixed rate, whatever became of those before: so a server
// that stops for a while is charged for every request that had to wait. More exact than the loop's
// timers, whose millisecond would show in the latencies.
#ifndef PHOTON_BENCH_PACE_H
#define PHOTON_BENCH_PACE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct bench_pace {
    uv_poll_t poll;
    int fd;          // a timerfd
    double interval; // nanoseconds
    uint64_t begun, taken;
    bool is_armed;
    void (*on_due)(struct bench_pace *p);
};

// False when there is no descriptor.
bool bench_pace_open(struct bench_pace *p, uv_loop_t *loop, double rate, uint64_t begun,
                     void (*on_due)(struct bench_pace *p));

// When the next request is due.
static inline uint64_t bench_pace_next(const struct bench_pace *p)
{
    return p->begun + (uint64_t)((double)p->taken * p->interval);
}

// on_due is called when the next request is due.
void bench_pace_arm(struct bench_pace *p);

void bench_pace_close(struct bench_pace *p);

#endif

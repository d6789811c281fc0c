// The timer wheel against a plain search for the earliest timer, and the loop's clocks.
#include <stdlib.h>
#include <string.h>
#include "report.h"
#include "wire/timer.h"

enum { TIMERS = 300, STEPS = 20000 };

static struct loop loop;
static struct counters counters;

struct alarm {
    struct timer timer; // first
    uint64_t wanted;    // when it must fire; 0: it does not run
    bool *is_wrong;
};

static struct alarm alarms[TIMERS];
static uint32_t seed;
static bool is_wrong;
static unsigned fired;

static void begin(void)
{
    memset(&loop, 0, sizeof(loop));
    loop_open(&loop, &counters);
    memset(alarms, 0, sizeof(alarms));
    is_wrong = false;
    fired = 0;
}

static uint64_t random_time(void)
{
    unsigned bits = report_random(&seed) % 33; // up to fifty days: beyond the last level
    return bits == 0 ? 0 : report_random(&seed) & ((UINT64_C(1) << bits) - 1);
}

static void on_alarm(struct timer *timer);

static void start(struct alarm *a)
{
    uint64_t ms = random_time();
    timer_start(&loop, &a->timer, ms, on_alarm);
    a->wanted = loop.now + (ms ? ms : 1);
}

static void on_alarm(struct timer *timer)
{
    struct alarm *a = (struct alarm *)timer;
    fired++;
    if (a->wanted != loop.now || timer_is_running(timer)) is_wrong = true;
    for (int i = 0; i < TIMERS; i++)
        if (alarms[i].wanted && alarms[i].wanted < loop.now) is_wrong = true;
    a->wanted = 0;
    struct alarm *other = &alarms[report_random(&seed) % TIMERS];
    switch (report_random(&seed) % 4) {
    case 0: start(a); break;
    case 1: start(other); break;
    case 2: timer_stop(&other->timer); other->wanted = 0;
    }
}

static void check_against_search(uint64_t first)
{
    begin();
    loop_clock_freeze(&loop, 1700000000000);
    loop.now = first;
    wheel_init(&loop.wheel, first);
    for (int i = 0; i < STEPS && !is_wrong; i++) {
        struct alarm *a = &alarms[report_random(&seed) % TIMERS];
        switch (report_random(&seed) % 8) {
        case 0:
        case 1:
        case 2: start(a); break;
        case 3:
            timer_stop(&a->timer);
            a->wanted = 0;
            break;
        case 4: loop_clock_advance(&loop, random_time() >> 4); break;
        default: loop_clock_advance(&loop, report_random(&seed) % 100);
        }
        for (int k = 0; k < TIMERS; k++) {
            if (timer_is_running(&alarms[k].timer) != (alarms[k].wanted != 0)) is_wrong = true;
            if (alarms[k].wanted && alarms[k].wanted <= loop.now) is_wrong = true;
            if (alarms[k].wanted && alarms[k].wanted < wheel_next(&loop.wheel)) is_wrong = true;
        }
    }
    CHECK(!is_wrong);
    CHECK(fired > 1000);
    for (int i = 0; i < TIMERS; i++) timer_stop(&alarms[i].timer);
    CHECK(wheel_next(&loop.wheel) == UINT64_MAX);
    loop_close(&loop);
}

static void random_operations(void)
{
    for (seed = 1; seed < 6;) {
        uint32_t run = seed;
        check_against_search(run * 77777);
        seed = run + 1;
    }
}

static void block_ends(void)
{
    seed = 99;
    check_against_search((UINT64_C(1) << 30) - 3);
    check_against_search((UINT64_C(3) << 30) - 1);
    check_against_search((UINT64_C(1) << 24) - 1);
}

static struct alarm *heap_alarm;

static void on_free(struct timer *timer)
{
    fired++;
    free(timer);
    if (heap_alarm) {
        timer_stop(&heap_alarm->timer); // due in the same millisecond, waiting to be fired
        free(heap_alarm);
        heap_alarm = NULL;
    }
}

static void freed_in_callbacks(void)
{
    begin();
    loop_clock_freeze(&loop, 1);
    struct alarm *first = calloc(1, sizeof(*first));
    heap_alarm = calloc(1, sizeof(*heap_alarm));
    timer_start(&loop, &first->timer, 70, on_free);
    timer_start(&loop, &heap_alarm->timer, 70, on_free);
    loop_clock_advance(&loop, 69);
    EQUAL(fired, 0);
    loop_clock_advance(&loop, 1);
    EQUAL(fired, 1);
    CHECK(heap_alarm == NULL);
    loop_close(&loop);
}

static void on_repeat(struct timer *timer)
{
    fired++;
    timer_start(&loop, timer, 10, on_repeat);
}

static void advance_gives_each_its_time(void)
{
    begin();
    loop_clock_freeze(&loop, 5000);
    timer_start(&loop, &alarms[0].timer, 10, on_repeat);
    loop_clock_advance(&loop, 105);
    EQUAL(fired, 10);
    EQUAL(loop_unix_ms(&loop), 5105);
    loop_close(&loop);
}

static void on_stop(struct timer *timer)
{
    (void)timer;
    fired++;
    loop_stop(&loop);
}

static void real_time(void)
{
    begin();
    uint64_t begun = loop.now;
    timer_start(&loop, &alarms[0].timer, 3600000, on_alarm);
    timer_start(&loop, &alarms[1].timer, 30, on_stop);
    timer_start(&loop, &alarms[2].timer, 10, on_repeat);
    loop_run(&loop);
    CHECK(loop.now >= begun + 30);
    CHECK(fired >= 2);
    CHECK(timer_is_running(&alarms[0].timer));
    loop_close(&loop);
}

static void thaw_goes_on(void)
{
    begin();
    loop_clock_freeze(&loop, 1000);
    uint64_t frozen = loop.now;
    timer_start(&loop, &alarms[1].timer, 7200000 + 20, on_stop);
    loop_run_once(&loop, 5); // real time passes, but not ours
    EQUAL(loop.now, frozen);
    loop_clock_advance(&loop, 7200000);
    loop_clock_thaw(&loop);
    EQUAL(fired, 0);
    CHECK(loop_unix_ms(&loop) > 1600000000000);
    loop_run(&loop);
    EQUAL(fired, 1);
    CHECK(loop.now >= frozen + 7200020);
    loop_close(&loop);
}

static bool date_is(const char *text)
{
    return slice_equals(loop_date(&loop), slice_of_text(text));
}

static void date_follows(void)
{
    begin();
    loop_clock_freeze(&loop, INT64_C(784111777) * 1000 + 600);
    CHECK(date_is("Sun, 06 Nov 1994 08:49:37 GMT"));
    loop_clock_advance(&loop, 399);
    CHECK(date_is("Sun, 06 Nov 1994 08:49:37 GMT"));
    loop_clock_advance(&loop, 1);
    CHECK(date_is("Sun, 06 Nov 1994 08:49:38 GMT"));
    loop_clock_thaw(&loop);
    CHECK(!date_is("Sun, 06 Nov 1994 08:49:38 GMT"));
    loop_close(&loop);
}

int main(void)
{
    return report_run((const struct report_case[]){
        {"timers fire in order under random operations", random_operations},
        {"timers cross the ends of levels and of the wheel", block_ends},
        {"timers are freed in callbacks of the same millisecond", freed_in_callbacks},
        {"an advance gives each timer its own time", advance_gives_each_its_time},
        {"timers fire in real time", real_time},
        {"time goes on after a thaw", thaw_goes_on},
        {"the date follows the clock", date_follows},
        {0},
    });
}

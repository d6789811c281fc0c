// Turns and wakes of the loop.
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "report.h"
#include "wire/timer.h"

static struct loop loop;
static struct counters counters;

static void begin(void)
{
    memset(&loop, 0, sizeof(loop));
    loop_open(&loop, &counters);
}

struct step {
    struct loop_turn turn; // first
    struct step *forgets;
    int left, runs;
};

static int order[64], order_len, round_now;

static void on_step(struct loop_turn *turn)
{
    struct step *s = (struct step *)turn;
    order[order_len++] = round_now;
    s->runs++;
    if (s->left-- > 0) loop_next_turn(&loop, turn);
    if (s->forgets) loop_forget(&s->forgets->turn);
}

static void turns_wait_for_the_next_round(void)
{
    struct step a = {.turn.on_turn = on_step, .left = 2}, b = {.turn.on_turn = on_step};
    begin();
    order_len = 0;
    loop_next_turn(&loop, &a.turn);
    loop_next_turn(&loop, &a.turn);
    loop_next_turn(&loop, &b.turn);
    for (round_now = 0; round_now < 6; round_now++) loop_run_once(&loop, 0);
    EQUAL(a.runs, 3);
    EQUAL(b.runs, 1);
    EQUAL(order_len, 4);
    EQUAL(order[1], 0);
    EQUAL(order[2], 1);
    EQUAL(order[3], 2);
    CHECK(!loop_run_once(&loop, 0));
    loop_close(&loop);
}

static void turns_are_forgotten(void)
{
    struct step b = {.turn.on_turn = on_step}, a = {.turn.on_turn = on_step, .forgets = &b};
    begin();
    order_len = 0;
    loop_next_turn(&loop, &a.turn);
    loop_next_turn(&loop, &b.turn);
    loop_forget(&a.turn);
    loop_next_turn(&loop, &a.turn); // behind b now
    struct step c = {.turn.on_turn = on_step, .forgets = &b}, d = {.turn.on_turn = on_step};
    loop_run_once(&loop, 0);
    EQUAL(b.runs, 1);
    loop_next_turn(&loop, &c.turn);
    loop_next_turn(&loop, &b.turn);
    loop_next_turn(&loop, &d.turn);
    loop_run_once(&loop, 0); // c takes b out of the round that runs
    EQUAL(b.runs, 1);
    EQUAL(c.runs + d.runs, 2);
    loop_close(&loop);
}

static void on_last(struct loop_turn *turn)
{
    struct step *s = (struct step *)turn;
    if (s->left-- > 0)
        loop_next_turn(&loop, turn);
    else
        loop_stop(&loop);
}

// Would hang if the loop blocked with turns waiting.
static void turns_keep_the_loop_from_blocking(void)
{
    struct step s = {.turn.on_turn = on_last, .left = 1000};
    begin();
    loop_next_turn(&loop, &s.turn);
    loop_run(&loop);
    EQUAL(s.left, -1);
    loop_close(&loop);
}

static void on_nothing(struct timer *timer)
{
    (void)timer;
}

// Would hang if its bound were used up before it blocks: by a timer that is overdue, for one.
static void once_never_blocks_for_long(void)
{
    struct timer overdue = {0};
    begin();
    timer_start(&loop, &overdue, 1, on_nothing);
    nanosleep(&(struct timespec){0, 3000000}, NULL);
    loop_run_once(&loop, 1);
    for (int i = 0; i < 300; i++) {
        if (i % 7 == 3) loop_clock_freeze(&loop, 1);
        if (i % 7 == 5) loop_clock_thaw(&loop);
        loop_run_once(&loop, 1);
        for (struct timespec pause = {0, 10000 * (i % 200)}; i % 3; i++) nanosleep(&pause, NULL);
    }
    loop_close(&loop);
}

enum { THREADS = 4, POSTS = 2000 };
static atomic_int posted, seen;

static void on_wake(struct loop *l)
{
    atomic_store(&seen, atomic_load(&posted));
    if (atomic_load(&seen) == THREADS * POSTS) loop_stop(l);
}

static void *post(void *unused)
{
    for (int i = 0; i < POSTS; i++) {
        atomic_fetch_add(&posted, 1);
        loop_wake(&loop);
    }
    return unused;
}

// A lost wake would leave the loop waiting for ever.
static void wakes_from_threads(void)
{
    pthread_t threads[THREADS];
    begin();
    loop.on_wake = on_wake;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, post, NULL);
    loop_run(&loop);
    EQUAL(atomic_load(&seen), THREADS * POSTS);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    loop_close(&loop);
}

static void stop_before_run(void)
{
    begin();
    loop_stop(&loop);
    loop_run(&loop);
    CHECK(!loop_run_once(&loop, 1));
    loop_close(&loop);
}

static void buffers_are_lent(void)
{
    struct buf lent[LOOP_SPARE_OUT + 4] = {0};
    begin();
    for (int i = 0; i < LOOP_SPARE_OUT + 4; i++) loop_take_buffer(&loop, &lent[i]);
    buf_reserve(&lent[0], 1 << 20); // too large to be kept
    for (int i = 0; i < LOOP_SPARE_OUT + 4; i++) loop_give_buffer(&loop, &lent[i]);
    EQUAL(loop.spare_count, LOOP_SPARE_OUT);
    for (int i = 0; i < LOOP_SPARE_OUT; i++) CHECK(loop.spare_out[i].cap <= 65536);
    loop_close(&loop);
}

int main(void)
{
    return report_run((const struct report_case[]){
        {"turns queued in a turn wait for the next round", turns_wait_for_the_next_round},
        {"turns are forgotten, also within their round", turns_are_forgotten},
        {"turns keep the loop from blocking", turns_keep_the_loop_from_blocking},
        {"one bounded turn never blocks for long", once_never_blocks_for_long},
        {"wakes from threads are never lost", wakes_from_threads},
        {"a stop before the run counts", stop_before_run},
        {"a bounded number of output buffers is kept", buffers_are_lent},
        {0},
    });
}

#include "wire/loop.h"

#include <assert.h>
#include "base/mem.h"

enum { LOOP_BUFFER_FIRST = 4096, LOOP_BUFFER_LARGEST = 65536 };

static void loop_on_tick(uv_timer_t *tick);

// The tick may always come early: it then only looks at the wheel, and sets the right one.
static void loop_tick_within(struct loop *loop, uint64_t ms)
{
    loop->tick_at = loop->now + ms;
    uv_timer_start(&loop->tick, loop_on_tick, ms, 0);
}

void loop_tick_at(struct loop *loop, uint64_t at)
{
    bool comes_in_time = loop->tick_at && loop->tick_at <= at;
    if (loop->frozen_unix || comes_in_time || at == UINT64_MAX) return;
    loop_tick_within(loop, at > loop->now ? at - loop->now : 0);
}

static void loop_on_tick(uv_timer_t *tick)
{
    struct loop *loop = list_entry(tick, struct loop, tick);
    loop_refresh(loop);
    loop->tick_at = 1; // callbacks that start timers need not set the tick: that is done below
    wheel_fire(&loop->wheel, loop->now);
    loop->tick_at = 0;
    loop_tick_at(loop, wheel_next(&loop->wheel));
    // libuv fires timers before it blocks, so the bound may be used up when the blocking begins.
    if (loop->is_bounded) loop_tick_within(loop, 1);
}

static void loop_on_hurry(uv_idle_t *hurry)
{
    (void)hurry; // its being active is what counts
}

static void loop_on_prepare(uv_prepare_t *prepare)
{
    struct loop *loop = list_entry(prepare, struct loop, prepare);
    struct list round, *node;
    loop_refresh(loop);
    list_init(&round);
    list_move_all(&round, &loop->turns);
    while ((node = list_take(&round))) {
        struct loop_turn *turn = list_entry(node, struct loop_turn, node);
        turn->on_turn(turn);
    }
    if (list_is_empty(&loop->turns))
        uv_idle_stop(&loop->hurry);
    else
        uv_idle_start(&loop->hurry, loop_on_hurry);
}

static void loop_on_wake(uv_async_t *wake)
{
    struct loop *loop = list_entry(wake, struct loop, wake);
    loop_refresh(loop);
    if (loop->on_wake) loop->on_wake(loop);
}

// None of the loop's own handles keeps it alive; loop_run and loop_run_once hold it by `wake`.
static bool loop_open_handles(struct loop *loop)
{
    if (uv_loop_init(&loop->uv) != 0) return false;
    if (uv_async_init(&loop->uv, &loop->wake, loop_on_wake) != 0) {
        uv_loop_close(&loop->uv);
        return false;
    }
    uv_timer_init(&loop->uv, &loop->tick);
    uv_idle_init(&loop->uv, &loop->hurry);
    uv_prepare_init(&loop->uv, &loop->prepare);
    uv_prepare_start(&loop->prepare, loop_on_prepare);
    uv_unref((uv_handle_t *)&loop->wake);
    uv_unref((uv_handle_t *)&loop->tick);
    uv_unref((uv_handle_t *)&loop->hurry);
    uv_unref((uv_handle_t *)&loop->prepare);
    return true;
}

bool loop_open(struct loop *loop, struct counters *counters)
{
    *loop = (struct loop){.counters = counters, .on_wake = loop->on_wake, .owner = loop->owner};
    list_init(&loop->turns);
    loop->read_buffer = mem_alloc(LOOP_READ_BUFFER);
    loop->spare_out = mem_zalloc(LOOP_SPARE_OUT * sizeof(struct buf));
    if (!loop->read_buffer || !loop->spare_out || !loop_open_handles(loop)) {
        mem_free(loop->read_buffer);
        mem_free(loop->spare_out);
        return false;
    }
    loop_refresh(loop);
    wheel_init(&loop->wheel, loop->now);
    return true;
}

void loop_run(struct loop *loop)
{
    uv_ref((uv_handle_t *)&loop->wake);
    while (!loop->is_stopping) uv_run(&loop->uv, UV_RUN_DEFAULT);
    uv_unref((uv_handle_t *)&loop->wake);
    loop->is_stopping = false;
}

void loop_stop(struct loop *loop)
{
    loop->is_stopping = true;
    uv_stop(&loop->uv);
}

bool loop_run_once(struct loop *loop, unsigned timeout)
{
    uv_update_time(&loop->uv);
    loop_refresh(loop);
    loop->is_bounded = timeout > 0;
    bool comes_in_time =
        uv_is_active((uv_handle_t *)&loop->tick) && uv_timer_get_due_in(&loop->tick) <= timeout;
    if (timeout && !comes_in_time) loop_tick_within(loop, timeout);
    uv_ref((uv_handle_t *)&loop->wake);
    uv_run(&loop->uv, timeout ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    uv_unref((uv_handle_t *)&loop->wake);
    loop->is_bounded = false;
    return uv_loop_alive(&loop->uv) || !list_is_empty(&loop->turns);
}

void loop_close(struct loop *loop)
{
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->tick, NULL);
    uv_close((uv_handle_t *)&loop->hurry, NULL);
    uv_close((uv_handle_t *)&loop->prepare, NULL);
    while (uv_run(&loop->uv, UV_RUN_DEFAULT)) continue;
    int failure = uv_loop_close(&loop->uv);
    assert(failure == 0);
    (void)failure;
    while (loop->spare_count) buf_reset(&loop->spare_out[--loop->spare_count]);
    mem_free(loop->spare_out);
    mem_free(loop->read_buffer);
    arena_pool_reset(&loop->arenas);
}

void loop_wake(struct loop *loop)
{
    uv_async_send(&loop->wake);
}

void loop_next_turn(struct loop *loop, struct loop_turn *turn)
{
    if (list_is_linked(&turn->node)) return;
    list_append(&loop->turns, &turn->node);
    // Turns are run before the loop blocks, but the caller may itself be one of the last to run.
    if (!uv_is_active((uv_handle_t *)&loop->hurry)) uv_idle_start(&loop->hurry, loop_on_hurry);
}

void loop_forget(struct loop_turn *turn)
{
    list_remove(&turn->node);
}

void loop_take_buffer(struct loop *loop, struct buf *b)
{
    if (loop->spare_count)
        *b = loop->spare_out[--loop->spare_count];
    else
        buf_reserve(b, LOOP_BUFFER_FIRST);
}

void loop_give_buffer(struct loop *loop, struct buf *b)
{
    if (!b->ptr) return;
    if (b->cap > LOOP_BUFFER_LARGEST || loop->spare_count == LOOP_SPARE_OUT) {
        buf_reset(b);
        return;
    }
    b->len = 0;
    loop->spare_out[loop->spare_count++] = *b;
    *b = (struct buf){0};
}

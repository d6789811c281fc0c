// loop: one worker's event loop: libuv, the clock, the timer wheel, and what all conns of the loop
// share (read buffer, spare output buffers). Everything here belongs to the loop's thread, except
// loop_wake.
#ifndef PHOTON_WIRE_LOOP_H
#define PHOTON_WIRE_LOOP_H

#include <uv.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/counters.h"
#include "base/list.h"
#include "text/date.h"
#include "wire/wheel.h"

enum { LOOP_READ_BUFFER = 65536, LOOP_SPARE_OUT = 16 };

// Work for the next turn: news that must not be told from inside the call that caused it.
struct loop_turn {
    struct list node;
    void (*on_turn)(struct loop_turn *turn);
};

struct loop {
    uv_loop_t uv;
    uv_timer_t tick;      // drives the wheel
    uv_prepare_t prepare; // runs the turns before the loop blocks
    uv_idle_t hurry;      // active while turns wait, so that the loop does not block
    uv_async_t wake;
    void (*on_wake)(struct loop *loop); // the caller's, like owner: loop_open leaves both alone
    void *owner;
    struct counters *counters;

    uint64_t now; // milliseconds of a monotonic clock, of this turn; frozen clocks move it by hand
    int64_t frozen_unix; // milliseconds since 1970 of a frozen clock; 0: not frozen
    uint64_t frozen_at;  // `now` at the freeze
    uint64_t ahead;      // how far `now` runs ahead of libuv's clock, after a freeze
    char date[DATE_LEN];
    uint64_t date_until; // `now` from which `date` must be looked at again

    struct wheel wheel;
    uint64_t tick_at; // when `tick` comes; 0: it does not
    struct list turns;
    char *read_buffer;
    struct arena_pool arenas;
    struct buf *spare_out; // a stack of LOOP_SPARE_OUT output buffers with memory
    unsigned spare_count;
    bool is_stopping, is_bounded; // is_bounded: in a loop_run_once that may block
};

// False when there is no memory or no descriptor; nothing is left open then.
bool loop_open(struct loop *loop, struct counters *counters);

// Runs until loop_stop (of the same thread; it may come before).
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

// One turn without blocking longer than `timeout` milliseconds (tests and shutdown). True when
// handles of others or turns are still alive; timers do not count.
bool loop_run_once(struct loop *loop, unsigned timeout);

// Closes the loop's own handles and runs until all close callbacks have been made. Handles of
// others must be closed (or closing) before.
void loop_close(struct loop *loop);

// From any thread: on_wake is called on the loop's thread soon (several wakes may become one).
void loop_wake(struct loop *loop);

// Puts the turn at the end of the queue; harmless when it already waits. loop_forget takes it out.
void loop_next_turn(struct loop *loop, struct loop_turn *turn);
void loop_forget(struct loop_turn *turn);

// Takes over libuv's clock; each of our callbacks from libuv begins with it.
static inline void loop_refresh(struct loop *loop)
{
    if (!loop->frozen_unix) loop->now = uv_now(&loop->uv) + loop->ahead;
}

// For timer: the wheel must be looked at not later than `at`.
void loop_tick_at(struct loop *loop, uint64_t at);

// Output buffers with memory, so that idle connections need not keep their own. take gives one that
// is empty (its ptr is NULL when there is no memory); give leaves *b empty and without memory.
void loop_take_buffer(struct loop *loop, struct buf *b);
void loop_give_buffer(struct loop *loop, struct buf *b);

// The Date field's 29 bytes for now; formatted once a second.
struct slice loop_date(struct loop *loop);

// Milliseconds since 1970, of the frozen clock when it is frozen.
int64_t loop_unix_ms(struct loop *loop);

// The frozen clock of tests: time stands still until it is advanced; timers that come due by an
// advance fire in order within that call, each at its own time. After thaw `now` goes on from
// there, and the date is the real one again. A freeze at 0 is one at 1.
void loop_clock_freeze(struct loop *loop, int64_t unix_ms);
void loop_clock_advance(struct loop *loop, uint64_t ms);
void loop_clock_thaw(struct loop *loop);

#endif

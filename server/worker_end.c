// How a worker ends: it drains, retires its part of the app, and breaks off what lasts too long.
#include "base/mem.h"
#include "worker.h"

enum {
    WORKER_CHECK_MS = 10,   // how often it looks whether everything has ended
    WORKER_LINGER_MS = 200, // how long clients that have got everything may take to close
    WORKER_SPREAD = 3000,   // clients of streams come back within so many ms, not all at once
    WORKER_LAST_TURNS = 2,  // turns in which requests that are here already are still read
};

// The app is retired only when no connection is left: a request that is half received still needs
// it.
static void worker_check(struct timer *timer)
{
    struct worker *w = list_entry(timer, struct worker, check);
    channel_worker_end_all(&w->channels, WORKER_SPREAD);
    if (w->app.streams.count) stream_host_end_all(&w->app.streams, WORKER_SPREAD);
    bool has_conns = !list_is_empty(&w->http.conns);
    if (!http1_host_is_done(&w->http))
        w->done_at = w->loop.now + WORKER_LINGER_MS;
    else if (has_conns && w->loop.now >= w->done_at)
        http1_host_abort(&w->http);
    if (!has_conns && !w->is_retired) {
        w->is_retired = true;
        app_retire_all(&w->app);
    }
    if (w->is_aborted) app_abort_all(&w->app);
    if (!has_conns && app_is_empty(&w->app))
        loop_stop(&w->loop);
    else
        timer_start(&w->loop, timer, WORKER_CHECK_MS, worker_check);
}

static void worker_on_turn(struct loop_turn *turn)
{
    struct worker *w = list_entry(turn, struct worker, turn);
    if (w->turns_left > 0) {
        w->turns_left--;
        loop_next_turn(&w->loop, turn);
        return;
    }
    http1_host_drain(&w->http);
    w->done_at = w->loop.now + WORKER_LINGER_MS;
    worker_check(&w->check);
}

// Idle connections are closed only after what their clients have sent already has been read: else
// a request that crosses the signal would get no answer.
void worker_drain(struct worker *w, void *unused)
{
    (void)unused;
    if (w->is_draining) return;
    w->is_draining = w->http.is_draining = true;
    w->turns_left = WORKER_LAST_TURNS;
    w->turn.on_turn = worker_on_turn;
    loop_next_turn(&w->loop, &w->turn);
}

void worker_abort(struct worker *w, void *unused)
{
    (void)unused;
    mem_fail_rate(0, 0);
    w->is_aborted = w->is_draining = w->http.is_draining = true;
    loop_forget(&w->turn);
    app_abort_all(&w->app);
    http1_host_abort(&w->http);
    worker_check(&w->check);
}

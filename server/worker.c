#include "worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"
#include "script/guard_thread.h"

static void worker_on_wake(struct loop *loop);

// on_start has ended, on the worker's thread.
static void worker_on_started(struct app_host *host, const char *error)
{
    struct worker *w = list_entry(host, struct worker, app);
    if (atomic_load(&w->start) != WORKER_STARTING) return;
    if (error) snprintf(w->error, sizeof(w->error), "%s", error);
    atomic_store(&w->start, error ? WORKER_FAILED : WORKER_STARTED);
    loop_wake(w->boss);
}

bool worker_open(struct worker *w, struct server *server, unsigned index, struct loop *boss)
{
    *w = (struct worker){.server = server, .index = index, .boss = boss};
    w->loop.on_wake = worker_on_wake;
    w->loop.owner = w;
    if (!loop_open(&w->loop, &w->counters)) return false;
    app_host_init(&w->app, server, index, &w->loop, &w->counters);
    w->app.http1 = &w->http;
    w->app.on_started = worker_on_started;
    w->app.channels = &w->channels;
    if (!http1_host_open(&w->http, &w->loop, &w->app.limits, &w->app.handler)) {
        loop_close(&w->loop);
        return false;
    }
    channel_worker_open(&w->channels, &w->loop, &server->streams);
    pthread_mutex_init(&w->lock, NULL);
    server->counters[index] = &w->counters;
    w->is_open = true;
    return true;
}

static void *worker_run(void *data)
{
    struct worker *w = data;
    char name[16];
    snprintf(name, sizeof(name), "photon-%u", w->index + 1);
    pthread_setname_np(pthread_self(), name);
    if (guard_join_thread(&w->guard))
        w->app.guard = &w->guard;
    else
        log_write(LOG_WARN, "worker %u runs unguarded: not enough memory", w->index + 1);
    loop_run(&w->loop);
    guard_leave_thread(&w->guard);
    atomic_store(&w->is_over, true);
    loop_wake(w->boss);
    return NULL;
}

bool worker_start(struct worker *w)
{
    w->has_thread = guard_thread_start(&w->thread, worker_run, w, false);
    return w->has_thread;
}

void worker_join(struct worker *w)
{
    if (w->has_thread) pthread_join(w->thread, NULL);
    w->has_thread = false;
}

void worker_close(struct worker *w)
{
    if (!w->is_open) return;
    for (size_t i = 0; i < w->arrival_count; i++) close(w->arrivals[i].fd);
    mem_free(w->arrivals);
    mem_free(w->taken);
    http1_host_close(&w->http);
    channel_worker_close(&w->channels);
    loop_close(&w->loop);
    pthread_mutex_destroy(&w->lock);
    w->is_open = false;
}

void worker_order(struct worker *w, void (*run)(struct worker *w, void *data), void *data)
{
    pthread_mutex_lock(&w->lock);
    assert(w->order_count < WORKER_ORDERS); // the boss waits for each install before the next
    w->orders[w->order_count++] = (struct worker_order){run, data};
    pthread_mutex_unlock(&w->lock);
    loop_wake(&w->loop);
}

static bool worker_make_room(struct worker *w)
{
    if (w->arrival_count < w->arrival_cap) return true;
    size_t cap = w->arrival_cap ? 2 * w->arrival_cap : 64;
    struct worker_arrival *arrivals = mem_realloc(w->arrivals, cap * sizeof(*arrivals));
    if (!arrivals) return false;
    w->arrivals = arrivals;
    w->arrival_cap = cap;
    return true;
}

bool worker_give(struct worker *w, int fd, const struct peer *peer)
{
    pthread_mutex_lock(&w->lock);
    bool has_room = worker_make_room(w);
    if (has_room) {
        w->arrivals[w->arrival_count++] = (struct worker_arrival){*peer, fd};
        atomic_fetch_add(&w->arriving, 1);
    }
    pthread_mutex_unlock(&w->lock);
    return has_room;
}

void worker_wake(struct worker *w)
{
    loop_wake(&w->loop);
}

void worker_take(struct worker *w, int fd, const struct peer *peer)
{
    if (!http1_accept(&w->http, fd, peer)) counters_add(&w->counters.accept_errors, 1);
}

// The two arrays change places, so that nothing is served under the lock.
static size_t worker_swap_arrivals(struct worker *w)
{
    struct worker_arrival *arrivals = w->arrivals;
    size_t cap = w->arrival_cap, count = w->arrival_count;
    w->arrivals = w->taken;
    w->arrival_cap = w->taken_cap;
    w->arrival_count = 0;
    w->taken = arrivals;
    w->taken_cap = cap;
    return count;
}

static void worker_on_wake(struct loop *loop)
{
    struct worker *w = loop->owner;
    struct worker_order orders[WORKER_ORDERS];
    pthread_mutex_lock(&w->lock);
    unsigned order_count = w->order_count;
    memcpy(orders, w->orders, order_count * sizeof(*orders));
    w->order_count = 0;
    size_t count = worker_swap_arrivals(w);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < count; i++) { // never counted twice for long: the acceptor is looking
        worker_take(w, w->taken[i].fd, &w->taken[i].peer);
        atomic_fetch_sub(&w->arriving, 1);
    }
    for (unsigned i = 0; i < order_count; i++) orders[i].run(w, orders[i].data);
    channel_worker_run(&w->channels);
}

void worker_install(struct worker *w, void *part)
{
    struct app_part *share = part;
    unsigned number = app_number(share->generation);
    app_install(&w->app, share);
    atomic_store(&w->installed, number);
    loop_wake(w->boss);
}

// Hostile builds let allocations fail while clients are served, not while the app starts. One in 60
// is the most: with more, LuaJIT itself crashes (a table that cannot grow within the collector
// loses keys).
void worker_serve(struct worker *w, void *unused)
{
    (void)unused;
#ifdef PHOTON_HOSTILE
    const char *rate = getenv("PHOTON_FAIL_RATE");
    if (rate) mem_fail_rate((unsigned)strtoul(rate, NULL, 10), w->index + 1);
#endif
    (void)w;
}

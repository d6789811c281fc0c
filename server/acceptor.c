#include "acceptor.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>
#include "base/log.h"
#include "wire/timer.h"

enum {
    ACCEPTOR_BURST = 256,     // connections taken from one listener before others get their turn
    ACCEPTOR_RETRY_MS = 100,  // the pause after an error
    ACCEPTOR_WARN_MS = 1000,  // at most one warning in this time
    ACCEPTOR_RESERVE = 64,    // descriptors that the process needs besides connections
    ACCEPTOR_PER_WORKER = 16, // and those of each loop
};

static void acceptor_on_readable(struct listener *l);

// Several threads count into `own`.
static void acceptor_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static struct worker *acceptor_choose(struct acceptor *a, uint64_t *all)
{
    struct worker *best = &a->workers[0];
    uint64_t least = worker_load(best);
    *all = least;
    for (unsigned i = 1; i < a->worker_count; i++) {
        uint64_t load = worker_load(&a->workers[i]);
        *all += load;
        if (load < least) {
            least = load;
            best = &a->workers[i];
        }
    }
    return best;
}

static void acceptor_hand_out(struct acceptor *a, int fd, const struct peer *peer)
{
    uint64_t all;
    struct worker *w = acceptor_choose(a, &all);
    if (all >= atomic_load_explicit(&a->max_connections, memory_order_relaxed)) {
        acceptor_count(&a->server->own.connections_refused);
        refusals_add(&a->refusals, a->loop, fd);
    } else if (a->loop == &w->loop) {
        worker_take(w, fd, peer);
    } else if (worker_give(w, fd, peer)) {
        a->is_burst[w->index] = true;
    } else {
        acceptor_count(&a->server->own.accept_errors);
        close(fd);
    }
}

static void acceptor_wake_workers(struct acceptor *a)
{
    for (unsigned i = 0; i < a->worker_count; i++) {
        if (a->is_burst[i]) worker_wake(&a->workers[i]);
        a->is_burst[i] = false;
    }
}

static void acceptor_watch_all(struct acceptor *a);

static void acceptor_on_retry(struct timer *timer)
{
    acceptor_watch_all(list_entry(timer, struct acceptor, retry));
}

static void acceptor_pause(struct acceptor *a)
{
    for (unsigned i = 0; i < a->listener_count; i++) listener_unwatch(&a->listeners[i]);
    a->is_watching = false;
    timer_start(a->loop, &a->retry, ACCEPTOR_RETRY_MS, acceptor_on_retry);
}

static void acceptor_watch_all(struct acceptor *a)
{
    a->is_watching = true;
    for (unsigned i = 0; i < a->listener_count && a->is_watching; i++) {
        a->listeners[i].owner = a;
        if (!listener_watch(&a->listeners[i], a->loop, acceptor_on_readable)) acceptor_pause(a);
    }
}

// True when accepting may go on at once: a connection could be shed.
static bool acceptor_fail(struct acceptor *a, struct listener *l, int code)
{
    acceptor_count(&a->server->own.accept_errors);
    if (a->warned == 0 || a->loop->now - a->warned >= ACCEPTOR_WARN_MS) {
        log_write(LOG_WARN, "cannot accept connections on %s: %s%s", l->url, uv_strerror(-code),
                  code == EMFILE ? "; raise ulimit -n or lower max_connections" : "");
        a->warned = a->loop->now ? a->loop->now : 1;
    }
    bool lacks_descriptors = code == EMFILE || code == ENFILE;
    return lacks_descriptors && listener_shed(l, &a->spare);
}

// True when nothing waits any more.
static bool acceptor_accept(struct acceptor *a, struct listener *l)
{
    struct peer peer;
    for (int i = 0; i < ACCEPTOR_BURST; i++) {
        int fd = listener_accept(l, &peer);
        if (fd >= 0) {
            acceptor_hand_out(a, fd, &peer);
        } else if (fd == -1) {
            return true;
        } else if (!acceptor_fail(a, l, errno)) {
            acceptor_pause(a);
            return true;
        }
    }
    return false;
}

static void acceptor_on_readable(struct listener *l)
{
    struct acceptor *a = l->owner;
    acceptor_accept(a, l);
    acceptor_wake_workers(a);
}

// Whoever has connected before the end is still served; later ones are refused by the kernel.
static void acceptor_finish(struct acceptor *a)
{
    timer_stop(&a->retry);
    for (unsigned i = 0; i < a->listener_count; i++) {
        while (a->is_watching && !acceptor_accept(a, &a->listeners[i])) continue;
        listener_close(&a->listeners[i]);
    }
    timer_stop(&a->retry);
    a->is_watching = false;
    acceptor_wake_workers(a);
    refusals_reset(&a->refusals);
    if (a->spare >= 0) close(a->spare);
    a->spare = -1;
}

static void acceptor_on_wake(struct loop *loop)
{
    struct acceptor *a = loop->owner;
    if (!atomic_load(&a->is_stopping)) return;
    acceptor_finish(a);
    loop_stop(loop);
}

static void acceptor_begin(struct acceptor *a)
{
    a->spare = -1;
    if (a->listener_count > 0) listener_shed(&a->listeners[0], &a->spare);
    acceptor_watch_all(a);
}

static void acceptor_begin_here(struct worker *w, void *acceptor)
{
    (void)w;
    acceptor_begin(acceptor);
}

static void *acceptor_run(void *data)
{
    struct acceptor *a = data;
    pthread_setname_np(pthread_self(), "photon-acceptor");
    acceptor_begin(a);
    loop_run(&a->own);
    loop_close(&a->own);
    return NULL;
}

bool acceptor_start(struct acceptor *a)
{
    if (a->worker_count == 1) {
        a->loop = &a->workers[0].loop;
        worker_order(&a->workers[0], acceptor_begin_here, a);
        return true;
    }
    a->loop = &a->own;
    a->own.on_wake = acceptor_on_wake;
    a->own.owner = a;
    if (!loop_open(&a->own, &a->idle_counters)) return false;
    a->has_thread = pthread_create(&a->thread, NULL, acceptor_run, a) == 0;
    if (!a->has_thread) loop_close(&a->own);
    return a->has_thread;
}

static void acceptor_finish_here(struct worker *w, void *acceptor)
{
    (void)w;
    acceptor_finish(acceptor);
}

void acceptor_stop(struct acceptor *a)
{
    if (!a->loop || atomic_exchange(&a->is_stopping, true)) return;
    if (!a->has_thread) {
        worker_order(&a->workers[0], acceptor_finish_here, a);
        return;
    }
    loop_wake(&a->own);
    pthread_join(a->thread, NULL);
    a->has_thread = false;
}

uint32_t acceptor_limit_connections(uint32_t max_connections, unsigned workers)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return max_connections;
    if (files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        getrlimit(RLIMIT_NOFILE, &files);
    }
    rlim_t reserve = ACCEPTOR_RESERVE + ACCEPTOR_PER_WORKER * (rlim_t)workers;
    rlim_t left = files.rlim_cur > 2 * reserve ? files.rlim_cur - reserve : files.rlim_cur / 2;
    return left < max_connections ? (uint32_t)left : max_connections;
}

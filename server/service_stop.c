#include "service_stop.h"

#include <stdio.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"

enum {
    SERVICE_GRACE_MS = 1000
}; // for the threads to end after they have been told to stop at once

static void service_order_all(struct service *s, void (*run)(struct worker *w, void *data))
{
    for (unsigned i = 0; i < s->worker_count; i++) {
        if (s->workers[i].has_thread) worker_order(&s->workers[i], run, NULL);
    }
}

// Code that cannot be stopped (a blocking call into C) must not keep the process alive.
static void service_leave(struct service *s)
{
    control_close(&s->control);
    for (unsigned i = 0; i < s->sockets.count; i++) {
        if (s->sockets.listeners[i].path[0]) unlink(s->sockets.listeners[i].path);
    }
    log_write(LOG_ERROR, "stopped while code that does not end was still running");
    log_close();
    _exit(s->has_failed ? 1 : 0);
}

static void service_on_grace(struct timer *timer)
{
    service_leave(list_entry(timer, struct service, deadline));
}

static void service_abort(struct service *s)
{
    s->phase = SERVICE_ABORTING;
    acceptor_stop(&s->acceptor);
    service_order_all(s, worker_abort);
    timer_start(&s->loop, &s->deadline, SERVICE_GRACE_MS, service_on_grace);
}

static void service_on_deadline(struct timer *timer)
{
    struct service *s = list_entry(timer, struct service, deadline);
    log_write(LOG_WARN, "drain time is over: what still runs is broken off");
    service_abort(s);
}

static void service_end_inputs(struct service *s)
{
    atomic_store(&s->server.is_draining, true);
    control_stop(&s->control);
    watch_close(&s->watch);
    reload_end(&s->reload);
}

static void service_drain(struct service *s)
{
    s->phase = SERVICE_DRAINING;
    timer_start(&s->loop, &s->deadline, s->drain, service_on_deadline);
    acceptor_stop(&s->acceptor);
    service_order_all(s, worker_drain);
}

void service_stop(struct service *s)
{
    bool is_serving = s->phase == SERVICE_SERVING;
    if (s->phase == SERVICE_ABORTING) return;
    if (s->phase < SERVICE_DRAINING) service_end_inputs(s);
    if (is_serving)
        service_drain(s);
    else
        service_abort(s);
}

void service_give_up(struct service *s, const char *why)
{
    snprintf(s->error, sizeof(s->error), "%s", why);
    s->has_failed = true;
    service_end_inputs(s);
    service_abort(s);
}

// Whether all workers have started; a failed one ends the start.
static void service_look_at_start(struct service *s)
{
    unsigned started = 0;
    for (unsigned i = 0; i < s->worker_count; i++) {
        int start = atomic_load(&s->workers[i].start);
        started += start == WORKER_STARTED;
        if (start != WORKER_FAILED) continue;
        service_give_up(s, s->workers[i].error);
        return;
    }
    if (started == s->worker_count) service_serve(s);
}

static bool service_is_over(const struct service *s)
{
    for (unsigned i = 0; i < s->worker_count; i++) {
        if (s->workers[i].has_thread && !atomic_load(&s->workers[i].is_over)) return false;
    }
    return reload_is_idle(&s->reload) || s->reload.state == RELOAD_INSTALLING;
}

void service_on_wake(struct loop *loop)
{
    struct service *s = loop->owner;
    reload_look(&s->reload);
    if (s->phase == SERVICE_STARTING) service_look_at_start(s);
    if (s->phase >= SERVICE_DRAINING && service_is_over(s)) loop_stop(loop);
}

static void service_close_loop(struct service *s)
{
    if (!s->has_loop) return;
    timer_stop(&s->deadline);
    watch_close(&s->watch);
    control_close(&s->control);
    for (int i = 0; i < SERVICE_SIGNALS && s->has_signals; i++)
        uv_close((uv_handle_t *)&s->signals[i], NULL);
    loop_close(&s->loop);
}

void service_close(struct service *s)
{
    unsigned count = s->workers ? s->worker_count : 0;
    if (s->phase == SERVICE_STARTING) // the start has failed before the boss's loop ran
        service_order_all(s, worker_abort);
    for (unsigned i = 0; i < count; i++) worker_join(&s->workers[i]);
    if (!app_reaper_stop()) service_leave(s);
    if (s->reload.made) app_discard(s->reload.made); // parts that no worker has taken
    for (unsigned i = 0; i < count; i++) worker_close(&s->workers[i]);
    sockets_close(&s->sockets);
    service_close_loop(s);
    guard_stop();
    metrics_free(s->server.metrics);
    channel_registry_free(s->server.channels);
    mem_free(s->workers);
}

#include "service.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"
#include "service_stop.h"

static bool service_fail(struct service *s, const char *what)
{
    snprintf(s->error, sizeof(s->error), "%s", what);
    return false;
}

static void service_on_signal(uv_signal_t *handle, int number)
{
    struct service *s = handle->data;
    loop_refresh(&s->loop);
    if (number == SIGHUP)
        reload_begin(&s->reload, NULL);
    else
        service_stop(s);
}

static bool service_catch_signals(struct service *s)
{
    static const int numbers[SERVICE_SIGNALS] = {SIGHUP, SIGTERM, SIGINT};
    bool is_caught = true;
    for (int i = 0; i < SERVICE_SIGNALS; i++) {
        uv_signal_init(&s->loop.uv, &s->signals[i]);
        s->signals[i].data = s;
    }
    s->has_signals = true;
    for (int i = 0; i < SERVICE_SIGNALS; i++) {
        if (uv_signal_start(&s->signals[i], service_on_signal, numbers[i]) != 0) is_caught = false;
    }
    return is_caught || service_fail(s, "signals cannot be caught: no descriptors are left");
}

static bool service_open_workers(struct service *s)
{
    s->worker_count = s->server.worker_count =
        s->config->workers ? s->config->workers : config_processors();
    s->workers = mem_zalloc(s->worker_count * sizeof(*s->workers));
    s->server.metrics = metrics_new(s->worker_count);
    s->server.channels = channel_registry_new(s->config->limits.max_channels);
    if (!s->workers || !s->server.metrics || !s->server.channels)
        return service_fail(s, "not enough memory");
    for (unsigned i = 0; i < s->worker_count; i++) {
        if (!worker_open(&s->workers[i], &s->server, i, &s->loop))
            return service_fail(s, "no loop for a worker: not enough memory or descriptors");
    }
    return true;
}

static void service_on_loaded(struct reload *r, const struct generation *g)
{
    struct service *s = r->owner;
    const struct limits *limits = app_limits(g);
    s->drain = limits->drain;
    channel_registry_limit(s->server.channels, limits->max_channels, limits->max_event);
    atomic_store(&s->acceptor.max_connections,
                 acceptor_limit_connections(limits->max_connections, s->worker_count));
    watch_take_files(&s->watch, g);
}

static bool service_load(struct service *s)
{
    reload_init(&s->reload, &s->server, &s->loop, s->workers, s->worker_count);
    s->reload.on_loaded = service_on_loaded;
    s->reload.owner = s;
    if (s->config->is_watching &&
        !watch_open(&s->watch, &s->loop, &s->reload, s->config->app, s->error, sizeof(s->error)))
        return false;
    return reload_first(&s->reload) || service_fail(s, s->reload.error);
}

static bool service_start_workers(struct service *s)
{
    for (unsigned i = 0; i < s->worker_count; i++) {
        if (!worker_start(&s->workers[i])) return service_fail(s, "no thread for a worker");
    }
    return true;
}

static bool service_open(struct service *s)
{
    s->loop.on_wake = service_on_wake;
    s->loop.owner = s;
    s->has_loop = loop_open(&s->loop, &s->idle_counters);
    if (!s->has_loop) return service_fail(s, "no event loop: not enough memory or descriptors");
    if (!guard_start() || !app_reaper_start())
        return service_fail(s, "threads cannot be started: raise the limit of processes");
    return service_open_workers(s) && service_load(s) &&
           sockets_open(&s->sockets, s->config, app_limits(s->reload.made)->write_timeout, s->error,
                        sizeof(s->error)) &&
           control_open(&s->control, &s->loop, &s->reload, s->config, s->error, sizeof(s->error)) &&
           service_catch_signals(s) && service_start_workers(s);
}

// The first line tells scripts that connections are accepted.
static void service_announce(const struct service *s)
{
    for (unsigned i = 0; i < s->sockets.count; i++) {
        printf("photon: listening on %s (%u worker%s, pid %ld)\n", s->sockets.listeners[i].url,
               s->worker_count, s->worker_count == 1 ? "" : "s", (long)getpid());
    }
    fflush(stdout);
}

void service_serve(struct service *s)
{
    s->phase = SERVICE_SERVING;
    for (unsigned i = 0; i < s->worker_count; i++) worker_order(&s->workers[i], worker_serve, NULL);
    s->acceptor.server = &s->server;
    s->acceptor.workers = s->workers;
    s->acceptor.worker_count = s->worker_count;
    s->acceptor.listeners = s->sockets.listeners;
    s->acceptor.listener_count = s->sockets.count;
    if (acceptor_start(&s->acceptor))
        service_announce(s);
    else
        service_give_up(s, "no thread to accept connections on");
}

int service_run(struct config *config)
{
    struct service *s = mem_zalloc(sizeof(*s));
    if (!s) return 1;
    s->config = s->server.config = config;
    s->server.started = uv_hrtime();
    if (service_open(s))
        loop_run(&s->loop);
    else
        s->has_failed = true;
    if (s->has_failed) fprintf(stderr, "photon: %s\n", s->error);
    int code = s->has_failed;
    service_close(s);
    mem_free(s);
    return code;
}

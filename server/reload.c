#include "reload.h"

#include <stdio.h>
#include "base/log.h"
#include "script/guard_thread.h"

void reload_init(struct reload *r, struct server *server, struct loop *boss, struct worker *workers,
                 unsigned worker_count)
{
    *r = (struct reload){
        .server = server, .boss = boss, .workers = workers, .worker_count = worker_count};
    list_init(&r->asking);
    list_init(&r->next);
    r->load = (struct app_load){.server = server,
                                .path = server->config->app,
                                .count = worker_count,
                                .is_watching = server->config->is_watching};
    for (unsigned i = 0; i < worker_count; i++) {
        r->load.loops[i] = &workers[i].loop;
        r->load.counters[i] = &workers[i].counters;
    }
}

static void reload_tell(struct list *asking, bool is_done, const char *message)
{
    struct list *node;
    while ((node = list_take(asking)) != NULL) {
        struct reload_ask *ask = list_entry(node, struct reload_ask, node);
        ask->on_done(ask, is_done, message);
    }
}

// The app's code runs guarded, so that a loop at its top level ends.
static void reload_load(struct reload *r)
{
    struct guard guard = {0};
    r->load.number++;
    guard_join_thread(&guard);
    r->made = app_load(&r->load, r->error);
    guard_leave_thread(&guard);
    if (!r->made) r->load.number--;
}

static void *reload_run(void *data)
{
    struct reload *r = data;
    pthread_setname_np(pthread_self(), "photon-loader");
    reload_load(r);
    atomic_store(&r->is_loaded, true);
    loop_wake(r->boss);
    return NULL;
}

static void reload_install(struct reload *r)
{
    r->state = RELOAD_INSTALLING;
    r->routes = router_count(app_routes(r->made));
    if (r->on_loaded) r->on_loaded(r, r->made);
    for (unsigned i = 0; i < r->worker_count; i++) {
        worker_order(&r->workers[i], worker_install, app_part(r->made, i));
    }
}

bool reload_first(struct reload *r)
{
    r->began = uv_hrtime();
    if (guard_thread_start(&r->thread, reload_run, r, false))
        pthread_join(r->thread, NULL);
    else
        snprintf(r->error, sizeof(r->error), "no thread can be started to load the app");
    atomic_store(&r->is_loaded, false);
    if (!r->made) return false;
    reload_install(r);
    return true;
}

static void reload_start(struct reload *r)
{
    list_move_all(&r->asking, &r->next);
    r->is_again = false;
    r->began = uv_hrtime();
    atomic_store(&r->is_loaded, false);
    r->state = RELOAD_LOADING;
    if (guard_thread_start(&r->thread, reload_run, r, false)) return;
    r->state = RELOAD_IDLE;
    reload_tell(&r->asking, false, "no thread can be started to load the app");
}

void reload_begin(struct reload *r, struct reload_ask *ask)
{
    if (r->is_ending) {
        if (ask) ask->on_done(ask, false, "the server is stopping");
        return;
    }
    if (ask) list_append(&r->next, &ask->node);
    r->is_again = true;
    if (r->state == RELOAD_IDLE) reload_start(r);
}

static void reload_finish(struct reload *r, bool is_done, const char *message)
{
    struct counters *n = &r->server->own;
    atomic_fetch_add_explicit(is_done ? &n->reloads : &n->reload_failures, 1, memory_order_relaxed);
    if (is_done)
        log_write(LOG_INFO, "%s", message);
    else
        log_write(LOG_ERROR, "reload failed, the old code serves on: %s", message);
    r->state = RELOAD_IDLE;
    reload_tell(&r->asking, is_done, message);
    if (r->is_again && !r->is_ending) reload_start(r);
}

static void reload_take_loaded(struct reload *r)
{
    pthread_join(r->thread, NULL);
    if (!r->made) {
        reload_finish(r, false, r->error);
    } else if (r->is_ending) {
        app_discard(r->made);
        r->made = NULL;
        r->state = RELOAD_IDLE;
    } else {
        reload_install(r);
    }
}

static bool reload_is_everywhere(const struct reload *r)
{
    for (unsigned i = 0; i < r->worker_count; i++) {
        if (atomic_load(&r->workers[i].installed) != r->load.number) return false;
    }
    return true;
}

static void reload_take_installed(struct reload *r)
{
    char message[128];
    app_release(r->made);
    r->made = NULL;
    if (r->load.number == 1) { // the first load is the start, not a reload
        r->state = RELOAD_IDLE;
        if (r->is_again && !r->is_ending) reload_start(r);
        return;
    }
    snprintf(message, sizeof(message), "reloaded generation %u in %.0f ms (%u routes)",
             r->load.number, (double)(uv_hrtime() - r->began) / 1e6, r->routes);
    reload_finish(r, true, message);
}

void reload_look(struct reload *r)
{
    if (r->state == RELOAD_LOADING && atomic_load(&r->is_loaded)) reload_take_loaded(r);
    if (r->state == RELOAD_INSTALLING && reload_is_everywhere(r)) reload_take_installed(r);
}

void reload_end(struct reload *r)
{
    r->is_ending = true;
    reload_tell(&r->next, false, "the server is stopping");
    if (r->state == RELOAD_LOADING) reload_tell(&r->asking, false, "the server is stopping");
}

bool reload_is_idle(const struct reload *r)
{
    return r->state == RELOAD_IDLE;
}

// How generations come and go in a worker: installed, retired, closed when nothing of them runs.
#include "base/log.h"
#include "base/mem.h"
#include "http/http1.h"
#include "script/app_private.h"
#include "script/channel.h"
#include "script/luv.h"
#include "script/offload.h"
#include "script/stream.h"
#include "script/task.h"

enum { APP_CHECK_MS = 20 }; // how often retired parts are looked at

static void app_check(struct timer *timer);

void app_host_init(struct app_host *host, struct server *server, unsigned worker, struct loop *loop,
                   struct counters *counters)
{
    *host = (struct app_host){.handler = {app_serve},
                              .server = server,
                              .worker = worker,
                              .loop = loop,
                              .counters = counters,
                              .limits = server->config->limits};
    host->streams.total = &server->streams;
    list_init(&host->streams.streams);
    list_init(&host->parts);
}

static void app_watch_retired(struct app_host *host)
{
    if (!timer_is_running(&host->check)) {
        timer_start(host->loop, &host->check, APP_CHECK_MS, app_check);
    }
}

// What is bound to the loop is closed here; the state itself is closed by the reaper.
static bool app_close(struct app_part *part)
{
    struct vm *vm = part->vm;
    if (!vm || vm->phase == VM_ABANDONED) return true;
    if (!part->is_closing) {
        part->is_closing = true;
        vm->phase = VM_CLOSING;
        channel_lua_close(vm);
        luv_close_handles(vm);
        offload_close(vm);
    }
    return luv_open_handles(vm) == 0;
}

static bool app_is_quiet(const struct app_part *part)
{
    const struct vm *vm = part->vm;
    if (!part->is_retired || part->busy > 0) return false;
    if (!vm || vm->phase == VM_ABANDONED) return true;
    return vm->task_count == 0 && (part->is_ending || part->is_closing || !luv_is_busy(vm));
}

// Whether a function of the door that C has called (on_stop above all) still runs.
static bool app_is_called(const struct vm *vm)
{
    for (const struct list *n = vm->tasks.next; n != &vm->tasks; n = n->next) {
        if (list_entry(n, struct task, node)->kind == TASK_NAMED) return true;
    }
    return false;
}

// luv's callbacks would start tasks for ever: when on_stop has ended, nothing is waited for.
static void app_end(struct app_part *part)
{
    struct vm *vm = part->vm;
    if (!part->is_ending || part->busy > 0 || part->is_closing) return;
    if (!vm || vm->phase == VM_ABANDONED || app_is_called(vm)) return;
    luv_close_handles(vm);
    task_cancel_all(vm, false);
}

void app_note_memory(struct app_host *host)
{
    size_t bytes = 0;
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) {
        struct app_part *part = list_entry(n, struct app_part, node);
        if (part->vm && part->vm->phase != VM_ABANDONED) bytes += part->vm->memory;
    }
    atomic_store_explicit(&host->server->vm_bytes[host->worker], bytes, memory_order_relaxed);
}

static void app_make_end(struct app_host *host, struct app_part *part)
{
    if (!part->is_retired || !part->vm || part->vm->phase == VM_ABANDONED) return;
    part->is_ending = true;
    stream_lua_end_all(part->vm, &host->streams, true);
    channel_lua_end_all(part->vm);
    task_cancel_all(part->vm, false);
}

// When more generations than max_generations are alive, the oldest must go.
static void app_limit_generations(struct app_host *host)
{
    unsigned alive = 0;
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) alive++;
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) {
        if (alive-- <= host->limits.max_generations) break;
        app_make_end(host, list_entry(n, struct app_part, node));
    }
}

static void app_check(struct timer *timer)
{
    struct app_host *host = list_entry(timer, struct app_host, check);
    bool has_retired = false;
    app_limit_generations(host);
    for (struct list *n = host->parts.next, *next; n != &host->parts; n = next) {
        struct app_part *part = list_entry(n, struct app_part, node);
        next = n->next;
        app_end(part);
        if (app_is_quiet(part) && app_close(part)) {
            list_remove(&part->node);
            app_reap(part);
        } else if (part->is_retired) {
            has_retired = true;
        }
    }
    if (has_retired) app_watch_retired(host);
}

static void app_retire(struct app_part *part)
{
    struct app_host *host = part->host;
    part->is_retired = true;
    app_watch_retired(host);
    if (!part->vm || part->vm->phase == VM_ABANDONED) return;
    // What is kept across reloads has no reader left when the server stops.
    task_cancel_all(part->vm, !atomic_load(&host->server->is_draining));
    stream_lua_end_all(part->vm, &host->streams, false);
    task_call(part->vm, "stop", 0, 0);
}

void app_install(struct app_host *host, struct app_part *part)
{
    struct app_part *old = host->current;
    struct vm *vm = part->vm;
    part->host = host;
    host->current = part;
    host->limits = part->generation->limits;
    if (host->http1) http1_host_set_limits(host->http1, &host->limits);
    list_append(&host->parts, &part->node);
    atomic_store(&host->server->generation, part->generation->number);
    vm->phase = VM_SERVING;
    vm->guard = host->guard;
    vm->streams = &host->streams;
    vm->channels = host->channels;
    if (!part->has_started && !task_call(vm, "start", host->worker == 0, 0) && host->on_started) {
        host->on_started(host, "not enough memory to start");
    }
    if (old) app_retire(old);
    app_note_memory(host);
}

void app_retire_all(struct app_host *host)
{
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) {
        list_entry(n, struct app_part, node)->is_ending = true;
    }
    if (host->current && !host->current->is_retired) app_retire(host->current);
}

void app_abort_all(struct app_host *host)
{
    for (struct list *n = host->parts.next; n != &host->parts; n = n->next) {
        struct app_part *part = list_entry(n, struct app_part, node);
        if (part->vm && part->vm->phase != VM_ABANDONED) task_cancel_all(part->vm, false);
    }
}

bool app_is_empty(const struct app_host *host)
{
    return list_is_empty(&host->parts);
}

// Compiled code knows no line; the route says where to look.
static void app_log_loss(const struct vm *vm, unsigned worker)
{
    const struct task *t = vm->current;
    const struct exchange *x = t && t->slot ? t->slot->x : NULL;
    const struct route *route = x ? x->route : NULL;
    struct buf where = {0};
    if (route) {
        buf_append_format(&where, "%.*s %.*s (%.*s)", (int)route->method.len, route->method.ptr,
                          (int)route->pattern.len, route->pattern.ptr, (int)route->place.len,
                          route->place.ptr);
    }
    log_write(
        LOG_ERROR,
        "%.*s ran over lua_budget and could not be stopped by an error; it has cost worker %u "
        "its Lua VM (%zu bytes): its requests get 503 and a fresh VM takes over",
        where.len ? (int)where.len : 6, where.len ? where.ptr : "a task", worker, vm->memory);
    buf_reset(&where);
}

static bool app_is_starting(const struct vm *vm)
{
    const struct task *t = vm->current;
    return t && t->kind == TASK_NAMED && strcmp(t->name, "start") == 0;
}

// Every request of the lost VM gets its answer; its memory is left alone for ever, for nobody can
// know in what state it is. A fresh VM takes over.
void app_on_abandoned(struct vm *vm)
{
    struct app_part *part = vm->part;
    struct app_host *host = part->host;
    bool was_starting = app_is_starting(vm);
    char error[APP_ERROR];
    counters_add(&vm->counters->vms_abandoned, 1);
    counters_add(&vm->counters->vm_leaked_bytes, (int64_t)vm->memory);
    app_log_loss(vm, host->worker + 1);
    task_abandon_all(vm);
    channel_lua_abandon(vm);
    luv_abandon(vm);
    offload_close(vm);
    for (uint32_t i = 0; i < vm->slot_count; i++) {
        if (vm->slots[i]->x) exchange_error(vm->slots[i]->x, 503, "the handler was stopped", NULL);
    }
    part->owns_vm = false;
    part->is_retired = true;
    app_watch_retired(host);
    if (host->current != part) return;
    struct app_part *fresh = app_reload_part(part, error);
    if (fresh) {
        fresh->has_started = was_starting; // once is enough: it would be lost again
        host->current = NULL;
        app_install(host, fresh);
    } else {
        log_write(LOG_ERROR, "no fresh VM for worker %u: %s", host->worker + 1, error);
        part->vm = NULL;
    }
    if (was_starting && host->on_started) {
        host->on_started(host, "app:on_start ran over lua_budget without waiting");
    }
}

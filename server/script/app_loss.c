// The end of a VM that serves: lost to the guard, or full. A fresh one of the same generation takes
// over.
#include "base/log.h"
#include "script/app_private.h"
#include "script/channel.h"
#include "script/luv.h"
#include "script/offload.h"
#include "script/task.h"

enum { APP_WHERE = 512 };

// What ran last. Compiled code knows no line; the route says where to look.
static void app_describe_slice(const struct vm *vm, char where[APP_WHERE])
{
    const struct route *route = vm->route;
    if (route) {
        snprintf(where, APP_WHERE, "%.*s %.*s (%.*s)", (int)route->method.len, route->method.ptr,
                 (int)route->pattern.len, route->pattern.ptr, (int)route->place.len,
                 route->place.ptr);
    } else {
        snprintf(where, APP_WHERE, "a task");
    }
}

static void app_answer_all(struct vm *vm, const char *detail)
{
    for (uint32_t i = 0; i < vm->slot_count; i++) {
        if (vm->slots[i]->x) exchange_error(vm->slots[i]->x, 503, detail, NULL);
    }
}

static bool app_is_starting(const struct vm *vm)
{
    const struct task *t = vm->current;
    return t && t->kind == TASK_NAMED && strcmp(t->name, "start") == 0;
}

// Every request of the lost VM gets its answer; its memory is left alone for ever, for nobody can
// know in what state it is.
void app_on_abandoned(struct vm *vm)
{
    struct app_part *part = vm->part;
    struct app_host *host = part->host;
    bool was_starting = app_is_starting(vm);
    char error[APP_ERROR], where[APP_WHERE];
    counters_add(&vm->counters->vms_abandoned, 1);
    counters_add(&vm->counters->vm_leaked_bytes, (int64_t)vm->memory);
    app_describe_slice(vm, where);
    log_write(LOG_ERROR,
              "%s ran over lua_budget and could not be stopped by an error; it has cost worker %u "
              "its Lua VM (%zu bytes): its requests get 503 and a fresh VM takes over",
              where, host->worker + 1, vm->memory);
    task_abandon_all(vm);
    channel_lua_abandon(vm);
    luv_abandon(vm);
    offload_close(vm);
    app_answer_all(vm, "the handler was stopped");
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

// A fresh VM that is well below the limit; so each costs its app as much memory, kept anew, as
// pays for the load. NULL with the reason.
static struct app_part *app_load_roomy(struct app_part *full, char error[APP_ERROR])
{
    struct app_part *fresh = app_reload_part(full, error);
    size_t limit = (size_t)full->vm->limits->lua_memory;
    if (!fresh || fresh->vm->memory <= limit - limit / 4) return fresh;
    snprintf(error, APP_ERROR, "the app's files alone take %zu bytes", fresh->vm->memory);
    app_part_free(fresh);
    return NULL;
}

// The state of a full VM is known, so it is closed and its memory comes back; but Lua is not run
// for that, which would find no memory.
static void app_close_full(struct app_part *part)
{
    struct vm *vm = part->vm;
    task_abandon_all(vm);
    channel_lua_abandon(vm);
    vm->phase = VM_CLOSING;
    luv_close_handles(vm, UINT_MAX);
    offload_close(vm);
    app_answer_all(vm, "the app has filled its memory; try again");
    part->is_closing = part->is_retired = true;
    app_watch_retired(part->host);
}

// What fills up while it starts would do so again. A VM that cannot be replaced goes on as it is:
// its requests get their errors, and nothing is tried again until the next reload.
void app_on_full(struct vm *vm)
{
    struct app_part *part = vm->part;
    struct app_host *host = part->host;
    char error[APP_ERROR], where[APP_WHERE];
    if (host->current != part || part->is_retired || !part->has_started || part->has_failed) return;
    app_describe_slice(vm, where);
    log_write(LOG_ERROR,
              "%s has met lua_memory, and with all garbage collected what the app keeps in worker "
              "%u still takes %zu of %llu bytes: keep less (in tables that outlive a request), or "
              "raise lua_memory",
              where, host->worker + 1, vm->memory, (unsigned long long)vm->limits->lua_memory);
    struct app_part *fresh = app_load_roomy(part, error);
    if (!fresh) {
        vm->on_full = NULL;
        log_write(LOG_ERROR, "no fresh VM for worker %u: %s", host->worker + 1, error);
        return;
    }
    log_write(LOG_ERROR, "a fresh Lua VM takes over in worker %u; requests of the full one get 503",
              host->worker + 1);
    counters_add(&vm->counters->vms_full, 1);
    app_close_full(part);
    host->current = NULL;
    app_install(host, fresh);
}

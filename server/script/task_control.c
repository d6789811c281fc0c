// How tasks wait, are woken, cancelled and given up. Nothing here runs Lua.
#include "base/log.h"
#include "base/mem.h"
#include "script/task_private.h"
#include "serve/router.h"

void task_report_slow(struct task *t, uint64_t ms)
{
    struct vm *vm = t->vm;
    const struct route *route = t->x ? t->x->route : NULL;
    counters_add(&vm->counters->lua_slow, 1);
    if (route) {
        log_write(LOG_WARN, "%.*s %.*s (%.*s) ran %llu ms without waiting (lua_slow is %u ms)",
                  (int)route->method.len, route->method.ptr, (int)route->pattern.len,
                  route->pattern.ptr, (int)route->place.len, route->place.ptr,
                  (unsigned long long)ms, vm->limits->lua_slow);
    } else {
        log_write(LOG_WARN, "a task ran %llu ms without waiting (lua_slow is %u ms)",
                  (unsigned long long)ms, vm->limits->lua_slow);
    }
}

void task_park(struct task *t, void *data, void (*on_cancel)(struct task *t))
{
    t->state = TASK_PARKED;
    t->wait_data = data;
    t->on_cancel = on_cancel;
}

void task_wake(struct task *t)
{
    if (t->state != TASK_PARKED) return;
    t->on_cancel = NULL;
    t->wait_data = NULL;
    task_make_ready(t);
}

void task_cancel(struct task *t)
{
    struct list *child;
    if (t->state == TASK_IDLE || t->is_cancelled) return;
    t->is_cancelled = true;
    if (t->state == TASK_PARKED) {
        void (*undo)(struct task *) = t->on_cancel;
        if (undo) undo(t);
        task_wake(t);
    }
    while ((child = list_take(&t->children)) != NULL) {
        task_cancel(list_entry(child, struct task, sibling));
    }
}

void task_cancel_spawned(struct task *t)
{
    struct vm_slot *slot = t ? t->slot : NULL;
    if (!slot || slot->server != t) return;
    for (struct list *n = slot->tasks.next; n != &slot->tasks; n = n->next) {
        struct task *other = list_entry(n, struct task, scoped);
        if (other != t) task_cancel(other);
    }
}

// What C has called ends by itself (presence, on_close), but app:on_start may wait for ever, and
// what it starts would run on beside the new code.
static bool task_is_spared(const struct task *t, enum task_spared spared)
{
    bool is_start = t->kind == TASK_NAMED && strcmp(t->name, "start") == 0;
    bool is_called = t->kind != TASK_CALL && !is_start;
    bool is_scoped = t->is_kept || (t->slot && t->slot->x) || is_called;
    return spared == TASK_SPARE_SCOPED ? is_scoped : spared == TASK_SPARE_CLOSERS && t->is_closer;
}

void task_cancel_all(struct vm *vm, enum task_spared spared)
{
    // Cancelling frees nothing at once, so the list holds still.
    for (struct list *n = vm->tasks.next; n != &vm->tasks; n = n->next) {
        struct task *t = list_entry(n, struct task, node);
        if (!task_is_spared(t, spared)) task_cancel(t);
    }
}

static void task_run_closers(struct vm_slot *slot)
{
    struct task *t = task_call(slot->vm, "closed", vm_slot_handle(slot), 0);
    if (t) t->is_closer = true;
}

void task_scope_over(struct vm_slot *slot, bool is_done)
{
    struct list scoped, *node;
    if (slot->has_closers) task_run_closers(slot);
    list_init(&scoped);
    list_move_all(&scoped, &slot->tasks);
    while ((node = list_take(&scoped)) != NULL) {
        struct task *t = list_entry(node, struct task, scoped);
        t->slot = NULL;
        t->x = NULL;
        if (!is_done && !t->is_detached) task_cancel(t);
    }
}

void task_abandon_all(struct vm *vm)
{
    for (struct list *n = vm->tasks.next; n != &vm->tasks; n = n->next) {
        struct task *t = list_entry(n, struct task, node);
        if (t->state == TASK_PARKED && t->on_cancel) t->on_cancel(t);
        t->state = TASK_IDLE;
        timer_stop(&t->timer);
        list_remove(&t->ready);
    }
    counters_add(&vm->counters->tasks, -(int64_t)vm->task_count);
    vm->task_count = 0;
    list_init(&vm->after);
    loop_forget(&vm->turn);
    vm->current = NULL;
}

void task_free_vm(struct vm *vm)
{
    struct list ended, *node;
    if (!vm) return;
    vm->phase = VM_CLOSING;
    list_init(&ended);
    list_move_all(&ended, &vm->tasks);
    list_move_all(&ended, &vm->idle);
    for (node = ended.next; node != &ended; node = node->next) {
        struct task *t = list_entry(node, struct task, node);
        timer_stop(&t->timer);
        task_tell_end(t);
        t->serial++;
    }
    if (vm->loop) loop_forget(&vm->turn);
    vm_free(vm);
    while ((node = list_take(&ended)) != NULL) mem_free(list_entry(node, struct task, node));
}

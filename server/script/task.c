#include "script/task.h"

#include <assert.h>
#include <time.h>
#include "base/log.h"
#include "base/mem.h"
#include "script/guard.h"
#include "script/guard_thread.h"
#include "script/task_private.h"
#include "serve/router.h"

void task_make_ready(struct task *t)
{
    if (vm_is_over(t->vm)) return;
    t->state = TASK_READY;
    list_append(&t->vm->ready, &t->ready);
    if (t->vm->loop) loop_next_turn(t->vm->loop, &t->vm->turn);
}

void task_flush(struct vm *vm)
{
    struct list *node;
    while ((node = list_take(&vm->after)) != NULL) {
        struct vm_after *after = list_entry(node, struct vm_after, node);
        after->on_slice_end(after);
    }
}

// A lost task begins anew to clean up. That may fail too (in a hostile build as likely as
// anything), and those who wait for its end would wait for ever: it is tried again, so many times.
enum { TASK_DEATHS = 8 };

// The coroutine is lost: it ended by an error outside of the door's protection (a stack overflow in
// the message handler, no memory, the guard). What it owed is made good: the reply, the joiners.
static void task_die(struct task *t, const char *why)
{
    struct vm *vm = t->vm;
    bool is_stopped = guard_is_stopped(vm->guard);
    struct exchange *x = t->x;
    counters_add(&vm->counters->lua_errors, 1);
    lua_sethook(vm->L, NULL, 0, 0); // an app's hook that raises would end every other task too
    if (x) {
        struct slice place = x->route ? x->route->place : SLICE("?");
        log_write(LOG_ERROR, "%.*s %.*s (route at %.*s): %s", (int)x->request.method_name.len,
                  x->request.method_name.ptr, (int)x->request.target.len, x->request.target.ptr,
                  (int)place.len, place.ptr, why);
    } else {
        log_write(LOG_ERROR, "a task ended: %s", why);
    }
    luaL_unref(vm->L, LUA_REGISTRYINDEX, t->co_ref);
    t->co = NULL;
    t->co_ref = LUA_NOREF;
    if (x) exchange_error(x, is_stopped ? 503 : 500, NULL, NULL);
    bool needs_cleaning = t->has_defers || t->object_ref != LUA_NOREF;
    if (t->deaths++ == TASK_DEATHS || !needs_cleaning || !task_give_coroutine(t)) {
        if (!vm_is_over(vm)) task_release(t);
        return;
    }
    vm->idle_count--; // it does not stand in the idle list
    t->kind = TASK_DIED;
    t->wait_data = t; // it begins anew
    task_make_ready(t);
}

uint64_t task_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// What a coroutine is resumed with: the task itself at the beginning; after a wait true, or nil and
// "closed" when it was cancelled. Nothing here allocates, so nothing can raise.
static int task_push_signal(struct task *t, bool is_beginning)
{
    if (is_beginning) {
        lua_pushlightuserdata(t->co, t);
        return 1;
    }
    if (!t->is_cancelled) {
        lua_pushboolean(t->co, true);
        return 1;
    }
    lua_pushnil(t->co);
    lua_rawgeti(t->co, LUA_REGISTRYINDEX, t->vm->refs[VM_REF_CLOSED]);
    return 2;
}

static void task_abandon(struct vm *vm)
{
    vm_abandon(vm);
    if (vm->on_abandoned) vm->on_abandoned(vm);
}

// A full collection, under guard: false when a finalizer has raised, or has cost the VM.
static bool task_collect_all(struct vm *vm)
{
    lua_rawgeti(vm->L, LUA_REGISTRYINDEX, vm->refs[VM_REF_COLLECT]);
    int status = guard_pcall(vm->guard, vm->L, 0, 0, 0, vm->limits->lua_budget);
    if (status == GUARD_ABANDONED) {
        task_abandon(vm);
        return false;
    }
    lua_settop(vm->L, 0);
    return status == 0;
}

// What a hostile build does at each crossing: what is not anchored dies now, not some day. A big
// heap (that of specs holds all of busted) is spared most of it, or the suite would take an hour.
static void task_collect(struct vm *vm)
{
#ifdef PHOTON_HOSTILE
    enum { BIG = 2 * 1024 * 1024, SPARED = 64 };
    static _Thread_local unsigned crossings;
    if (vm->memory > BIG && ++crossings % SPARED) return;
    task_collect_all(vm);
#else
    (void)vm;
#endif
}

// What waiting tasks hold they may let go of soon: that gets some more rounds.
static bool task_is_vm_full(struct vm *vm)
{
    enum { PATIENCE = 4 };
    vm->full_rounds = vm_memory_is_short(vm) ? vm->full_rounds + 1 : 0;
    return vm->full_rounds >= (vm->task_count > 0 ? PATIENCE : 1);
}

// After a slice for which there was not enough memory, so that the next finds some. A finalizer
// that raises ends the collection; it is gone then, and the rest is collected by the next try. At
// most half of the time is spent so, for many slices in a row may find no memory.
void task_collect_garbage(struct vm *vm)
{
    enum { TRIES = 16 };
    uint64_t began = uv_hrtime(), end;
    vm->is_full = began < vm->collects_at;
    if (vm->is_full) return;
    for (int i = 0; i < TRIES && !task_collect_all(vm); i++) {
        if (vm_is_over(vm)) return;
    }
    vm_memory_settle(vm);
    guard_thread_trim();
    end = uv_hrtime();
    vm->collects_at = end + (end - began);
    if (task_is_vm_full(vm) && vm->on_full) vm->on_full(vm);
}

// One slice.
static void task_run(struct task *t, bool is_beginning)
{
    struct vm *vm = t->vm;
    uint64_t ms;
    int status;
    assert(vm->current == NULL);
    task_collect(vm);
    if (vm->is_full && !vm_is_over(vm)) task_collect_garbage(vm);
    if (vm_is_over(vm)) return;
    vm->current = t;
    vm->route = t->slot && t->slot->x ? t->slot->x->route : NULL;
    vm->closed_calls = 0;
    vm->overflow[0] = '\0';
    vm->slice_began = task_clock();
    t->state = TASK_RUNNING;
    counters_add(&vm->counters->lua_entries, 1);
    status =
        guard_resume(vm->guard, t->co, task_push_signal(t, is_beginning), vm->limits->lua_budget);
    if (status == GUARD_ABANDONED) {
        task_abandon(vm);
        return;
    }
    vm->current = NULL;
    ms = task_clock() - vm->slice_began;
    if (ms > vm->limits->lua_slow) task_report_slow(t, ms);
    if (guard_is_stopped(vm->guard)) counters_add(&vm->counters->lua_stopped, 1);
    if (status == LUA_YIELD && t->state != TASK_RUNNING) {
        lua_settop(t->co, 0);
        if (t->state == TASK_IDLE) task_release(t);
    } else if (status == LUA_YIELD) {
        task_die(t, "coroutine.yield was called outside of a coroutine");
    } else {
        bool is_text = lua_type(t->co, -1) == LUA_TSTRING;
        task_die(t, is_text ? lua_tostring(t->co, -1) : "its coroutine ended by an error");
    }
    if (vm_is_over(vm)) return;
    task_flush(vm);
    if (vm_memory_settle(vm)) task_collect_garbage(vm);
}

// However many are ready (a reload may cancel thousands), the loop serves its clients in between: a
// round ends at the coarse clock's next tick, after some milliseconds at most.
static void task_on_turn(struct loop_turn *turn)
{
    struct vm *vm = list_entry(turn, struct vm, turn);
    struct list round, *node;
    uint64_t began = task_clock();
    list_init(&round);
    list_move_all(&round, &vm->ready);
    while ((node = list_take(&round)) != NULL) {
        struct task *t = list_entry(node, struct task, ready);
        bool is_beginning = t->wait_data == t;
        t->wait_data = NULL;
        task_run(t, is_beginning);
        if (vm_is_over(vm)) return;
        if (task_clock() != began) break;
    }
    if (list_is_empty(&round)) return;
    list_move_all(&round, &vm->ready);
    list_move_all(&vm->ready, &round);
    loop_next_turn(vm->loop, turn);
}

// A task that has not run yet is marked by wait_data pointing to itself.
static void task_start_later(struct task *t)
{
    t->wait_data = t;
    task_make_ready(t);
}

void task_serve(struct vm *vm, struct exchange *x, uint32_t handler, int status, struct slice allow)
{
    struct task *t = task_take(vm, TASK_REQUEST);
    struct vm_slot *slot = t ? vm_slot_open(vm, x) : NULL;
    if (!slot) {
        if (t) task_release(t);
        exchange_error(x, 503, "the server has too much to do; try again", NULL);
        return;
    }
    t->slot = slot;
    t->x = x;
    t->handler = handler;
    t->status = status;
    t->allow = allow;
    slot->server = t;
    list_append(&slot->tasks, &t->scoped);
    task_run(t, true);
}

struct task *task_call(struct vm *vm, const char *name, double a, double b)
{
    struct task *t;
    if (vm_is_over(vm) || !(t = task_take(vm, TASK_NAMED))) return NULL;
    t->name = name;
    t->a = a;
    t->b = b;
    task_start_later(t);
    return t;
}

// The task object is the first argument. May raise; NULL when there are too many tasks.
struct task *task_spawn(lua_State *L, struct vm *vm, bool is_detached)
{
    struct task *parent = vm->current, *t;
    t = task_find(vm);
    if (!t) return NULL;
    if (!t->co) task_make_coroutine(L, t);
    lua_pushvalue(L, 1);
    int ref = luaL_ref(L, LUA_REGISTRYINDEX);
    task_begin(t, TASK_CALL);
    t->object_ref = ref;
    t->is_detached = is_detached || (parent && parent->is_detached);
    if (parent && !is_detached) {
        t->parent = parent;
        t->is_cancelled = parent->is_cancelled; // or a pcall would outlive it so
        list_append(&parent->children, &t->sibling);
        t->slot = parent->slot;
        if (t->slot && t->slot->x) list_append(&t->slot->tasks, &t->scoped);
    }
    task_start_later(t);
    return t;
}

void task_load_door(lua_State *L, struct vm *vm)
{
    vm->turn.on_turn = task_on_turn;
    lua_getglobal(L, "require");
    lua_pushliteral(L, "photon.door");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "body");
    vm->refs[VM_REF_DOOR] = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_getfield(L, -1, "collect");
    vm->refs[VM_REF_COLLECT] = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
}

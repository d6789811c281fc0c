// Where tasks come from and go to: structs are kept for ever, coroutines up to a number.
#include <assert.h>
#include "base/log.h"
#include "base/mem.h"
#include "script/task_private.h"

enum { TASK_IDLE_MAX = 1024 }; // coroutines kept for reuse

bool task_protect(struct vm *vm, lua_CFunction fn, void *data)
{
    assert(vm->current == NULL);
    counters_add(&vm->counters->lua_entries, 1);
    if (lua_cpcall(vm->L, fn, data) == 0) return true;
    const char *why = lua_type(vm->L, -1) == LUA_TSTRING ? lua_tostring(vm->L, -1) : "an error";
    log_write(LOG_ERROR, "%s", why);
    counters_add(&vm->counters->lua_errors, 1);
    lua_settop(vm->L, 0);
    return false;
}

// May raise; the task stands in the idle list meanwhile, so nothing is lost.
void task_make_coroutine(lua_State *L, struct task *t)
{
    t->co = NULL;
    t->co_ref = LUA_NOREF;
    lua_State *co = lua_newthread(L);
    int ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_rawgeti(co, LUA_REGISTRYINDEX, t->vm->refs[VM_REF_DOOR]);
    t->co = co;
    t->co_ref = ref;
    t->vm->idle_count++;
}

static int task_make_coroutine_protected(lua_State *L)
{
    task_make_coroutine(L, lua_touserdata(L, 1));
    return 0;
}

// What is in the way may go: garbage, or a finalizer that runs there by chance and raises, once.
bool task_give_coroutine(struct task *t)
{
    enum { TRIES = 32 };
    struct vm *vm = t->vm;
    if (task_protect(vm, task_make_coroutine_protected, t)) return true;
    task_collect_garbage(vm);
    for (int i = 0; i < TRIES && !vm_is_over(vm); i++) {
        if (lua_cpcall(vm->L, task_make_coroutine_protected, t) == 0) return true;
        lua_settop(vm->L, 0);
    }
    return false;
}

// An idle task, with or without a coroutine; NULL when there are too many or no memory.
struct task *task_find(struct vm *vm)
{
    struct task *t;
    if (vm->task_count >= vm->limits->max_tasks) {
        counters_add(&vm->counters->tasks_refused, 1);
        return NULL;
    }
    if (!list_is_empty(&vm->idle)) return list_entry(vm->idle.prev, struct task, node);
    t = mem_zalloc(sizeof *t);
    if (!t) return NULL;
    t->vm = vm;
    t->co_ref = t->object_ref = LUA_NOREF;
    list_append(&vm->idle, &t->node);
    return t;
}

void task_begin(struct task *t, enum task_kind kind)
{
    struct vm *vm = t->vm;
    list_remove(&t->node);
    list_append(&vm->tasks, &t->node);
    vm->idle_count--;
    vm->task_count++;
    counters_add(&vm->counters->tasks, 1);
    list_init(&t->children);
    t->kind = (uint8_t)kind;
    t->deaths = 0;
    t->is_cancelled = t->is_detached = t->has_defers = t->is_kept = t->is_closer = false;
    t->slot = NULL;
    t->x = NULL;
    t->parent = NULL;
    t->on_end = NULL;
    t->state = TASK_READY;
}

// From C, outside of Lua.
struct task *task_take(struct vm *vm, enum task_kind kind)
{
    struct task *t = task_find(vm);
    if (!t) return NULL;
    if (!t->co && !task_give_coroutine(t)) return NULL;
    task_begin(t, kind);
    return t;
}

void task_tell_end(struct task *t)
{
    void (*tell)(struct task * t) = t->on_end;
    t->on_end = NULL;
    if (tell) tell(t);
}

void task_release(struct task *t)
{
    struct vm *vm = t->vm;
    struct list *child;
    task_tell_end(t);
    while ((child = list_take(&t->children)) != NULL) {
        list_entry(child, struct task, sibling)->parent = NULL; // orphans live on
    }
    timer_stop(&t->timer);
    list_remove(&t->ready);
    list_remove(&t->scoped);
    list_remove(&t->sibling);
    list_remove(&t->node);
    if (t->slot && t->slot->server == t) t->slot->server = NULL;
    t->slot = NULL;
    t->x = NULL;
    t->serial++;
    t->state = TASK_IDLE;
    luaL_unref(vm->L, LUA_REGISTRYINDEX, t->object_ref); // cannot raise: it only links free refs
    t->object_ref = LUA_NOREF;
    if (vm->idle_count >= TASK_IDLE_MAX && t->co) {
        luaL_unref(vm->L, LUA_REGISTRYINDEX, t->co_ref);
        t->co = NULL;
    }
    if (t->co) vm->idle_count++;
    // The end is taken first: those with a coroutine stand there.
    list_append(t->co ? &vm->idle : vm->idle.next, &t->node);
    vm->task_count--;
    counters_add(&vm->counters->tasks, -1);
}

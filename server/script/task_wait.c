// The functions of photon.core that Lua's side of tasks is made of.
#include <math.h>
#include <string.h>
#include "script/guard.h"
#include "script/request.h"
#include "script/task_private.h"

// The C function between the coroutine's base and here that a yield cannot pass, for the message.
static const char *task_blocking_call(lua_State *L)
{
    lua_Debug frame;
    for (int level = 1; lua_getstack(L, level, &frame); level++) {
        if (!lua_getinfo(L, "Sn", &frame)) break;
        if (frame.what[0] == 'C' && frame.name && strstr("xpcall", frame.name) == NULL) {
            return frame.name;
        }
    }
    return "a C function";
}

// Where the app's own code asks for the wait: the first frame that is not of the file which called
// us, one of photon's library.
static void task_push_place(lua_State *L)
{
    lua_Debug here, frame;
    if (!lua_getstack(L, 1, &here) || !lua_getinfo(L, "S", &here)) here.source = "";
    for (int level = 2; lua_getstack(L, level, &frame); level++) {
        if (!lua_getinfo(L, "Sl", &frame) || frame.currentline <= 0) continue;
        if (strcmp(frame.source, here.source) == 0) continue;
        lua_pushfstring(L, "%s:%d: ", frame.short_src, frame.currentline);
        return;
    }
    luaL_where(L, 1);
}

static void task_refuse_wait(lua_State *L, const char *format, const char *what, const char *call)
{
    task_push_place(L);
    lua_pushfstring(L, format, what, call);
    lua_concat(L, 2);
    lua_error(L);
}

int task_refuse(lua_State *L, const char *what, const char *why)
{
    task_refuse_wait(L, "%s %s", what, why);
    return 0;
}

void task_check_loop(lua_State *L, const struct vm *vm, const char *what)
{
    bool is_beside = !vm->loop && vm->phase == VM_SERVING;
    if (is_beside) task_refuse(L, what, "needs the server's loop: photon.offload runs beside it");
    if (vm_is_over(vm)) task_refuse(L, what, "cannot begin: the app has ended");
}

struct task *task_check_quiet_wait(lua_State *L, struct vm *vm, const char *what)
{
    struct task *t = vm->current;
    if (vm->phase == VM_LOADING) {
        task_refuse_wait(L, "%s cannot wait while the app loads: do it in app:on_start", what, "");
    }
    if (!t) task_refuse_wait(L, "%s can only wait inside a task", what, "");
    if (!lua_isyieldable(L)) {
        task_refuse_wait(L,
                         "%s cannot wait inside '%s': a C function that calls back cannot be "
                         "suspended",
                         what, task_blocking_call(L));
    }
    return t->is_cancelled ? NULL : t;
}

struct task *task_check_wait(lua_State *L, struct vm *vm, const char *what)
{
    struct task *t = task_check_quiet_wait(L, vm, what);
    if (t) return t;
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_CANCELLED]);
    lua_error(L);
    return NULL;
}

// begin(task) → kind, … : what the door is to do
static int task_lua_begin(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct task *t = lua_touserdata(L, 1);
    lua_pushinteger(L, t->kind);
    if (t->kind == TASK_REQUEST) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_HANDLERS]);
        lua_rawgeti(L, -1, (int)t->handler);
        lua_remove(L, -2);
        request_push(L, vm, t->x, vm_slot_handle(t->slot));
        if (!t->status) return 3;
        lua_pushinteger(L, t->status);
        lua_pushlstring(L, t->allow.ptr, t->allow.len);
        return 5;
    }
    if (t->kind == TASK_NAMED) {
        lua_pushstring(L, t->name);
        lua_pushnumber(L, t->a);
        lua_pushnumber(L, t->b);
        return 4;
    }
    if (t->object_ref != LUA_NOREF)
        lua_rawgeti(L, LUA_REGISTRYINDEX, t->object_ref);
    else
        lua_pushnil(L);
    lua_pushboolean(L, t->is_cancelled);
    return 3;
}

// finish(): the running task has done its work; the door yields next
static int task_lua_finish(lua_State *L)
{
    vm_of(L)->current->state = TASK_IDLE;
    return 0;
}

// current() → task, serial; nil outside of a task
static int task_lua_current(lua_State *L)
{
    struct task *t = vm_of(L)->current;
    if (!t) return 0;
    lua_pushlightuserdata(L, t);
    lua_pushnumber(L, t->serial);
    return 2;
}

// spawn(object, detached) → task, serial; or nil when there are too many
static int task_lua_spawn(lua_State *L)
{
    struct task *t;
    task_check_loop(L, vm_of(L), "a task");
    t = task_spawn(L, vm_of(L), lua_toboolean(L, 2));
    if (!t) return 0;
    lua_pushlightuserdata(L, t);
    lua_pushnumber(L, t->serial);
    return 2;
}

// The task of (task, serial) at `index`, NULL when it has ended. Task structs live as long as the
// VM.
static struct task *task_arg(lua_State *L, int index)
{
    struct task *t = lua_islightuserdata(L, index) ? lua_touserdata(L, index) : NULL;
    return t && t->serial == lua_tonumber(L, index + 1) ? t : NULL;
}

static int task_lua_cancel(lua_State *L)
{
    struct task *t = task_arg(L, 1);
    if (t) task_cancel(t);
    return 0;
}

// park(what): the running task waits for wake(task, serial)
static int task_lua_park(lua_State *L)
{
    struct task *t = task_check_wait(L, vm_of(L), luaL_checkstring(L, 1));
    task_park(t, NULL, NULL);
    return 0;
}

static int task_lua_wake(lua_State *L)
{
    struct task *t = task_arg(L, 1);
    if (t) task_wake(t);
    return 0;
}

// unpark(): takes a wait back that turned out to be impossible (it cannot be passed up through a C
// function between two coroutines)
static int task_lua_unpark(lua_State *L)
{
    struct task *t = vm_of(L)->current;
    if (t && t->state == TASK_PARKED) {
        if (t->on_cancel) t->on_cancel(t);
        t->on_cancel = NULL;
        t->wait_data = NULL;
        t->state = TASK_RUNNING;
    } else if (t && t->state == TASK_READY) { // it has been woken already
        list_remove(&t->ready);
        t->state = TASK_RUNNING;
    }
    return 0;
}

static void task_on_time(struct timer *timer)
{
    task_wake(list_entry(timer, struct task, timer));
}

static void task_stop_timer(struct task *t)
{
    timer_stop(&t->timer);
}

// sleep(seconds): parks. Without a time to wait, the others have their turn.
static int task_lua_sleep(lua_State *L)
{
    struct vm *vm = vm_of(L);
    double seconds = lua_tonumber(L, 1);
    if (lua_type(L, 1) != LUA_TNUMBER || isnan(seconds)) {
        return luaL_error(L, "photon.sleep takes a number of seconds, not %s", luaL_typename(L, 1));
    }
    task_flush(vm); // a paced event is on its way before its producer's wait is arranged
    struct task *t = task_check_wait(L, vm, "photon.sleep");
    double ms = ceil(seconds * 1000);
    if (ms > 1e13) ms = 1e13;
    task_park(t, NULL, ms > 0 ? task_stop_timer : NULL);
    if (ms <= 0)
        task_wake(t);
    else
        timer_start(vm->loop, &t->timer, (uint64_t)ms, task_on_time);
    return 0;
}

// has_defers(): something is to be cleaned up even when the coroutine is lost
static int task_lua_has_defers(lua_State *L)
{
    struct task *t = vm_of(L)->current;
    if (!t) return luaL_error(L, "photon.defer needs a task: it runs when that ends");
    t->has_defers = true;
    lua_pushlightuserdata(L, t);
    return 1;
}

// has_closers(handle) → true when the exchange is still there and will call the door's "closed"
static int task_lua_has_closers(lua_State *L)
{
    struct vm_slot *slot = vm_slot_arg(L, vm_of(L), 1);
    if (slot) slot->has_closers = true;
    lua_pushboolean(L, slot != NULL);
    return 1;
}

// was_stopped() → whether the guard has stopped this slice
static int task_lua_was_stopped(lua_State *L)
{
    lua_pushboolean(L, guard_is_stopped(vm_of(L)->guard));
    return 1;
}

// time() → seconds of the loop's monotonic clock, unix time in seconds (frozen in tests)
static int task_lua_time(lua_State *L)
{
    struct loop *loop = vm_of(L)->loop;
    if (!loop) return 0;
    lua_pushnumber(L, (double)loop->now / 1000);
    lua_pushnumber(L, (double)loop_unix_ms(loop) / 1000);
    return 2;
}

// set_ref(name, value): tells C a value that Lua has made
static int task_lua_set_ref(lua_State *L)
{
    static const char *const names[] = {"cancelled", "wait", "closed", "origins", NULL};
    static const enum vm_ref refs[] = {VM_REF_CANCELLED, VM_REF_WAIT, VM_REF_CLOSED,
                                       VM_REF_ORIGINS};
    int which = luaL_checkoption(L, 1, NULL, names);
    lua_settop(L, 2);
    vm_of(L)->refs[refs[which]] = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

void task_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {
        {"begin", task_lua_begin},
        {"finish", task_lua_finish},
        {"current", task_lua_current},
        {"spawn", task_lua_spawn},
        {"cancel", task_lua_cancel},
        {"park", task_lua_park},
        {"unpark", task_lua_unpark},
        {"wake", task_lua_wake},
        {"sleep", task_lua_sleep},
        {"has_defers", task_lua_has_defers},
        {"has_closers", task_lua_has_closers},
        {"was_stopped", task_lua_was_stopped},
        {"time", task_lua_time},
        {"set_ref", task_lua_set_ref},
        {NULL, NULL},
    };
    vm_register(L, vm, functions);
}

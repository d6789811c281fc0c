// What runs in the VM of the specs, so that a spec's end can be made the end of all that it began.
#include "script/luv.h"
#include "script/testing_private.h"
#include "serve/shared.h"

// test_tasks() → { [task] = serial } of all that live
static int testing_lua_tasks(lua_State *L)
{
    struct vm *vm = testing_of(L)->vm;
    lua_createtable(L, 0, (int)vm->task_count);
    for (struct list *n = vm->tasks.next; n != &vm->tasks; n = n->next) {
        struct task *task = list_entry(n, struct task, node);
        lua_pushlightuserdata(L, task);
        lua_pushnumber(L, task->serial);
        lua_rawset(L, -3);
    }
    return 1;
}

static bool testing_is_known(lua_State *L, struct task *task)
{
    lua_pushlightuserdata(L, task);
    lua_rawget(L, 1);
    bool is_known = lua_type(L, -1) == LUA_TNUMBER && lua_tonumber(L, -1) == task->serial;
    lua_pop(L, 1);
    return is_known;
}

// test_cancel_others(tasks) → how many tasks live that are not among them; they are cancelled
static int testing_lua_cancel_others(lua_State *L)
{
    struct vm *vm = testing_of(L)->vm;
    unsigned count = 0;
    luaL_checktype(L, 1, LUA_TTABLE);
    for (struct list *n = vm->tasks.next; n != &vm->tasks; n = n->next) {
        struct task *task = list_entry(n, struct task, node);
        if (task == vm->current || testing_is_known(L, task)) continue;
        count++;
        task_cancel(task);
    }
    lua_pushnumber(L, count);
    return 1;
}

// test_counts() → { tasks, streams, subscribers, exchanges, handles, apps } that live now
static int testing_lua_counts(lua_State *L)
{
    struct testing *t = testing_of(L);
    unsigned exchanges = 0, apps = 0;
    for (struct list *n = t->apps.next; n != &t->apps; n = n->next, apps++) {
        struct testing_app *app = list_entry(n, struct testing_app, node);
        exchanges += app->part->busy;
    }
    lua_createtable(L, 0, 6);
    lua_pushnumber(L, t->vm->task_count);
    lua_setfield(L, -2, "tasks");
    lua_pushnumber(L, t->streams.count);
    lua_setfield(L, -2, "streams");
    lua_pushnumber(L, t->channels.count);
    lua_setfield(L, -2, "subscribers");
    lua_pushnumber(L, exchanges);
    lua_setfield(L, -2, "exchanges");
    lua_pushnumber(L, luv_open_handles(t->vm));
    lua_setfield(L, -2, "handles");
    lua_pushnumber(L, apps);
    lua_setfield(L, -2, "apps");
    return 1;
}

// test_loading(is): while an app's files run, nothing may wait
static int testing_lua_loading(lua_State *L)
{
    testing_of(L)->vm->phase = lua_toboolean(L, 1) ? VM_LOADING : VM_SERVING;
    return 0;
}

// test_forget(): what apps have left in the process: dictionaries of photon.shared
static int testing_lua_forget(lua_State *L)
{
    (void)L;
    shared_clear();
    return 0;
}

void testing_state_open(lua_State *L, struct testing *t)
{
    static const luaL_Reg functions[] = {
        {"test_tasks", testing_lua_tasks},   {"test_cancel_others", testing_lua_cancel_others},
        {"test_counts", testing_lua_counts}, {"test_loading", testing_lua_loading},
        {"test_forget", testing_lua_forget}, {NULL, NULL}};
    testing_register(L, t, functions);
}

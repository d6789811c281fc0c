#include "script/testing_private.h"

#include "base/log.h"
#include "script/app_private.h"
#include "script/core.h"
#include "script/luv.h"
#include "script/offload.h"

enum {
    TESTING_TURN_MS = 10, // at the end: how long one turn may wait
    TESTING_TURNS = 200,  // and how many there are for what is still open
};

void testing_register(lua_State *L, struct testing *t, const luaL_Reg *functions)
{
    for (; functions->name; functions++) {
        lua_pushlightuserdata(L, t);
        lua_pushcclosure(L, functions->func, 1);
        lua_setfield(L, -2, functions->name);
    }
}

// test_exit(code): the run is over
static int testing_lua_exit(lua_State *L)
{
    struct testing *t = testing_of(L);
    t->code = (int)lua_tointeger(L, 1);
    loop_stop(&t->loop);
    return 0;
}

static void testing_set_arguments(lua_State *L, const struct testing *t)
{
    lua_createtable(L, t->argc, 1);
    lua_pushliteral(L, "photon test");
    lua_rawseti(L, -2, 0);
    for (int i = 0; i < t->argc; i++) {
        lua_pushstring(L, t->argv[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setglobal(L, "arg");
}

static void testing_set_worker(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, 1);
    lua_setfield(L, -2, "id");
    lua_pushinteger(L, 1);
    lua_setfield(L, -2, "count");
    lua_setfield(L, -2, "worker");
}

// Protected.
static int testing_prepare(lua_State *L)
{
    static const luaL_Reg functions[] = {{"test_exit", testing_lua_exit}, {NULL, NULL}};
    struct testing *t = lua_touserdata(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, "photon.core");
    testing_register(L, t, functions);
    testing_app_open(L, t);
    testing_client_open(L, t);
    testing_wait_open(L, t);
    testing_state_open(L, t);
    testing_channels_open(L, t);
    testing_set_worker(L);
    testing_set_arguments(L, t);
    task_load_door(L, t->vm);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "photon.testing.runner");
    lua_call(L, 1, 0);
    return 0;
}

static void testing_on_wake(struct loop *loop)
{
    channel_worker_run(&((struct testing *)loop->owner)->channels);
}

// The specs' own VM: nothing in it is stopped or called slow, for busted is one long task.
static bool testing_open(struct testing *t)
{
    t->loop.on_wake = testing_on_wake;
    t->loop.owner = t;
    t->limits = t->server->config->limits;
    t->limits.lua_budget = t->limits.lua_slow = UINT32_MAX;
    t->limits.lua_memory = UINT64_MAX / 2;
    if (!loop_open(&t->loop, t->server->counters[0])) return false;
    t->vm = vm_new(&t->loop, &t->limits, t->server->counters[0], core_open);
    if (!t->vm) {
        loop_close(&t->loop);
        return false;
    }
    list_init(&t->streams.streams);
    t->streams.total = &t->server->streams;
    t->vm->streams = &t->streams;
    channel_worker_open(&t->channels, &t->loop, &t->server->streams);
    t->vm->channels = &t->channels;
    t->vm->find_channels = testing_find_channels;
    t->vm->let_go = app_let_go;
    t->vm->load = 1;
    t->vm->server = t->server;
    t->vm->worker_count = 1;
    t->vm->is_testing = true;
    t->vm->phase = VM_SERVING;
    return true;
}

static bool testing_is_quiet(struct testing *t)
{
    if (t->vm->phase == VM_CLOSING) return luv_open_handles(t->vm) == 0;
    return t->vm->task_count == 0 && list_is_empty(&t->loop.turns);
}

static bool testing_settle(struct testing *t)
{
    for (int i = 0; i < TESTING_TURNS && !testing_is_quiet(t); i++) {
        loop_run_once(&t->loop, TESTING_TURN_MS);
    }
    return testing_is_quiet(t);
}

// Whatever the specs have left open is ended in order: requests, tasks, handles, the VM. What
// cannot be ended (a task that never lets go) is left to the end of the process.
static void testing_close(struct testing *t)
{
    bool is_quiet;
    loop_clock_thaw(&t->loop);
    testing_apps_abort(t);
    task_cancel_all(t->vm, TASK_SPARE_NONE);
    is_quiet = testing_settle(t);
    t->vm->phase = VM_CLOSING;
    channel_lua_close(t->vm);
    offload_close(t->vm);
    luv_close_handles(t->vm, UINT_MAX);
    if (!testing_settle(t) || !is_quiet) return;
    testing_apps_free(t);
    testing_channels_free(t, 0);
    task_free_vm(t->vm);
    channel_worker_close(&t->channels);
    loop_close(&t->loop);
}

int testing_run(struct server *server, int argc, char **argv)
{
    static struct testing t; // what is left open at the end may still point to it
    t = (struct testing){.server = server, .argc = argc, .argv = argv, .code = 1};
    list_init(&t.apps);
    list_init(&t.clients);
    list_init(&t.turns);
    list_init(&t.registries);
    if (!testing_open(&t)) {
        log_write(LOG_ERROR, "not enough memory to run specs");
        return 1;
    }
    if (task_protect(t.vm, testing_prepare, &t) && task_call(t.vm, "test", 0, 0)) {
        loop_run(&t.loop);
    }
    testing_close(&t);
    return t.code;
}

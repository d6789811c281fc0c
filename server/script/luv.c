#include "base/log.h"
#include "script/luv_private.h"
#include "script/task.h"

enum { MAX_ARGUMENTS = 16 }; // of a callback; luv's have at most four

static char state_key, module_key, loop_key;

// Protected: the callback and its arguments become a task, which a reload leaves alone: somebody
// may wait for what it does.
static int luv_spawn(lua_State *L)
{
    struct luv_state *state = lua_touserdata(L, 1);
    int count = lua_gettop(state->carrier);

    lua_rawgeti(L, LUA_REGISTRYINDEX, state->spawn_ref);
    lua_createtable(L, 0, 1);
    lua_pushboolean(L, true);
    lua_setfield(L, -2, "detached");
    lua_xmove(state->carrier, L, count);
    if (!lua_isfunction(L, 4) && luaL_getmetafield(L, 4, "__call")) {
        lua_insert(L, 4);
        count++;
    }
    lua_call(L, count + 1, 1);
    lua_rawgeti(L, -1, 1);
    struct task *t = lua_touserdata(L, -1);
    t->is_kept = true;
    return 0;
}

// Replaces our closure at `at` by the user's callback that it holds; tells the owner.
static void luv_unwrap(lua_State *L, int at, struct luv_state *state)
{
    lua_CFunction c = lua_tocfunction(L, at);

    if (c != luv_on_closed && c != luv_on_done) return;
    lua_getupvalue(L, at, 1);
    if (c == luv_on_closed)
        luv_disown(state, lua_touserdata(L, -1));
    else
        luv_finish(state, lua_touserdata(L, -1));
    lua_pop(L, 1);
    lua_getupvalue(L, at, 2);
    lua_replace(L, at);
}

static int luv_collect(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT, 0);
    return 0;
}

// What luv has put there was not refused any memory. Over the limit, the callback is. Collecting a
// large heap takes its time, so that is done again only when there may be something to collect.
static bool luv_is_too_much(struct luv_state *state)
{
    struct vm *vm = state->vm;
    size_t limit = (size_t)vm->limits->lua_memory;

    if (vm->memory <= limit) return false;
    if (vm->memory > state->collected + limit / 64) {
        task_protect(vm, luv_collect, NULL);
        state->collected = vm->memory;
        if (vm->memory <= limit) return false;
    }
    log_write(LOG_ERROR, "not enough memory (lua_memory): a callback of luv was dropped");
    counters_add(&vm->counters->lua_errors, 1);
    return true;
}

// Called by luv outside of any protection, the function and its arguments on top of the main stack:
// nothing here can raise before the protected call.
static int luv_on_callback(lua_State *L, int nargs, int nresults, int flags)
{
    int at = lua_gettop(L) - nargs;
    struct luv_state *state;

    (void)nresults, (void)flags;
    lua_pushlightuserdata(L, &state_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    state = lua_touserdata(L, -1);
    lua_pop(L, 1);
    luv_unwrap(L, at, state);
    if (lua_isnil(L, at) || state->vm->phase != VM_SERVING || nargs > MAX_ARGUMENTS) {
        lua_settop(L, at - 1);
        return 0;
    }
    if (luv_is_too_much(state)) {
        lua_settop(L, at - 1);
        return 0;
    }
    lua_settop(state->carrier, 0);
    lua_xmove(L, state->carrier, nargs + 1);
    task_protect(state->vm, luv_spawn, state);
    lua_settop(state->carrier, 0);
    return 0;
}

static struct luv_state *luv_state_new(lua_State *L, struct vm *vm)
{
    struct luv_state *state;

    lua_pushlightuserdata(L, &state_key);
    lua_newtable(L); // holds the carrier beside the state
    state = lua_newuserdata(L, sizeof *state);
    *state = (struct luv_state){.vm = vm};
    list_init(&state->handles);
    list_init(&state->requests);
    state->carrier = lua_newthread(L);
    lua_rawseti(L, -3, 1);
    lua_insert(L, -2);
    lua_setfenv(L, -2); // the userdata's environment keeps the thread
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "photon.task");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "spawn");
    state->spawn_ref = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
    return state;
}

// Without a loop of ours (in a thread of photon.offload) luv makes one, which lives as long as its
// module names it; that name is taken away.
static void luv_keep_loop(lua_State *L)
{
    lua_pushlightuserdata(L, &loop_key);
    lua_getfield(L, -2, "_loop");
    lua_rawset(L, LUA_REGISTRYINDEX);
}

// The function that `require` calls.
static int luv_load(lua_State *L)
{
    struct vm *vm = vm_of(L);

    lua_pushlightuserdata(L, &module_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    if (!lua_isnil(L, -1)) return 1;
    struct luv_state *state = luv_state_new(L, vm);
    if (vm->loop) luv_set_loop(vm->L, &vm->loop->uv);
    luv_set_callback(vm->L, luv_on_callback);
    luv_context(vm->L)->extra = state;
    lua_pushcfunction(L, luaopen_luv);
    lua_call(L, 0, 1);
    luv_keep_loop(L);
    luv_tame(L, vm);
    lua_pushlightuserdata(L, &module_key);
    lua_pushvalue(L, -2);
    lua_rawset(L, LUA_REGISTRYINDEX);
    vm->luv = state;
    return 1;
}

void luv_lua_open(lua_State *L, struct vm *vm)
{
    static const char *const names[] = {"luv", "uv"};

    lua_getfield(L, LUA_REGISTRYINDEX, "_PRELOAD");
    for (int i = 0; i < 2; i++) {
        lua_pushlightuserdata(L, vm);
        lua_pushcclosure(L, luv_load, 1);
        lua_setfield(L, -2, names[i]);
    }
    lua_pop(L, 1);
}

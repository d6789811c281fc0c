// What of luv apps see, and what stands in for the functions that make and end handles and
// requests. Each of these has the VM and luv's own function for upvalues.
#include "base/mem.h"
#include "script/luv_private.h"

// The loop belongs to the server, threads would run Lua outside of it, and the rest changes the
// whole process.
static const char *const absent[] = {
    "run",
    "stop",
    "walk",
    "loop_close",
    "loop_alive",
    "loop_configure",
    "loop_mode",
    "backend_fd",
    "backend_timeout",
    "update_time",
    "metrics_idle_time",
    "print_all_handles",
    "print_active_handles",
    "new_thread",
    "thread_equal",
    "thread_self",
    "thread_join",
    "new_work",
    "queue_work",
    "new_signal",
    "signal_start",
    "signal_start_oneshot",
    "signal_stop",
    "sleep",
    "chdir",
    "setuid",
    "setgid",
    "os_setenv",
    "os_unsetenv",
    "disable_stdio_inheritance",
    "set_process_title",
    "_loop",
};

static const char *const makers[] = {
    "new_async", "new_check", "new_fs_event", "new_fs_poll",     "new_idle",
    "new_pipe",  "new_poll",  "new_prepare",  "new_socket_poll", "new_tcp",
    "new_timer", "new_tty",   "new_udp",      "spawn",
};

static const char *const closers[] = {"close", "tcp_close_reset", "close_reset"};

// luv takes the first argument of these for a handle before it has looked what it is.
static const char *const trusting[] = {"ref",
                                       "unref",
                                       "has_ref",
                                       "send_buffer_size",
                                       "recv_buffer_size",
                                       "fileno",
                                       "get_type",
                                       "handle_get_type",
                                       "shutdown",
                                       "listen",
                                       "accept",
                                       "read_start",
                                       "read_stop",
                                       "write",
                                       "write2",
                                       "try_write",
                                       "try_write2",
                                       "is_readable",
                                       "is_writable",
                                       "set_blocking",
                                       "stream_set_blocking",
                                       "get_write_queue_size",
                                       "stream_get_write_queue_size"};

static void luv_check_phase(lua_State *L, const struct vm *vm)
{
    if (vm->phase == VM_LOADING) {
        luaL_error(L, "luv handles cannot be made while the app loads: use app:on_start");
    }
    if (!vm->loop) luaL_error(L, "there is no loop for luv here");
    if (vm->phase != VM_SERVING) luaL_error(L, "luv handles cannot be made any more");
}

// What stands in luv for a user's close callback: the handle (1) is done, then the callback (2).
int luv_on_closed(lua_State *L)
{
    (void)L;
    return 0;
}

// The same for a request of the thread pool.
int luv_on_done(lua_State *L)
{
    (void)L;
    return 0;
}

static int luv_call_original(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

// Makes a handle, and owns it.
static int luv_make(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct luv_state *state = vm->luv;
    struct luv_owned *owned;

    luv_check_phase(L, vm);
    if (!state->spare) state->spare = mem_zalloc(sizeof *state->spare);
    if (!state->spare) return luaL_error(L, "not enough memory");
    int count = luv_call_original(L);
    if (count == 0 || lua_type(L, 1) != LUA_TUSERDATA) return count;
    owned = state->spare;
    state->spare = NULL;
    owned->handle = *(uv_handle_t **)lua_touserdata(L, 1);
    list_append(&state->handles, &owned->node);
    state->count++;
    return count;
}

// The registry's "uv_handle" has the metatables of luv's handles for keys.
static bool luv_is_handle(lua_State *L, int at)
{
    if (lua_type(L, at) != LUA_TUSERDATA || !lua_getmetatable(L, at)) return false;
    lua_getfield(L, LUA_REGISTRYINDEX, "uv_handle");
    lua_insert(L, -2);
    lua_rawget(L, -2);
    bool is_handle = lua_toboolean(L, -1);
    lua_pop(L, 2);
    return is_handle;
}

// libuv may start a handle again that is closed, and then fails an assertion.
static bool luv_is_dead(lua_State *L, int at)
{
    const uv_handle_t *handle = *(uv_handle_t **)lua_touserdata(L, at);
    return !handle || uv_is_closing(handle);
}

static void luv_check_handle(lua_State *L, int at)
{
    luaL_argcheck(L, luv_is_handle(L, at), at, "a luv handle is expected");
}

// Fails, as luv's functions do, when one of the arguments is a handle that is closed.
static int luv_with_any(lua_State *L)
{
    luaL_checkstack(L, 4, NULL);
    for (int i = lua_gettop(L); i > 0; i--) {
        if (!luv_is_handle(L, i) || !luv_is_dead(L, i)) continue;
        lua_pushnil(L);
        lua_pushliteral(L, "EINVAL: the handle has been closed");
        lua_pushliteral(L, "EINVAL");
        return 3;
    }
    return luv_call_original(L);
}

static int luv_with_handle(lua_State *L)
{
    luv_check_handle(L, 1);
    for (int i = lua_gettop(L); i > 1; i--) {
        if (lua_type(L, i) == LUA_TUSERDATA) luv_check_handle(L, i);
    }
    return luv_with_any(L);
}

static int luv_is_closing(lua_State *L)
{
    luv_check_handle(L, 1);
    lua_pushboolean(L, luv_is_dead(L, 1));
    return 1;
}

static int luv_is_active(lua_State *L)
{
    luv_check_handle(L, 1);
    lua_pushboolean(L, !luv_is_dead(L, 1) && uv_is_active(*(uv_handle_t **)lua_touserdata(L, 1)));
    return 1;
}

static struct luv_owned *luv_find_owned(struct luv_state *state, lua_State *L, int at)
{
    const void *handle = *(void **)lua_touserdata(L, at);
    for (struct list *n = state->handles.prev; n != &state->handles; n = n->prev) {
        struct luv_owned *owned = list_entry(n, struct luv_owned, node);
        if (owned->handle == handle) return owned;
    }
    return NULL;
}

// (handle, callback)
static int luv_close_one(lua_State *L)
{
    struct luv_owned *owned;

    luv_check_handle(L, 1);
    luaL_argcheck(L, !luv_is_dead(L, 1), 1, "the handle has been closed");
    owned = luv_find_owned(vm_of(L)->luv, L, 1);
    lua_settop(L, 2);
    if (owned) {
        if (!lua_isnil(L, 2) && lua_type(L, 2) != LUA_TFUNCTION &&
            !luaL_getmetafield(L, 2, "__call")) {
            return luaL_argerror(L, 2, "a function is expected");
        }
        lua_settop(L, 2);
        lua_pushlightuserdata(L, owned);
        lua_insert(L, 2);
        lua_pushcclosure(L, luv_on_closed, 2);
    }
    return luv_call_original(L);
}

static bool luv_has_callback(lua_State *L)
{
    int top = lua_gettop(L);
    if (top == 0) return false;
    if (lua_type(L, top) == LUA_TFUNCTION) return true;
    if (lua_type(L, top) != LUA_TTABLE || !luaL_getmetafield(L, top, "__call")) return false;
    lua_pop(L, 1);
    return true;
}

// A function that works in the thread pool when its last argument is a callback.
static int luv_request(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct luv_request *request;

    if (!luv_has_callback(L)) return luv_call_original(L);
    luv_check_phase(L, vm);
    request = lua_newuserdata(L, sizeof *request);
    *request = (struct luv_request){0};
    lua_insert(L, -2);
    lua_pushcclosure(L, luv_on_done, 2);
    int count = luv_call_original(L);
    if (count == 0 || lua_type(L, 1) != LUA_TUSERDATA) return count;
    request->req = lua_touserdata(L, 1); // the userdata lives: luv holds our closure
    list_append(&vm->luv->requests, &request->node);
    vm->luv->count++;
    return count;
}

// Replaces the function `name` of the table at the top, when there is one.
static void luv_replace(lua_State *L, struct vm *vm, const char *name, lua_CFunction by)
{
    lua_getfield(L, -1, name);
    if (!lua_isfunction(L, -1)) {
        lua_pop(L, 1);
        return;
    }
    lua_pushlightuserdata(L, vm);
    lua_insert(L, -2);
    lua_pushcclosure(L, by, 2);
    lua_setfield(L, -2, name);
}

// What of the table at the top is luv's own function still. Fields that are there may be set while
// it is walked.
static void luv_tame_rest(lua_State *L, struct vm *vm)
{
    int table = lua_gettop(L);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        bool is_own = lua_iscfunction(L, -1) && !lua_getupvalue(L, -1, 2);
        lua_settop(L, table + 2);
        if (!is_own) continue;
        lua_pushvalue(L, table + 1);
        lua_pushlightuserdata(L, vm);
        lua_pushvalue(L, table + 2);
        lua_pushcclosure(L, luv_with_any, 2);
        lua_rawset(L, table);
    }
}

static void luv_tame_table(lua_State *L, struct vm *vm)
{
    for (size_t i = 0; i < sizeof closers / sizeof *closers; i++) {
        luv_replace(L, vm, closers[i], luv_close_one);
    }
    for (size_t i = 0; i < sizeof trusting / sizeof *trusting; i++) {
        luv_replace(L, vm, trusting[i], luv_with_handle);
    }
    luv_replace(L, vm, "is_closing", luv_is_closing);
    luv_replace(L, vm, "is_active", luv_is_active);
    luv_tame_rest(L, vm);
}

// The methods of each kind of handle.
static void luv_tame_methods(lua_State *L, struct vm *vm)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "uv_handle");
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        lua_getfield(L, -1, "__index");
        if (lua_istable(L, -1)) luv_tame_table(L, vm);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

// The functions of the module at the top that take a callback for the thread pool.
static void luv_tame_requests(lua_State *L, struct vm *vm)
{
    static const char *const others[] = {"getaddrinfo", "getnameinfo", "random"};
    int names = 0, base = lua_gettop(L);

    lua_newtable(L); // the module must not change while it is walked
    lua_pushnil(L);
    while (lua_next(L, base)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) != LUA_TSTRING || strncmp(lua_tostring(L, -1), "fs_", 3) != 0) continue;
        if (strstr(lua_tostring(L, -1), "_event") || strstr(lua_tostring(L, -1), "fs_poll"))
            continue;
        lua_pushvalue(L, -1);
        lua_rawseti(L, base + 1, ++names);
    }
    for (int i = 1; i <= names; i++) {
        lua_rawgeti(L, base + 1, i);
        const char *name = lua_tostring(L, -1);
        lua_pushvalue(L, base);
        luv_replace(L, vm, name, luv_request);
        lua_pop(L, 2);
    }
    lua_settop(L, base);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        luv_replace(L, vm, others[i], luv_request);
    }
}

void luv_tame(lua_State *L, struct vm *vm)
{
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        lua_pushnil(L);
        lua_setfield(L, -2, absent[i]);
    }
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++) {
        luv_replace(L, vm, makers[i], luv_make);
    }
    luv_tame_requests(L, vm);
    luv_tame_table(L, vm);
    luv_tame_methods(L, vm);
}

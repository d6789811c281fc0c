// Running an app's files in a fresh VM, and taking what they compiled to.
#include "base/log.h"
#include "base/mem.h"
#include "script/app_private.h"
#include "script/core.h"
#include "script/guard.h"
#include "script/task.h"

static void app_set_path(lua_State *L, const char *field, const char *dir, const char *patterns)
{
    lua_getglobal(L, "package");
    lua_getfield(L, -1, field);
    luaL_gsub(L, patterns, "%", dir);
    lua_pushliteral(L, ";");
    lua_pushvalue(L, -3);
    lua_concat(L, 3);
    lua_setfield(L, -3, field);
    lua_pop(L, 2);
}

// started([error, is_cancelled]): app:on_start has run, or was cut off by a stop or the next reload
static int app_lua_started(lua_State *L)
{
    struct app_part *part = vm_of(L)->part;
    struct app_host *host = part->host;
    const char *error = lua_tostring(L, 1);
    part->has_started = true;
    part->has_failed = error != NULL;
    if (error && !lua_toboolean(L, 2)) log_write(LOG_ERROR, "app:on_start: %s", error);
    if (host && host->on_started && host->current == part) host->on_started(host, error);
    return 0;
}

void app_open_functions(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {{"started", app_lua_started}, {NULL, NULL}};
    core_open(L, vm);
    vm_register(L, vm, functions);
}

// photon.worker: id from 1 to count.
static void app_set_worker(lua_State *L, struct vm *vm)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_getfield(L, -1, "photon.core");
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, (lua_Integer)vm->worker_id + 1);
    lua_setfield(L, -2, "id");
    lua_pushinteger(L, (lua_Integer)vm->worker_count);
    lua_setfield(L, -2, "count");
    lua_setfield(L, -2, "worker");
    lua_pop(L, 2);
}

// Before the app's files run: paths, the door, the loader. Protected.
static int app_prepare(lua_State *L)
{
    struct app_part *part = lua_touserdata(L, 1);
    struct generation *g = part->generation;
    app_set_path(L, "path", g->dir,
                 "%/?.lua;%/?/init.lua;%/lua_modules/?.lua;%/lua_modules/?/init.lua;"
                 "%/lua_modules/share/lua/5.1/?.lua;%/lua_modules/share/lua/5.1/?/init.lua");
    app_set_path(L, "cpath", g->dir, "%/?.so;%/lua_modules/?.so;%/lua_modules/lib/lua/5.1/?.so");
    app_set_worker(L, part->vm);
    task_load_door(L, part->vm);
    lua_getglobal(L, "require");
    lua_pushliteral(L, "photon.loader");
    lua_call(L, 1, 1);
    lua_pushstring(L, g->file);
    lua_setfield(L, -2, "file");
    lua_getfield(L, -1, "run");
    lua_setfield(L, LUA_REGISTRYINDEX, "photon.run");
    lua_setfield(L, LUA_REGISTRYINDEX, "photon.loader");
    return 0;
}

static int app_push_run(lua_State *L)
{
    lua_getfield(L, LUA_REGISTRYINDEX, "photon.run");
    *(int *)lua_touserdata(L, 1) = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

static void app_take_files(lua_State *L, struct generation *g, int loader)
{
    lua_getfield(L, loader, "files");
    lua_call(L, 0, 1);
    int count = (int)lua_objlen(L, -1);
    g->files = mem_zalloc((size_t)(count + 1) * sizeof *g->files);
    for (int i = 1; g->files && i <= count; i++) {
        size_t len;
        lua_rawgeti(L, -1, i);
        const char *path = lua_tolstring(L, -1, &len);
        char *copy = path ? app_copy(path, len) : NULL;
        if (copy) g->files[g->file_count++] = copy;
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

// After them: what they compiled to. Protected.
static int app_take(lua_State *L)
{
    struct app_part *part = lua_touserdata(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, "photon.loader");
    int loader = lua_gettop(L);
    lua_getfield(L, loader, "message");
    if (!lua_isnil(L, -1)) return lua_error(L);
    lua_getfield(L, loader, "compiled");
    app_take_compiled(L, part);
    if (!part->generation->files) app_take_files(L, part->generation, loader);
    return 0;
}

// LuaJIT's own message of a refusal says nothing of the stack.
static bool app_explain(struct vm *vm, int status, char error[APP_ERROR])
{
    lua_State *L = vm->L;
    if (status == 0) return true;
    const char *why = "the app could not be loaded";
    if (lua_type(L, -1) == LUA_TSTRING) why = lua_tostring(L, -1);
    snprintf(error, APP_ERROR, "%s%s", why,
             vm->is_deep ? " (endless recursion through C functions or coroutines?)" : "");
    lua_settop(L, 0);
    return false;
}

bool app_run_files(struct app_part *part, bool *is_lost, char error[APP_ERROR])
{
    struct vm *vm = part->vm;
    lua_State *L = vm->L;
    int run = LUA_NOREF, status;
    if (!app_explain(vm, lua_cpcall(L, app_prepare, part), error) ||
        !app_explain(vm, lua_cpcall(L, app_push_run, &run), error)) {
        return false;
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, run);
    status = guard_pcall(guard_here(), L, 0, 0, 0, vm->limits->lua_budget);
    if (status == GUARD_ABANDONED) {
        vm_abandon(vm);
        *is_lost = true;
        snprintf(error, APP_ERROR,
                 "%s ran over lua_budget (%u ms) while it was loaded, and could "
                 "not be stopped; the code at its top level must end",
                 part->generation->file, vm->limits->lua_budget);
        return false;
    }
    return app_explain(vm, status, error) && app_explain(vm, lua_cpcall(L, app_take, part), error);
}

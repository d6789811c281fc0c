#include "script/app_private.h"

#include <sys/stat.h>
#include "base/log.h"
#include "base/mem.h"
#include "script/channel.h"
#include "script/core.h"
#include "script/guard.h"
#include "script/library.h"
#include "script/task.h"
#include "serve/fixed.h"

static char *app_copy(const char *text, size_t len)
{
    char *copy = mem_alloc(len + 1);
    if (!copy) return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

static void app_forget_routes(struct generation *g)
{
    for (unsigned i = 0; g->router && i < router_count(g->router); i++) {
        const struct route *route = router_at(g->router, i);
        if (route->kind == ROUTE_FIXED) fixed_free(route->target);
        if (route->kind == ROUTE_CHANNEL) channel_route_free(route->target);
    }
    router_free(g->router);
}

void app_release(struct generation *g)
{
    if (atomic_fetch_sub(&g->refs, 1) != 1) return;
    app_forget_routes(g);
    for (unsigned i = 0; i < g->file_count; i++) mem_free(g->files[i]);
    mem_free(g->files);
    mem_free(g->numbers);
    mem_free(g->path);
    mem_free(g->file);
    mem_free(g->dir);
    atomic_fetch_sub(&g->server->generations, 1);
    mem_free(g);
}

// APP is a directory that holds app.lua, or a .lua file.
static bool app_find_file(struct generation *g, const char *path, char error[APP_ERROR])
{
    struct stat st;
    size_t len = strlen(path);
    const char *slash = strrchr(path, '/');
    bool is_file = len > 4 && strcmp(path + len - 4, ".lua") == 0;
    struct buf file = {0};
    if (is_file)
        g->dir = slash ? app_copy(path, (size_t)(slash - path)) : app_copy(".", 1);
    else
        g->dir = app_copy(path, len);
    bool ok =
        buf_append_format(&file, is_file ? "%s" : "%s/app.lua", path) && buf_append(&file, "", 1);
    g->file = ok ? app_copy(file.ptr, file.len - 1) : NULL;
    buf_reset(&file);
    g->path = app_copy(path, len);
    if (!g->file || !g->dir || !g->path) {
        snprintf(error, APP_ERROR, "not enough memory");
        return false;
    }
    if (stat(g->file, &st) == 0 && S_ISREG(st.st_mode)) return true;
    snprintf(error, APP_ERROR,
             "there is no app at %s: %s was not found; name a directory that "
             "holds app.lua, or a .lua file",
             path, g->file);
    return false;
}

static struct generation *app_generation_new(struct server *server, unsigned number)
{
    struct generation *g = mem_zalloc(sizeof *g);
    if (!g) return NULL;
    g->server = server;
    g->number = number;
    g->limits = server->config->limits;
    atomic_store(&g->refs, 1);
    atomic_fetch_add(&server->generations, 1);
    g->router = router_new();
    if (g->router) return g;
    app_release(g);
    return NULL;
}

static struct app_part *app_part_new(struct generation *g, unsigned index)
{
    struct app_part *part = mem_zalloc(sizeof *part);
    if (!part) return NULL;
    part->generation = g;
    part->index = index;
    atomic_fetch_add(&g->refs, 1);
    g->parts[index] = part;
    return part;
}

void app_part_free(struct app_part *part)
{
    struct generation *g = part->generation;
    if (part->vm && part->owns_vm) {
        struct vm *vm = part->vm;
        task_free_all(vm);
        vm_free(vm);
    }
    if (g->parts[part->index] == part) g->parts[part->index] = NULL;
    mem_free(part);
    app_release(g);
}

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

// started([error]): app:on_start has run
static int app_lua_started(lua_State *L)
{
    struct app_part *part = vm_of(L)->part;
    struct app_host *host = part->host;
    const char *error = lua_tostring(L, 1);
    if (error) log_write(LOG_ERROR, "app:on_start: %s", error);
    if (host && host->on_started && host->current == part) host->on_started(host, error);
    return 0;
}

static void app_open_functions(lua_State *L, struct vm *vm)
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

static bool app_explain(lua_State *L, int status, char error[APP_ERROR])
{
    if (status == 0) return true;
    const char *why = "the app could not be loaded";
    if (lua_type(L, -1) == LUA_TSTRING) why = lua_tostring(L, -1);
    snprintf(error, APP_ERROR, "%s", why);
    lua_settop(L, 0);
    return false;
}

// False when something failed; *is_lost when the VM must not be touched any more.
static bool app_run_files(struct app_part *part, bool *is_lost, char error[APP_ERROR])
{
    struct vm *vm = part->vm;
    lua_State *L = vm->L;
    int run = LUA_NOREF, status;
    if (!app_explain(L, lua_cpcall(L, app_prepare, part), error) ||
        !app_explain(L, lua_cpcall(L, app_push_run, &run), error)) {
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
    return app_explain(L, status, error) && app_explain(L, lua_cpcall(L, app_take, part), error);
}

struct app_part *app_load_part(struct generation *g, unsigned index, struct loop *loop,
                               struct counters *counters, char error[APP_ERROR])
{
    struct app_part *part = app_part_new(g, index);
    bool is_lost = false;
    if (part) part->vm = vm_new(loop, &g->limits, counters, app_open_functions);
    if (!part || !part->vm) {
        snprintf(error, APP_ERROR, "not enough memory for a Lua state");
        if (part) app_part_free(part);
        return NULL;
    }
    part->owns_vm = true;
    part->vm->part = part;
    part->vm->server = g->server;
    part->vm->worker_id = index;
    part->vm->worker_count = g->server->worker_count;
    part->vm->is_watching = g->is_watching;
    part->vm->on_abandoned = app_on_abandoned;
    part->vm->let_go = app_let_go;
    part->vm->load = g->number;
    if (app_run_files(part, &is_lost, error)) return part;
    if (is_lost) part->owns_vm = false;
    app_part_free(part);
    return NULL;
}

struct generation *app_load(const struct app_load *load, char error[APP_ERROR])
{
    struct generation *g = app_generation_new(load->server, load->number);
    if (!g) {
        snprintf(error, APP_ERROR, "not enough memory");
        return NULL;
    }
    g->is_watching = load->is_watching;
    bool ok = app_find_file(g, load->path, error);
    for (unsigned i = 0; ok && i < load->count; i++, g->count++) {
        ok = app_load_part(g, i, load->loops[i], load->counters[i], error) != NULL;
    }
    if (ok) return g;
    app_discard(g);
    return NULL;
}

void app_discard(struct generation *g)
{
    for (unsigned i = 0; i < SERVER_MAX_WORKERS; i++) {
        if (g->parts[i]) app_part_free(g->parts[i]);
    }
    app_release(g);
}

const struct router *app_routes(const struct generation *g)
{
    return g->router;
}
const struct limits *app_limits(const struct generation *g)
{
    return &g->limits;
}
struct app_part *app_part(struct generation *g, unsigned index)
{
    return g->parts[index];
}
unsigned app_number(const struct generation *g)
{
    return g->number;
}

void app_each_file(const struct generation *g, void (*each)(const char *path, void *data),
                   void *data)
{
    for (unsigned i = 0; i < g->file_count; i++) each(g->files[i], data);
}

struct app_part *app_reload_part(struct app_part *lost, char error[APP_ERROR])
{
    return app_load_part(lost->generation, lost->index, lost->host->loop, lost->host->counters,
                         error);
}

// The app object is the argument. Protected.
static int app_take_here(lua_State *L)
{
    struct app_part *part = lua_touserdata(L, lua_upvalueindex(1));
    lua_getglobal(L, "require");
    lua_pushliteral(L, "photon.loader");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "compile");
    lua_pushvalue(L, 1);
    lua_pushliteral(L, "the app");
    lua_call(L, 2, 2);
    if (lua_isnil(L, -2)) return lua_error(L);
    lua_pop(L, 1);
    app_take_compiled(L, part);
    return 0;
}

struct generation *app_load_here(lua_State *L, struct vm *vm, struct server *server,
                                 char error[APP_ERROR])
{
    struct generation *g = app_generation_new(server, 0);
    struct app_part *part = g ? app_part_new(g, 0) : NULL;
    if (!part) {
        snprintf(error, APP_ERROR, "not enough memory");
        return NULL;
    }
    part->vm = vm;
    lua_pushlightuserdata(L, part);
    lua_pushcclosure(L, app_take_here, 1);
    lua_pushvalue(L, -2);
    if (lua_pcall(L, 1, 0, 0) == 0) return g;
    snprintf(error, APP_ERROR, "%s",
             lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "the app cannot be used");
    lua_pop(L, 1);
    app_discard(g);
    return NULL;
}

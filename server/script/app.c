#include "script/app_private.h"

#include <sys/stat.h>
#include "base/mem.h"
#include "script/channel.h"
#include "script/task.h"
#include "serve/fixed.h"

char *app_copy(const char *text, size_t len)
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
    if (part->owns_vm) task_free_vm(part->vm);
    if (g->parts[part->index] == part) g->parts[part->index] = NULL;
    mem_free(part);
    app_release(g);
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
    part->vm->on_full = app_on_full;
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

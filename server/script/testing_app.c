// Apps in the VM of the specs. What a worker does to install and retire one (app_host) would also
// end the tasks of the specs, which share the VM, so that is done here.
#include "base/mem.h"
#include "script/app_private.h"
#include "script/testing_private.h"

struct testing_app *testing_app_find(struct testing *t, unsigned id)
{
    for (struct list *n = t->apps.next; n != &t->apps; n = n->next) {
        struct testing_app *app = list_entry(n, struct testing_app, node);
        if (app->id == id && !app->is_closed) return app;
    }
    return NULL;
}

static void testing_app_install(struct testing *t, struct testing_app *app, struct generation *g)
{
    app_host_init(&app->host, t->server, 0, &t->loop, t->server->counters[0]);
    app->part = app_part(g, 0);
    app->part->host = &app->host;
    app->host.current = app->part;
    app->host.limits = *app_limits(g);
    app->host.channels = &t->channels;
    app->channels = testing_find_channels(t->vm);
    channel_registry_limit(app->channels, app->host.limits.max_channels,
                           app->host.limits.max_event);
    list_append(&app->host.parts, &app->part->node);
    memory_host_init(&app->wire, &t->loop, &app->host.limits, &app->host.handler);
    app->id = ++t->last_app;
    list_append(&t->apps, &app->node);
}

// test_app(app) → id; or nil, message
static int testing_lua_app(lua_State *L)
{
    struct testing *t = testing_of(L);
    struct testing_app *app = mem_zalloc(sizeof *app);
    struct generation *g;
    char error[APP_ERROR] = "not enough memory";
    lua_settop(L, 1);
    g = app ? app_load_here(L, t->vm, t->server, error) : NULL;
    if (!g) {
        mem_free(app);
        lua_pushnil(L);
        lua_pushstring(L, error);
        return 2;
    }
    testing_app_install(t, app, g);
    app_release(g); // the part keeps it
    lua_pushnumber(L, app->id);
    return 1;
}

// Its functions are let go; their places in the table stay taken.
static void testing_app_forget_handlers(lua_State *L, struct testing *t, struct testing_app *app)
{
    uint32_t count = 1 + router_count(app->part->generation->router);
    lua_rawgeti(L, LUA_REGISTRYINDEX, t->vm->refs[VM_REF_HANDLERS]);
    for (uint32_t i = 0; i < count; i++) {
        lua_pushboolean(L, false);
        lua_rawseti(L, -2, (int)(app->part->base + i));
    }
    lua_pop(L, 1);
}

static bool testing_app_free(struct testing_app *app)
{
    if (app->part->busy || !list_is_empty(&app->wire.open)) return false;
    timer_stop(&app->host.check);
    list_remove(&app->part->node);
    app_part_free(app->part);
    list_remove(&app->node);
    mem_free(app);
    return true;
}

// test_app_close(id): ends its requests
static int testing_lua_app_close(lua_State *L)
{
    struct testing *t = testing_of(L);
    struct testing_app *app = testing_app_find(t, (unsigned)lua_tointeger(L, 1));
    if (!app) return 0;
    app->is_closed = true;
    testing_app_forget_handlers(L, t, app);
    for (struct list *n = app->wire.open.next; n != &app->wire.open; n = n->next) {
        memory_drop(list_entry(n, struct memory, node));
    }
    return 0;
}

static unsigned testing_apps_sweep(struct testing *t)
{
    unsigned left = 0;
    for (struct list *n = t->apps.next, *next; n != &t->apps; n = next) {
        struct testing_app *app = list_entry(n, struct testing_app, node);
        next = n->next;
        if (app->is_closed && !testing_app_free(app)) left++;
    }
    return left;
}

// test_app_sweep() → how many closed apps still run something; the others are freed
static int testing_lua_app_sweep(lua_State *L)
{
    lua_pushnumber(L, testing_apps_sweep(testing_of(L)));
    return 1;
}

void testing_apps_abort(struct testing *t)
{
    struct list *node;
    while ((node = list_take(&t->clients)) != NULL) {
        testing_client_close(list_entry(node, struct testing_client, node));
    }
    for (struct list *n = t->apps.next; n != &t->apps; n = n->next) {
        struct testing_app *app = list_entry(n, struct testing_app, node);
        app->is_closed = true;
        memory_host_close(&app->wire);
    }
}

void testing_apps_free(struct testing *t)
{
    testing_apps_sweep(t);
}

void testing_app_open(lua_State *L, struct testing *t)
{
    static const luaL_Reg functions[] = {{"test_app", testing_lua_app},
                                         {"test_app_close", testing_lua_app_close},
                                         {"test_app_sweep", testing_lua_app_sweep},
                                         {NULL, NULL}};
    testing_register(L, t, functions);
}

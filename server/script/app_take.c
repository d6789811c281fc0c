// What an app compiled to, read into C: settings, routes, rendered replies, handlers.
#include "base/mem.h"
#include "script/app_private.h"
#include "script/channel.h"
#include "serve/fixed.h"

static struct slice app_text(lua_State *L, int table, const char *name)
{
    struct slice s = {0};
    lua_getfield(L, table, name);
    if (lua_type(L, -1) == LUA_TSTRING) s.ptr = lua_tolstring(L, -1, &s.len);
    lua_pop(L, 1); // the table keeps it alive
    return s;
}

static double app_number_of(lua_State *L, int table, const char *name, double otherwise)
{
    double n = otherwise;
    lua_getfield(L, table, name);
    if (lua_type(L, -1) == LUA_TNUMBER) n = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return n;
}

static enum route_kind app_kind(lua_State *L, int table)
{
    struct slice kind = app_text(L, table, "kind");
    if (slice_equals(kind, SLICE("fixed"))) return ROUTE_FIXED;
    if (slice_equals(kind, SLICE("stream"))) return ROUTE_STREAM;
    if (slice_equals(kind, SLICE("metrics"))) return ROUTE_METRICS;
    if (slice_equals(kind, SLICE("health"))) return ROUTE_HEALTH;
    if (slice_equals(kind, SLICE("channel"))) return ROUTE_CHANNEL;
    return ROUTE_LUA;
}

// Renders the `fixed` table of a route: status, headers as { name, value } pairs, body.
static struct fixed *app_render(lua_State *L, int route)
{
    struct header items[64];
    struct headers headers = {items, 0, 64};
    lua_getfield(L, route, "fixed");
    int fixed = lua_gettop(L);
    lua_getfield(L, fixed, "headers");
    int list = lua_gettop(L);
    luaL_checkstack(L, 3 * 64, "headers");
    for (int i = 1; i <= 64 && lua_istable(L, list); i++) {
        lua_rawgeti(L, list, i);
        if (!lua_istable(L, -1)) break;
        struct header *h = &items[headers.count++];
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        h->name.ptr = lua_tolstring(L, -2, &h->name.len);
        h->value.ptr = lua_tolstring(L, -1, &h->value.len);
    }
    struct fixed *f = fixed_new((int)app_number_of(L, fixed, "status", 200), &headers,
                                app_text(L, fixed, "body"));
    lua_settop(L, fixed - 1);
    if (!f) luaL_error(L, "not enough memory for a static route");
    return f;
}

// What serves a channel's route without Lua; NULL when it enters Lua.
static struct channel_route *app_channel(lua_State *L, int table)
{
    struct channel_route *made = NULL;
    lua_getfield(L, table, "channels");
    if (lua_istable(L, -1)) made = channel_route_new(L, lua_gettop(L));
    lua_pop(L, 1);
    return made;
}

static const struct route *app_add_route(lua_State *L, struct generation *g, int table)
{
    char error[512];
    struct route route = {
        .method = app_text(L, table, "method"),
        .pattern = app_text(L, table, "pattern"),
        .place = app_text(L, table, "place"),
        .kind = app_kind(L, table),
        .max_body = (uint64_t)app_number_of(L, table, "max_body", 0),
    };
    struct route *added = router_add(g->router, &route, error, sizeof error);
    if (!added) luaL_error(L, "%s", error);
    if (route.kind == ROUTE_FIXED) added->target = app_render(L, table);
    if (route.kind == ROUTE_CHANNEL) added->target = app_channel(L, table);
    return added;
}

// Workers run the same files, but chance (the order of pairs, the clock) may make them differ.
static const struct route *app_find_route(lua_State *L, struct generation *g, int table)
{
    struct slice method = app_text(L, table, "method"), pattern = app_text(L, table, "pattern");
    const struct route *route = router_find(g->router, method, pattern);
    if (!route) {
        struct slice place = app_text(L, table, "place");
        luaL_error(L,
                   "%s: the workers registered different routes: %s %s is not in all of them; "
                   "what is registered must not depend on chance or time",
                   place.ptr ? place.ptr : "?", method.ptr, pattern.ptr);
    }
    return route;
}

static void app_take_settings(lua_State *L, struct generation *g, int compiled)
{
    char error[512];
    lua_getfield(L, compiled, "settings");
    if (!lua_istable(L, -1)) return;
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        int type = lua_type(L, -1);
        double value = type == LUA_TBOOLEAN ? lua_toboolean(L, -1) : lua_tonumber(L, -1);
        if (lua_type(L, -2) != LUA_TSTRING || (type != LUA_TNUMBER && type != LUA_TBOOLEAN)) {
            continue; // lists and texts are read by who needs them
        }
        if (!config_apply_setting(g->server->config, &g->limits, lua_tostring(L, -2), value, error,
                                  sizeof error)) {
            struct slice place = app_text(L, compiled, "place");
            luaL_error(L, "%s: photon.app: %s", place.ptr ? place.ptr : "?", error);
        }
    }
    lua_pop(L, 1);
}

// The VM's table of handlers grows by this app's fallback and its routes.
static int app_handlers(lua_State *L, struct app_part *part)
{
    int *ref = &part->vm->refs[VM_REF_HANDLERS];
    if (*ref == LUA_NOREF) {
        lua_newtable(L);
        *ref = luaL_ref(L, LUA_REGISTRYINDEX);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, *ref);
    part->base = (uint32_t)lua_objlen(L, -1) + 1;
    return lua_gettop(L);
}

static void app_take_route(lua_State *L, struct app_part *part, int table, int handlers,
                           bool is_first)
{
    struct generation *g = part->generation;
    const struct route *route = is_first ? app_add_route(L, g, table) : app_find_route(L, g, table);
    lua_getfield(L, table, "handler");
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, false);
    }
    lua_rawseti(L, handlers, (int)(part->base + 1 + route->index));
}

static void app_number_routes(lua_State *L, struct generation *g)
{
    unsigned count = router_count(g->router);
    g->numbers = mem_zalloc((count + 1) * sizeof *g->numbers);
    if (!g->numbers || !router_seal(g->router)) luaL_error(L, "not enough memory for the routes");
    for (unsigned i = 0; i < count && g->server->metrics; i++) {
        const struct route *route = router_at(g->router, i);
        g->numbers[i] = metrics_route(g->server->metrics, route->method, route->pattern);
    }
}

void app_take_compiled(lua_State *L, struct app_part *part)
{
    struct generation *g = part->generation;
    int compiled = lua_gettop(L);
    bool is_first = g->numbers == NULL;
    if (is_first) app_take_settings(L, g, compiled);
    vm_memory_relimit(part->vm);
    lua_settop(L, compiled);
    int handlers = app_handlers(L, part);
    lua_getfield(L, compiled, "fallback");
    part->has_fallback = lua_isfunction(L, -1);
    if (!part->has_fallback) lua_pushboolean(L, false);
    lua_rawseti(L, handlers, (int)part->base);
    lua_settop(L, handlers);
    lua_getfield(L, compiled, "routes");
    int routes = lua_gettop(L), count = (int)lua_objlen(L, routes);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, routes, i);
        app_take_route(L, part, lua_gettop(L), handlers, is_first);
        lua_settop(L, routes);
    }
    if (is_first)
        app_number_routes(L, g);
    else if ((unsigned)count != router_count(g->router)) {
        luaL_error(L, "the workers registered different numbers of routes (%d and %d)",
                   (int)router_count(g->router), count);
    }
    lua_settop(L, compiled - 1);
}

#include "script/metrics.h"

#include "serve/server.h"

static void metrics_lua_set(lua_State *L, const char *name, double value)
{
    lua_pushnumber(L, value);
    lua_setfield(L, -2, name);
}

static void metrics_lua_set_counters(lua_State *L, const struct server *s)
{
    enum { counter, gauge };
    struct counters sum;
    server_sum(s, &sum);
    // A gauge's sum may be read while its parts move on: then it is below 0 for a moment.
#define METRICS_SET(name, kind, help)                                                              \
    {                                                                                              \
        int64_t n = (int64_t)atomic_load_explicit(&sum.name, memory_order_relaxed);                \
        metrics_lua_set(L, #name, kind == gauge && n < 0 ? 0 : (double)n);                         \
    }
    COUNTERS_EACH(METRICS_SET)
#undef METRICS_SET
}

static void metrics_lua_set_gauges(lua_State *L, const struct server *s)
{
    struct metrics_gauges g = server_gauges(s);
    lua_pushstring(L, g.version);
    lua_setfield(L, -2, "version");
    metrics_lua_set(L, "lua_heap_bytes", (double)g.vm_bytes);
    metrics_lua_set(L, "workers", g.workers);
    metrics_lua_set(L, "generations", g.generations);
    metrics_lua_set(L, "generation", g.generation);
    metrics_lua_set(L, "reload_pause_seconds", g.reload_pause);
    metrics_lua_set(L, "uptime", g.uptime);
}

static void metrics_lua_push_buckets(lua_State *L, const struct metrics_totals *totals)
{
    lua_createtable(L, METRICS_BUCKETS + 1, 0);
    for (int b = 0; b <= METRICS_BUCKETS; b++) {
        lua_createtable(L, 0, 2);
        metrics_lua_set(L, "le", metrics_bound(b));
        metrics_lua_set(L, "count", (double)totals->up_to[b]);
        lua_rawseti(L, -2, b + 1);
    }
}

static void metrics_lua_set_totals(lua_State *L, struct metrics *m)
{
    struct metrics_totals totals = metrics_read_totals(m);
    metrics_lua_set(L, "reply_body_bytes", (double)totals.body_bytes);
    lua_createtable(L, 0, 3);
    metrics_lua_set(L, "count", (double)totals.up_to[METRICS_BUCKETS]);
    metrics_lua_set(L, "sum", (double)totals.nanoseconds / 1e9);
    metrics_lua_push_buckets(L, &totals);
    lua_setfield(L, -2, "buckets");
    lua_setfield(L, -2, "request_seconds");
}

// The route's table, or nothing when none of its requests is over.
static bool metrics_lua_push_route(lua_State *L, const struct metrics_route_sum *route)
{
    uint64_t all = 0;
    for (int class = 0; class < METRICS_CLASSES; class ++) all += route->by_class[class];
    if (!all) return false;
    lua_createtable(L, 0, 3 + METRICS_CLASSES);
    lua_pushlstring(L, route->method.ptr, route->method.len);
    lua_setfield(L, -2, "method");
    lua_pushlstring(L, route->pattern.ptr, route->pattern.len);
    lua_setfield(L, -2, "pattern");
    metrics_lua_set(L, "requests", (double)all);
    for (int class = 0; class < METRICS_CLASSES; class ++)
        metrics_lua_set(L, metrics_class_name(class), (double)route->by_class[class]);
    return true;
}

static void metrics_lua_set_routes(lua_State *L, struct metrics *m)
{
    uint32_t count = metrics_route_count(m);
    int n = 0;
    lua_newtable(L);
    for (uint32_t i = 0; i < count; i++) {
        struct metrics_route_sum route = metrics_read_route(m, i);
        if (metrics_lua_push_route(L, &route)) lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, "routes");
}

// metrics() → everything that is counted, in one table
static int metrics_lua_read(lua_State *L)
{
    const struct server *s = vm_of(L)->server;
    if (!s) return luaL_error(L, "photon.metrics: there is no server here");
    lua_newtable(L);
    metrics_lua_set_counters(L, s);
    metrics_lua_set_gauges(L, s);
    if (s->metrics) {
        metrics_lua_set_totals(L, s->metrics);
        metrics_lua_set_routes(L, s->metrics);
    }
    return 1;
}

void metrics_lua_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {{"metrics", metrics_lua_read}, {NULL, NULL}};
    vm_register(L, vm, functions);
}

#include <stdio.h>
#include "base/buf.h"
#include "cmd.h"
#include "text/json.h"

static const char *routes_kind(const struct route *route)
{
    switch (route->kind) {
    case ROUTE_FIXED: return "static";
    case ROUTE_LUA: return "lua";
    case ROUTE_STREAM: return "stream";
    case ROUTE_METRICS: return "metrics";
    case ROUTE_HEALTH: return "health";
    case ROUTE_CHANNEL: return "channel";
    }
    return "?";
}

static bool routes_enters_lua(const struct route *route)
{
    return route->kind == ROUTE_LUA || route->kind == ROUTE_STREAM ||
           (route->kind == ROUTE_CHANNEL && !route->target);
}

static bool routes_add_text(struct buf *b, const char *name, struct slice value)
{
    if (!buf_append_format(b, "\"%s\":", name)) return false;
    enum json_result result = json_write_string(b, value);
    if (result == JSON_BAD_UTF8) return buf_append_slice(b, SLICE("null,"));
    return result == JSON_OK && buf_append_slice(b, SLICE(","));
}

static bool routes_write_json(struct buf *b, const struct router *r)
{
    bool ok = buf_append_slice(b, SLICE("["));
    for (unsigned i = 0; ok && i < router_count(r); i++) {
        const struct route *route = router_at(r, i);
        ok =
            buf_append_slice(b, i ? SLICE(",\n {") : SLICE("{")) &&
            routes_add_text(b, "method", route->method) &&
            routes_add_text(b, "pattern", route->pattern) &&
            routes_add_text(b, "kind", slice_of_text(routes_kind(route))) &&
            routes_add_text(b, "place", route->place) &&
            buf_append_format(b, "\"enters_lua\":%s}", routes_enters_lua(route) ? "true" : "false");
    }
    return ok && buf_append_slice(b, SLICE("]\n"));
}

static int routes_widest(int widest, struct slice text)
{
    return (int)text.len > widest ? (int)text.len : widest;
}

static bool routes_write_text(struct buf *b, const struct router *r)
{
    int method = 6, pattern = 7;
    for (unsigned i = 0; i < router_count(r); i++) {
        method = routes_widest(method, router_at(r, i)->method);
        pattern = routes_widest(pattern, router_at(r, i)->pattern);
    }
    bool ok = buf_append_format(b, "%-*s  %-*s  %-7s  %-3s  %s\n", method, "METHOD", pattern,
                                "PATTERN", "KIND", "LUA", "PLACE");
    for (unsigned i = 0; ok && i < router_count(r); i++) {
        const struct route *route = router_at(r, i);
        ok = buf_append_format(b, "%-*.*s  %-*.*s  %-7s  %-3s  %.*s\n", method,
                               (int)route->method.len, route->method.ptr, pattern,
                               (int)route->pattern.len, route->pattern.ptr, routes_kind(route),
                               routes_enters_lua(route) ? "yes" : "no", (int)route->place.len,
                               route->place.ptr);
    }
    return ok;
}

static int routes_run(int argc, char **argv)
{
    struct cmd_args args = {.takes_json = true};
    struct buf out = {0};
    if (!cmd_read(&args, &cmd_routes, argc, argv)) return args.code;
    struct generation *g = cmd_load(&args.config);
    if (!g) return CMD_FAILED;
    bool is_written = args.wants_json ? routes_write_json(&out, app_routes(g))
                                      : routes_write_text(&out, app_routes(g));
    if (is_written) fwrite(out.ptr, 1, out.len, stdout);
    buf_reset(&out);
    cmd_unload(g);
    return is_written ? CMD_OK : cmd_fail(CMD_FAILED, "not enough memory");
}

const struct command cmd_routes = {
    .name = "routes",
    .summary = "list an app's routes",
    .help =
        "usage: photon routes [APP] [--json]\n"
        "\n"
        "Method, pattern, kind, whether a request enters Lua, and where the route is registered.\n"
        "Routes that do not enter Lua are served by C alone.\n",
    .run = routes_run,
    .runs_lua = true,
};

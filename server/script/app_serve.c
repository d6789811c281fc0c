// What happens to each exchange: it is routed, then answered by C or handed to Lua.
#include "base/log.h"
#include "script/app_private.h"
#include "script/channel.h"
#include "script/request.h"
#include "script/task.h"
#include "serve/fixed.h"

static void app_log_access(const struct exchange *x)
{
    char ip[46], id[EXCHANGE_ID];
    exchange_id(x, id);
    struct log_access entry = {
        .method = x->request.method_name,
        .target = x->request.target,
        .ip = slice_of(ip, x->peer ? conn_peer_text(x->peer, ip) : 0),
        .id = slice_of(id, EXCHANGE_ID),
        .status = x->status,
        .bytes = x->bytes_out,
        .micros = (uv_hrtime() - x->started) / 1000,
    };
    log_write_access(&entry);
}

static void app_note_end(struct app_host *host, uint32_t number, struct exchange *x)
{
    struct server *server = host->server;
    counters_add(&host->counters->requests, 1);
    if (server->metrics) metrics_count(server->metrics, host->worker, number, x);
    if (server->config->logs_access) app_log_access(x);
    if (x->started) app_note_memory(host);
}

static uint32_t app_number_of_route(const struct exchange *x)
{
    const struct app_part *part = x->generation;
    return x->route ? part->generation->numbers[x->route->index] : 0;
}

static void app_on_release(struct exchange *x)
{
    struct app_part *part = x->generation;
    part->busy--;
    app_note_end(part->host, app_number_of_route(x), x);
}

// What remains to be known of an exchange that outlives its generation; in its arena.
struct app_left {
    struct app_host *host;
    uint32_t number;
};

static void app_on_release_left(struct exchange *x)
{
    struct app_left *left = x->generation;
    app_note_end(left->host, left->number, x);
}

bool app_let_go(struct exchange *x)
{
    struct app_part *part = x->generation;
    struct app_left *left = arena_alloc(&x->arena, sizeof *left);
    if (!left) return false;
    *left = (struct app_left){part->host, app_number_of_route(x)};
    x->generation = left;
    x->on_release = app_on_release_left;
    x->route = NULL;
    part->busy--;
    return true;
}

static void app_serve_allow(struct exchange *x, int status, struct slice allow)
{
    struct header item = {SLICE("allow"), allow};
    struct headers headers = {&item, 1, 1};
    if (status != 204) {
        exchange_error(x, status, NULL, &headers);
        return;
    }
    struct reply reply = {.status = 204, .headers = headers};
    exchange_reply(x, &reply, (struct slice){0});
}

static struct slice app_allow(struct exchange *x, const struct router *r, struct slice path)
{
    enum { ROOM = 512 };
    char *text = arena_alloc(&x->arena, ROOM);
    return slice_of(text, text ? router_allow(r, path, &x->arena, text, ROOM) : 0);
}

// No route: 404, 405, or the automatic answer to OPTIONS; by the app's fallback when it has one.
static void app_serve_miss(struct app_part *part, struct exchange *x, int status)
{
    struct slice allow = {0};
    if (status == 405) {
        allow = app_allow(x, part->generation->router, x->request.path);
        if (x->request.method == METHOD_OPTIONS) status = 204;
    }
    if (part->has_fallback) {
        if (exchange_hold(x))
            task_serve(part->vm, x, part->base, status, allow);
        else
            exchange_error(x, 503, NULL, NULL);
    } else if (allow.len) {
        app_serve_allow(x, status, allow);
    } else {
        exchange_error(x, status, status == 404 ? "there is nothing at this path" : NULL, NULL);
    }
}

// Parameters point into the read buffer or into the arena; the former move with the request.
static bool app_hold_params(struct exchange *x, const struct router_match *m)
{
    struct slice old = x->request.path;
    if (!exchange_hold(x)) return false;
    if (m->param_count == 0) return true;
    x->params = arena_alloc(&x->arena, m->param_count * sizeof *x->params);
    if (!x->params) return false;
    for (unsigned i = 0; i < m->param_count; i++) {
        struct slice p = m->params[i];
        bool is_borrowed = p.ptr >= old.ptr && p.ptr <= old.ptr + old.len;
        if (is_borrowed) p.ptr = x->request.path.ptr + (p.ptr - old.ptr);
        x->params[i] = p;
    }
    return true;
}

static void app_serve_lua(struct app_part *part, struct exchange *x, const struct router_match *m)
{
    if (m->route->max_body) x->max_body = m->route->max_body;
    if (app_hold_params(x, m)) {
        task_serve(part->vm, x, part->base + 1 + m->route->index, 0, (struct slice){0});
    } else {
        exchange_error(x, 503, NULL, NULL);
    }
}

// Reading the clock twice would cost a static reply a tenth of its time; it is answered at once and
// counts as the fastest.
static void app_note_start(struct exchange *x)
{
    x->started = uv_hrtime();
}

// By C alone. It lives on across reloads, so it is let go first; what is logged at its end must
// outlive the read buffer.
static void app_serve_channel(struct app_part *part, struct exchange *x,
                              const struct router_match *m)
{
    const struct channel_route *target = m->route->target;
    bool is_held = !part->host->server->config->logs_access || exchange_hold(x);
    if (!is_held || !app_let_go(x)) {
        exchange_error(x, 503, NULL, NULL);
        return;
    }
    if (!x->is_head_request && !request_admit_ip(part->vm, x)) return;
    channel_route_serve(target, part->host->channels, x);
}

static void app_serve_found(struct app_part *part, struct exchange *x, const struct router_match *m)
{
    x->route = m->route;
    if (m->route->kind != ROUTE_FIXED) app_note_start(x);
    switch (m->route->kind) {
    case ROUTE_FIXED: fixed_serve(m->route->target, x); break;
    case ROUTE_METRICS: server_serve_metrics(part->host->server, x); break;
    case ROUTE_HEALTH: server_serve_health(part->host->server, x); break;
    case ROUTE_LUA:
    case ROUTE_STREAM: app_serve_lua(part, x, m); break;
    case ROUTE_CHANNEL:
        if (m->route->target)
            app_serve_channel(part, x, m);
        else
            app_serve_lua(part, x, m);
        break;
    }
}

// OPTIONS * asks about the server as a whole (RFC 9110 9.3.7).
static bool app_is_about_server(const struct exchange *x)
{
    return slice_equals(x->request.path, SLICE("*"));
}

void app_serve(struct handler *self, struct exchange *x)
{
    struct app_host *host = list_entry(self, struct app_host, handler);
    struct app_part *part = host->current;
    struct router_match m;
    x->generation = part;
    x->on_release = app_on_release;
    x->is_draining = atomic_load_explicit(&host->server->is_draining, memory_order_relaxed);
    part->busy++;
    if (host->server->config->logs_access) app_note_start(x);
    if (!part->vm) {
        exchange_error(x, 503, "the app is being loaded again; try again", NULL);
        return;
    }
    if (app_is_about_server(x)) {
        app_serve_allow(x, 204, SLICE("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        return;
    }
    switch (router_match(part->generation->router, x->request.method, x->request.method_name,
                         x->request.path, &x->arena, &m)) {
    case ROUTER_FOUND: app_serve_found(part, x, &m); break;
    case ROUTER_NOT_FOUND: app_serve_miss(part, x, 404); break;
    case ROUTER_OTHER_METHOD: app_serve_miss(part, x, 405); break;
    case ROUTER_BAD_PATH:
        x->wants_close = true; // a peer that sends such paths is no browser
        exchange_error(x, 400, "the path has a malformed percent escape", NULL);
        break;
    case ROUTER_NO_MEMORY: exchange_error(x, 503, NULL, NULL); break;
    }
}

#include "serve/router_tree.h"

#include <assert.h>
#include "base/mem.h"

struct router *router_new(void)
{
    struct router *r = mem_zalloc(sizeof(*r));

    if (!r) return NULL;
    if (router_tree_init(r)) return r;
    router_free(r);
    return NULL;
}

void router_free(struct router *r)
{
    if (!r) return;
    router_tree_reset(r);
    for (unsigned i = 0; i < ROUTER_CHUNKS; i++) mem_free(r->routes[i]);
    mem_free(r->others);
    arena_reset(&r->arena);
    mem_free(r);
}

static int order_of(struct slice a, struct slice b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);

    return order ? order : (a.len > b.len) - (a.len < b.len);
}

// The root of a method that has no number, made when it is not there. By name, so that the Allow
// list does not depend on the order of registration.
static uint32_t other_root(struct router *r, struct slice name)
{
    struct router_other other;
    size_t at = 0;

    while (at < r->other_count && order_of(r->others[at].name, name) < 0) at++;
    if (at < r->other_count && slice_equals(r->others[at].name, name)) return r->others[at].root;
    if (!router_tree_grow((void **)&r->others, &r->other_cap, r->other_count + 1,
                          sizeof(*r->others)))
        return 0;
    other.name = arena_copy(&r->arena, name);
    if (!other.name.ptr || !(other.root = router_tree_root(r))) return 0;
    memmove(r->others + at + 1, r->others + at, (r->other_count - at) * sizeof(other));
    r->others[at] = other;
    r->other_count++;
    return other.root;
}

static bool is_any(struct slice method)
{
    return slice_equals(method, SLICE("*"));
}

static uint32_t method_root(struct router *r, struct slice name)
{
    enum method m = message_method(name);
    uint32_t *root;

    if (m == METHOD_OTHER && !is_any(name)) return other_root(r, name);
    root = &r->roots[m == METHOD_OTHER ? ROUTER_ANY : m];
    if (!*root) *root = router_tree_root(r);
    return *root;
}

static enum router_node_kind node_kind(enum router_segment_kind kind)
{
    static const enum router_node_kind kinds[] = {[ROUTER_LITERAL] = NODE_LITERAL,
                                                  [ROUTER_PREFIX] = NODE_PREFIX,
                                                  [ROUTER_BARE] = NODE_BARE,
                                                  [ROUTER_REST] = NODE_REST};

    return kinds[kind];
}

// The node in which the pattern ends, made with those before it where they are missing.
static uint32_t node_make(struct router *r, struct slice method, struct slice pattern)
{
    uint32_t node = method_root(r, method);
    struct router_segment s;

    if (node && router_pattern_count(pattern) == 0)
        return router_tree_child(r, node, NODE_WHOLE, pattern);
    for (size_t at = 0; node && router_pattern_next(pattern, &at, &s);)
        node = router_tree_child(r, node, node_kind(s.kind), s.literal);
    return node;
}

// The same node when it is there, else 0.
static uint32_t node_find(const struct router *r, struct slice method, struct slice pattern)
{
    uint32_t node = is_any(method) ? r->roots[ROUTER_ANY]
                                   : router_tree_root_of(r, message_method(method), method);
    struct router_segment s;

    if (node && router_pattern_count(pattern) == 0)
        return router_tree_peek(r, node, NODE_WHOLE, pattern);
    for (size_t at = 0; node && router_pattern_next(pattern, &at, &s);)
        node = router_tree_peek(r, node, node_kind(s.kind), s.literal);
    return node;
}

static bool name_params(struct router *r, struct route *route)
{
    unsigned count = router_pattern_count(route->pattern), i = 0;
    struct router_segment s;

    route->param_count = count;
    route->param_names = NULL;
    if (!count) return true;
    route->param_names = arena_alloc(&r->arena, count * sizeof(*route->param_names));
    if (!route->param_names) return false;
    for (size_t at = 0; router_pattern_next(route->pattern, &at, &s);)
        if (s.kind != ROUTER_LITERAL) route->param_names[i++] = s.name;
    return true;
}

// Where the next route will stand; NULL when there is no memory.
static struct route *route_room(struct router *r)
{
    size_t at, size;
    unsigned chunk;

    if (r->route_count > UINT32_MAX / 2) return NULL;
    chunk = router_chunk_of((uint32_t)r->route_count, &at);
    size = ((size_t)ROUTER_FIRST_CHUNK << chunk) * sizeof(**r->routes);
    if (!r->routes[chunk]) r->routes[chunk] = mem_alloc(size);
    return r->routes[chunk] ? r->routes[chunk] + at : NULL;
}

// A copy that lives as long as the table.
static struct route *route_copy(struct router *r, const struct route *from)
{
    struct route *to = route_room(r);

    if (!to) return NULL;
    *to = *from;
    to->method = arena_copy(&r->arena, from->method);
    to->pattern = arena_copy(&r->arena, from->pattern);
    to->place = arena_copy(&r->arena, from->place);
    if (!to->method.ptr || !to->pattern.ptr || !to->place.ptr || !name_params(r, to)) return NULL;
    to->index = (uint32_t)r->route_count++;
    return to;
}

static void refuse_duplicate(const struct route *route, const struct route *first, char *error,
                             size_t size)
{
    struct slice p = first->pattern, place = first->place;
    int shown = p.len > 200 ? 200 : (int)p.len,
        shown_place = place.len > 200 ? 200 : (int)place.len;

    router_pattern_refuse(route, error, size,
                          "this path is taken by %.*s%s%s%.*s%s; remove one of the two, or change "
                          "its path or method",
                          shown, p.ptr, p.len > 200 ? "..." : "", place.len ? " (" : "",
                          shown_place, place.ptr, place.len ? ")" : "");
}

struct route *router_add(struct router *r, const struct route *route, char *error, size_t size)
{
    struct route *copy;
    uint32_t node;

    assert(!r->is_sealed);
    if (!router_pattern_check(route, error, size)) return NULL;
    node = node_make(r, route->method, route->pattern);
    if (node && router_node_at(r, node)->route) {
        refuse_duplicate(route, router_node_route(r, node), error, size);
        return NULL;
    }
    copy = node ? route_copy(r, route) : NULL;
    if (!copy) {
        router_pattern_refuse(route, error, size, "out of memory");
        return NULL;
    }
    router_node_at(r, node)->route = (uint32_t)r->route_count;
    return copy;
}

bool router_seal(struct router *r)
{
    if (!r->is_sealed) r->is_sealed = router_tree_seal(r);
    return r->is_sealed;
}

unsigned router_count(const struct router *r)
{
    return (unsigned)r->route_count;
}

const struct route *router_at(const struct router *r, unsigned index)
{
    return index < r->route_count ? router_route_at(r, index) : NULL;
}

const struct route *router_find(const struct router *r, struct slice method, struct slice pattern)
{
    const struct route *route;
    uint32_t node;

    if (!router_pattern_check(&(struct route){.method = method, .pattern = pattern}, NULL, 0))
        return NULL;
    node = node_find(r, method, pattern);
    route = node ? router_node_route(r, node) : NULL;
    return route && slice_equals(route->pattern, pattern) ? route : NULL;
}

// The input is lines: patterns ("GET /a/:b", or a pattern alone for GET), an empty line, then paths
// asked of a sealed table, of the same before it was sealed, and of one filled the other way round.
// All must agree, and say no more than the route promises.
#include <assert.h>
#include "serve/router_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PATTERNS = 64 };

struct tables {
    struct router *sealed, *unsealed, *reversed;
};

static bool next_line(struct slice *rest, struct slice *line)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;

    if (!rest->len) return false;
    *line = slice_of(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
    *rest = slice_from(*rest, end ? line->len + 1 : line->len);
    return true;
}

static struct route route_of(struct slice line)
{
    const char *space = line.len ? memchr(line.ptr, ' ', line.len) : NULL;
    struct route route = {.method = SLICE("GET"), .pattern = line, .place = SLICE("fuzz:1")};

    if (!space || line.ptr[0] == '/') return route;
    route.method = slice_of(line.ptr, (size_t)(space - line.ptr));
    route.pattern = slice_from(line, route.method.len + 1);
    return route;
}

static bool add(struct router *r, const struct route *route)
{
    char error[512] = "";
    const struct route *added = router_add(r, route, error, sizeof(error));

    assert(added ? !error[0] : strlen(error) > 10);
    for (const char *c = error; *c; c++) assert((unsigned char)*c >= 0x20 && *c != 0x7f);
    if (!added) return false;
    assert(router_find(r, route->method, route->pattern) == added);
    assert(router_at(r, added->index) == added);
    return true;
}

static enum method method_of(const struct tables *t, unsigned which, struct slice *name)
{
    *name = router_count(t->sealed) ? router_at(t->sealed, which % router_count(t->sealed))->method
                                    : SLICE("GET");
    return message_method(*name);
}

static void check_match(const struct router_match *m, struct slice path)
{
    size_t sum = 0;

    assert(m->param_count == m->route->param_count && m->param_count <= ROUTER_MAX_PARAMS);
    for (unsigned i = 0; i < m->param_count; i++) {
        sum += m->params[i].len;
        assert(m->params[i].len || i == m->param_count - 1);
        for (size_t k = 0; k < m->params[i].len; k++)
            (void)*(volatile const char *)(m->params[i].ptr + k);
    }
    assert(sum < path.len);
}

static void check_same(const struct router_match *a, const struct router_match *b)
{
    assert(!a->route == !b->route && a->param_count == b->param_count);
    if (a->route) assert(slice_equals(a->route->pattern, b->route->pattern));
    if (a->route) assert(slice_equals(a->route->method, b->route->method));
    for (unsigned i = 0; i < a->param_count; i++) assert(slice_equals(a->params[i], b->params[i]));
}

static void ask(const struct tables *t, unsigned which, struct slice path)
{
    struct router_match a, b, c;
    struct arena arena = {0};
    struct slice name;
    enum method method = method_of(t, which, &name);
    enum router_result result = router_match(t->sealed, method, name, path, &arena, &a);
    char allow[512], reversed_allow[512];
    size_t len = router_allow(t->sealed, path, &arena, allow, sizeof(allow));

    assert(router_match(t->unsealed, method, name, path, &arena, &b) == result);
    assert(router_match(t->reversed, method, name, path, &arena, &c) == result);
    check_same(&a, &b);
    check_same(&a, &c);
    if (result == ROUTER_FOUND) check_match(&a, path);
    assert((len > 0) == (result == ROUTER_FOUND || result == ROUTER_OTHER_METHOD));
    assert(router_allow(t->reversed, path, &arena, reversed_allow, sizeof(reversed_allow)) == len);
    assert(memcmp(allow, reversed_allow, len) == 0);
    arena_reset(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = {(const char *)data, size}, line;
    struct tables t = {router_new(), router_new(), router_new()};
    struct route added[MOST_PATTERNS];
    unsigned count = 0, asked = 0;

    while (count < MOST_PATTERNS && next_line(&rest, &line) && line.len) {
        added[count] = route_of(line);
        if (!add(t.sealed, &added[count])) continue;
        add(t.unsealed, &added[count]);
        count++;
    }
    for (unsigned i = count; i-- > 0;) assert(add(t.reversed, &added[i]));
    assert(router_seal(t.sealed) && router_seal(t.reversed));
    while (asked < MOST_PATTERNS && next_line(&rest, &line)) ask(&t, asked++, line);
    router_free(t.sealed);
    router_free(t.unsealed);
    router_free(t.reversed);
    return 0;
}

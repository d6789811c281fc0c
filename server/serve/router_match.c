#include "serve/router_tree.h"

#include "text/url.h"

// What is known about a path before any tree is asked.
struct lookup {
    struct slice path;
    uint64_t hash; // of the whole path
    bool is_escaped;
    unsigned steps; // nodes and prefixes that were looked at
};

struct segment {
    struct slice raw;
    uint64_t hash;
};

// The order in which the children of a node are tried: literals, prefixes by length, any segment.
// Returning to a node goes on below the rank of the child that failed.
enum { RANK_FIRST = UINT16_MAX + 1, RANK_LITERAL = UINT16_MAX, RANK_BARE = 0 };

static unsigned rank_of(const struct router_node *n)
{
    return n->kind == NODE_LITERAL  ? RANK_LITERAL
           : n->kind == NODE_PREFIX ? n->label_len
                                    : RANK_BARE;
}

// One pass hashes the path and looks for escapes. False when an escape is malformed.
static bool lookup_init(struct lookup *q, struct slice path)
{
    const char *p = path.ptr;
    size_t n = path.len;
    uint64_t h = 0, tail, found = 0;

    for (; n >= 8; p += 8, n -= 8) {
        uint64_t w = router_word(p);
        found |= router_word_find(w, '%');
        h = router_hash_step(h, w);
    }
    tail = router_word_tail(p, n);
    found |= router_word_find(tail, '%');
    *q = (struct lookup){path, router_hash_end(h, tail, path.len), found != 0, 0};
    if (!found) return true;
    if (!url_is_escaped_well(path)) return false;
    q->hash = router_hash_escaped(path);
    return true;
}

// The segment that begins at `p`, found and hashed in one pass.
static inline struct segment segment_scan(const char *p, const char *end)
{
    const char *start = p;
    uint64_t h = 0, w, slash;
    size_t n;

    for (; end - p >= 8; p += 8) {
        w = router_word(p);
        slash = router_word_find(w, '/');
        if (slash) goto last;
        h = router_hash_step(h, w);
    }
    w = router_word_tail(p, (size_t)(end - p));
    slash = router_word_find(w, '/');
    if (!slash) {
        n = (size_t)(end - start);
        return (struct segment){{start, n}, router_hash_end(h, w, n)};
    }
last:
    n = (size_t)__builtin_ctzll(slash) >> 3;
    w &= (UINT64_C(1) << (8 * n)) - 1;
    n += (size_t)(p - start);
    return (struct segment){{start, n}, router_hash_end(h, w, n)};
}

static bool has_escape(struct slice s)
{
    return s.len && memchr(s.ptr, '%', s.len);
}

// The best child of rank below `rank` for the segment, 0 when there is none; `taken` is what its
// label takes of the segment.
static uint32_t choose(const struct router *r, struct lookup *q, uint32_t index, struct segment s,
                       unsigned rank, struct slice *taken)
{
    const struct router_node *n = router_node_at(r, index);
    bool is_escaped = q->is_escaped && has_escape(s.raw);
    uint32_t found;

    *taken = s.raw;
    if (rank == RANK_FIRST && n->has >> NODE_LITERAL & 1) {
        if (is_escaped) s.hash = router_hash_escaped(s.raw);
        found = router_tree_find_child(r, index, NODE_LITERAL, s.hash, s.raw, is_escaped);
        if (found) return found;
    }
    for (uint32_t l = router_tree_find_only(r, index, NODE_LENGTH); l;
         l = router_node_at(r, l)->child) {
        size_t len = router_node_at(r, l)->length;
        if (len >= rank || len >= s.raw.len) continue;
        q->steps++;
        *taken = is_escaped ? router_prefix_escaped(s.raw, len) : slice_of(s.raw.ptr, len);
        if (taken->len == s.raw.len) continue;
        s.hash = is_escaped ? router_hash_escaped(*taken) : router_hash(taken->ptr, len);
        found = router_tree_find_child(r, index, NODE_PREFIX, s.hash, *taken, is_escaped);
        if (found) return found;
    }
    taken->len = 0;
    return rank > RANK_BARE && s.raw.len ? router_tree_find_only(r, index, NODE_BARE) : 0;
}

// The pattern without parameters that is the path, 0 when there is none. An escaped path is longer
// than its label.
static uint32_t find_whole(const struct router *r, uint32_t root, struct lookup *q)
{
    if (!q->is_escaped && !(router_node_at(r, root)->whole_lengths >> q->path.len % 32 & 1))
        return 0;
    q->steps++;
    return router_tree_find_child(r, root, NODE_WHOLE, q->hash, q->path, q->is_escaped);
}

// The route of one tree. Needs no memory for going back: the parent is known, and the segment that
// a node took lies between the two slashes before it.
static const struct route *walk(const struct router *r, uint32_t root, struct lookup *q,
                                struct router_match *m)
{
    const char *at = q->path.ptr, *end = at + q->path.len;
    uint32_t index = root, child;
    unsigned rank = RANK_FIRST, count = 0;
    struct slice taken;

    m->param_count = 0;
    child = find_whole(r, root, q);
    if (child) return router_node_route(r, child);
    for (;;) {
        const struct router_node *n = router_node_at(r, index);
        q->steps++;
        if (at < end) {
            struct segment s = segment_scan(at + 1, end);
            child = choose(r, q, index, s, rank, &taken);
            if (child) {
                if (router_node_at(r, child)->kind != NODE_LITERAL)
                    m->params[count++] = slice_from(s.raw, taken.len);
                at = s.raw.ptr + s.raw.len;
                index = child;
                rank = RANK_FIRST;
                continue;
            }
            child = router_tree_find_only(r, index, NODE_REST);
            if (child && router_node_at(r, child)->route) {
                m->params[count++] = slice_of(at + 1, (size_t)(end - at - 1));
                m->param_count = count;
                return router_node_route(r, child);
            }
        } else if (n->route) {
            m->param_count = count;
            return router_node_route(r, index);
        }
        if (index == root) return NULL;
        count -= n->kind != NODE_LITERAL;
        rank = rank_of(n);
        index = n->parent;
        while (*--at != '/') continue;
    }
}

static const struct route *walk_if(const struct router *r, uint32_t root, struct lookup *q,
                                   struct router_match *m)
{
    return root ? walk(r, root, q, m) : NULL;
}

static bool decode_params(struct router_match *m, struct arena *a)
{
    for (unsigned i = 0; i < m->param_count; i++) {
        struct slice raw = m->params[i];
        char *to;
        if (!has_escape(raw)) continue;
        to = arena_alloc(a, raw.len);
        if (!to) return false;
        m->params[i] = slice_of(to, (size_t)url_decode(to, raw, false));
    }
    return true;
}

static bool is_known(const struct router *r, struct lookup *q, struct router_match *m)
{
    for (unsigned i = 0; i < ROUTER_ROOTS; i++)
        if (walk_if(r, r->roots[i], q, m)) return true;
    for (size_t i = 0; i < r->other_count; i++)
        if (walk(r, r->others[i].root, q, m)) return true;
    return false;
}

enum router_result router_match(const struct router *r, enum method method,
                                struct slice method_name, struct slice path, struct arena *a,
                                struct router_match *m)
{
    struct lookup q;
    const struct route *route;
    bool known;

    m->route = NULL;
    m->param_count = 0;
    if (!lookup_init(&q, path)) return ROUTER_BAD_PATH;
    if (!path.len || path.ptr[0] != '/') return ROUTER_NOT_FOUND;
    route = walk_if(r, router_tree_root_of(r, method, method_name), &q, m);
    if (!route && method == METHOD_HEAD) route = walk_if(r, r->roots[METHOD_GET], &q, m);
    if (!route) route = walk_if(r, r->roots[ROUTER_ANY], &q, m);
    if (!route) {
        known = is_known(r, &q, m);
        m->param_count = 0;
        return known ? ROUTER_OTHER_METHOD : ROUTER_NOT_FOUND;
    }
    m->route = route;
    return !q.is_escaped || decode_params(m, a) ? ROUTER_FOUND : ROUTER_NO_MEMORY;
}

// Names that do not fit are left out whole.
static size_t list_add(char *to, size_t size, size_t len, struct slice name)
{
    size_t comma = len ? 2 : 0;

    if (len + comma + name.len > size) return len;
    memcpy(to + len, ", ", comma);
    memcpy(to + len + comma, name.ptr, name.len);
    return len + comma + name.len;
}

size_t router_allow(const struct router *r, struct slice path, struct arena *a, char *to,
                    size_t size)
{
    bool known[ROUTER_ROOTS] = {false};
    struct router_match m;
    struct lookup q;
    size_t len = 0;

    (void)a;
    if (!lookup_init(&q, path) || !path.len || path.ptr[0] != '/' || !is_known(r, &q, &m)) return 0;
    for (unsigned i = 0; i < ROUTER_ROOTS; i++) known[i] = walk_if(r, r->roots[i], &q, &m) != NULL;
    known[METHOD_HEAD] |= known[METHOD_GET];
    known[METHOD_OPTIONS] = true;
    for (unsigned i = 0; i < ROUTER_ANY; i++)
        if (known[i] || known[ROUTER_ANY])
            len = list_add(to, size, len, message_method_name((enum method)i));
    for (size_t i = 0; i < r->other_count; i++)
        if (walk(r, r->others[i].root, &q, &m)) len = list_add(to, size, len, r->others[i].name);
    return len;
}

unsigned router_tree_steps(const struct router *r, struct slice method, struct slice path)
{
    struct router_match m;
    struct lookup q;
    uint32_t root = router_tree_root_of(r, message_method(method), method);

    if (!lookup_init(&q, path) || !path.len || path.ptr[0] != '/') return 0;
    walk_if(r, root, &q, &m);
    return q.steps;
}

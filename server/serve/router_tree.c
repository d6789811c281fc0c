#include "serve/router_tree.h"

#include <assert.h>
#include "base/mem.h"
#include "text/url.h"

enum { CACHE_LINE = 64, FIRST_LINES = 8 };

_Static_assert(2 * sizeof(struct router_line) == CACHE_LINE, "two lines are one cache line");
_Static_assert(_Alignof(struct router_node) == ROUTER_CELL, "a node may begin in any cell");

static int hex_value(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

// The byte at *at, which moves on; *is_escape tells how it was written.
static unsigned char next_byte(struct slice s, size_t *at, bool *is_escape)
{
    const char *p = s.ptr + *at;

    *is_escape = *p == '%';
    *at += *is_escape ? 3 : 1;
    if (!*is_escape) return (unsigned char)*p;
    return (unsigned char)(hex_value(p[1]) << 4 | hex_value(p[2]));
}

uint64_t router_hash_escaped(struct slice s)
{
    uint64_t h = 0, word = 0;
    size_t at = 0, len = 0;
    bool is_escape;

    while (at < s.len) {
        word |= (uint64_t)next_byte(s, &at, &is_escape) << (8 * (len % 8));
        if (++len % 8) continue;
        h = router_hash_step(h, word);
        word = 0;
    }
    return router_hash_end(h, word, len);
}

struct slice router_prefix_escaped(struct slice s, size_t len)
{
    size_t at = 0;

    while (len-- && at < s.len) at += s.ptr[at] == '%' ? 3 : 1;
    return slice_of(s.ptr, at);
}

bool router_label_equals_escaped(const char *label, size_t len, struct slice s)
{
    size_t at = 0;
    bool is_escape;

    for (size_t i = 0; i < len; i++) {
        if (at == s.len || next_byte(s, &at, &is_escape) != (unsigned char)label[i]) return false;
        if (is_escape && label[i] == '/') return false;
    }
    return at == s.len;
}

bool router_tree_grow(void **items, size_t *cap, size_t count, size_t size)
{
    size_t more = *cap ? *cap : 16;
    void *grown;

    if (count <= *cap) return true;
    while (more < count) more *= 2;
    if (more > UINT32_MAX) return false; // numbers have 32 bits
    grown = mem_realloc(*items, more * size);
    if (!grown) return false;
    *items = grown;
    *cap = more;
    return true;
}

static size_t node_cells(size_t label_len)
{
    return (offsetof(struct router_node, label) + label_len + ROUTER_CELL - 1) / ROUTER_CELL;
}

// `count` zeroed cache lines; *memory is what to free.
static void *lines_alloc(size_t count, void **memory)
{
    *memory = mem_zalloc((count + 1) * CACHE_LINE);
    if (!*memory) return NULL;
    return (void *)(((uintptr_t)*memory + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1));
}

static void table_put(struct router *r, uint32_t child_hash, uint32_t node)
{
    size_t at = child_hash & (r->line_count - 1);
    unsigned i = 0;

    while (r->lines[at].tags[ROUTER_LINE - 1]) at = (at + 1) & (r->line_count - 1);
    while (r->lines[at].tags[i]) i++;
    r->lines[at].tags[i] = router_tag(child_hash);
    r->lines[at].nodes[i] = node;
}

static void table_put_node(struct router *r, uint32_t node)
{
    const struct router_node *n = router_node_at(r, node);
    uint64_t hash = router_hash(n->label, n->label_len);

    table_put(r, router_child_hash(n->parent, (enum router_node_kind)n->kind, hash), node);
}

static bool is_in_table(const struct router *r, const struct router_node *n)
{
    return n->kind != NODE_ROOT && n->parent && router_node_at(r, n->parent)->child == ROUTER_MANY;
}

static bool table_resize(struct router *r, size_t count)
{
    void *memory;
    struct router_line *lines = lines_alloc((count + 1) / 2, &memory);

    if (!lines) return false;
    mem_free(r->lines_memory);
    r->lines = lines;
    r->lines_memory = memory;
    r->line_count = count;
    for (size_t i = 1; i < r->cell_count;) {
        const struct router_node *n = router_node_at(r, (uint32_t)i);
        if (is_in_table(r, n)) table_put_node(r, (uint32_t)i);
        i += node_cells(n->label_len);
    }
    return true;
}

// Room for a node and the length of its prefix, and for them and an only child in the table.
static bool reserve(struct router *r, size_t label_len)
{
    size_t cells = r->cell_count + node_cells(label_len) + node_cells(0);

    return router_tree_grow((void **)&r->cells, &r->cell_cap, cells, ROUTER_CELL) &&
           (2 * (r->child_count + 3) <= ROUTER_LINE * r->line_count ||
            table_resize(r, r->line_count * 2));
}

bool router_tree_init(struct router *r)
{
    r->cell_count = 1;
    return table_resize(r, FIRST_LINES) && reserve(r, 0);
}

void router_tree_reset(struct router *r)
{
    mem_free(r->cells);
    mem_free(r->lines_memory);
}

// For which there is room.
static uint32_t add_node(struct router *r, uint32_t parent, enum router_node_kind kind,
                         struct slice label)
{
    uint32_t node = (uint32_t)r->cell_count;
    struct router_node *n = router_node_at(r, node);
    long len;

    *n = (struct router_node){.parent = parent, .kind = (uint8_t)kind};
    len = url_decode(n->label, label, false);
    assert(len >= 0 && len <= ROUTER_MAX_PATTERN);
    n->label_len = (uint16_t)len;
    r->cell_count += node_cells((size_t)len);
    return node;
}

uint32_t router_tree_root(struct router *r)
{
    return reserve(r, 0) ? add_node(r, 0, NODE_ROOT, (struct slice){0}) : 0;
}

static void add_to_table(struct router *r, uint32_t node)
{
    table_put_node(r, node);
    r->child_count++;
}

static uint32_t link_child(struct router *r, uint32_t parent, enum router_node_kind kind,
                           struct slice label)
{
    uint32_t node = add_node(r, parent, kind, label);
    struct router_node *p = router_node_at(r, parent);
    uint32_t only = p->child;

    p->has |= (uint8_t)(1 << kind);
    p->child = only ? ROUTER_MANY : node;
    if (only && only != ROUTER_MANY) add_to_table(r, only);
    if (only) add_to_table(r, node);
    return node;
}

// Keeps the lengths sorted, longest first, each once. The first stays the child, so a longer one
// changes places with it.
static void add_length(struct router *r, uint32_t parent, uint32_t len)
{
    uint32_t at = router_tree_find_only(r, parent, NODE_LENGTH), more;
    struct router_node *n;

    if (!at) {
        at = link_child(r, parent, NODE_LENGTH, (struct slice){0});
        router_node_at(r, at)->length = len;
    }
    for (n = router_node_at(r, at); n->length > len && n->child;) n = router_node_at(r, n->child);
    if (n->length == len) return;
    more = add_node(r, 0, NODE_LENGTH, (struct slice){0});
    router_node_at(r, more)->child = n->child;
    router_node_at(r, more)->length = n->length < len ? n->length : len;
    if (n->length < len) n->length = len;
    n->child = more;
}

static uint32_t add_child(struct router *r, uint32_t parent, enum router_node_kind kind,
                          struct slice label)
{
    uint32_t node, len;

    if (!reserve(r, label.len)) return 0;
    node = link_child(r, parent, kind, label);
    len = router_node_at(r, node)->label_len;
    if (kind == NODE_PREFIX) add_length(r, parent, len);
    if (kind == NODE_WHOLE) router_node_at(r, parent)->whole_lengths |= UINT32_C(1) << len % 32;
    return node;
}

uint32_t router_tree_peek(const struct router *r, uint32_t parent, enum router_node_kind kind,
                          struct slice label)
{
    return router_tree_find_child(r, parent, kind, router_hash_escaped(label), label, true);
}

uint32_t router_tree_root_of(const struct router *r, enum method method, struct slice name)
{
    if (method != METHOD_OTHER) return r->roots[method];
    for (size_t i = 0; i < r->other_count; i++)
        if (slice_equals(r->others[i].name, name)) return r->others[i].root;
    return 0;
}

uint32_t router_tree_child(struct router *r, uint32_t parent, enum router_node_kind kind,
                           struct slice label)
{
    uint32_t found = router_tree_peek(r, parent, kind, label);

    return found ? found : add_child(r, parent, kind, label);
}

bool router_tree_seal(struct router *r)
{
    unsigned char *cells = mem_realloc(r->cells, r->cell_count * ROUTER_CELL);

    if (!cells) return false;
    r->cells = cells;
    r->cell_cap = r->cell_count;
    return true;
}

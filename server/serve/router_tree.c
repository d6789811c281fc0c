#include "serve/router_tree.h"

#include <assert.h>
#include "base/mem.h"
#include "text/url.h"

enum { CACHE_LINE = 64, FIRST_LINES = 8 };

_Static_assert(sizeof(struct router_node) == CACHE_LINE, "a node is one cache line");
_Static_assert(2 * sizeof(struct router_line) == CACHE_LINE, "and so are two lines");

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

bool router_tree_grow(void **items, size_t *cap, size_t count, size_t item)
{
    size_t more = *cap ? *cap * 2 : 16;
    void *grown;

    if (count < *cap) return true;
    if (more > UINT32_MAX) return false; // indexes have 32 bits
    grown = mem_realloc(*items, more * item);
    if (!grown) return false;
    *items = grown;
    *cap = more;
    return true;
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

static uint32_t node_hash(const struct router *r, const struct router_node *n)
{
    uint64_t hash = router_hash(router_node_label(r, n), n->label_len);

    return router_child_hash(n->parent, (enum router_node_kind)n->kind, hash);
}

static bool is_in_table(const struct router_node *n)
{
    return n->kind == NODE_WHOLE || n->kind == NODE_LITERAL || n->kind == NODE_PREFIX;
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
    for (size_t i = 1; i < r->node_count; i++)
        if (is_in_table(&r->nodes[i])) table_put(r, node_hash(r, &r->nodes[i]), (uint32_t)i);
    return true;
}

static bool reserve(struct router *r, size_t label_len)
{
    if (!router_tree_grow(&r->nodes_memory, &r->node_cap, r->node_count, sizeof(*r->nodes)))
        return false;
    r->nodes = r->nodes_memory;
    if (!router_tree_grow((void **)&r->lengths, &r->length_cap, r->length_count,
                          sizeof(*r->lengths)))
        return false;
    if (2 * (r->child_count + 1) > ROUTER_LINE * r->line_count &&
        !table_resize(r, r->line_count * 2))
        return false;
    return r->text.len + label_len <= UINT32_MAX && buf_reserve(&r->text, label_len + 1) != NULL;
}

bool router_tree_init(struct router *r)
{
    if (!table_resize(r, FIRST_LINES) || !reserve(r, 0)) return false;
    r->nodes[0] = (struct router_node){0};
    r->lengths[0] = (struct router_length){0};
    r->node_count = r->length_count = 1;
    return true;
}

void router_tree_reset(struct router *r)
{
    mem_free(r->nodes_memory);
    mem_free(r->lines_memory);
    mem_free(r->lengths);
    buf_reset(&r->text);
}

uint32_t router_tree_root(struct router *r)
{
    if (!reserve(r, 0)) return 0;
    r->nodes[r->node_count] = (struct router_node){.kind = NODE_ROOT};
    return (uint32_t)r->node_count++;
}

static void label_set(struct router *r, struct router_node *n, struct slice label)
{
    char *to = r->text.ptr + r->text.len;
    long len = url_decode(to, label, false);

    assert(len >= 0 && len <= ROUTER_MAX_PATTERN);
    n->label_len = (uint16_t)len;
    if (len <= ROUTER_NEAR_LABEL) {
        memcpy(n->near_label, to, (size_t)len);
    } else {
        n->far_label = (uint32_t)r->text.len;
        r->text.len += (size_t)len;
    }
}

// Keeps the lengths sorted, longest first, each once.
static void add_length(struct router *r, struct router_node *parent, uint32_t len)
{
    uint32_t *link = &parent->prefixes;

    while (*link && r->lengths[*link].len > len) link = &r->lengths[*link].next;
    if (*link && r->lengths[*link].len == len) return;
    r->lengths[r->length_count] = (struct router_length){len, *link};
    *link = (uint32_t)r->length_count++;
}

static uint32_t add_child(struct router *r, uint32_t parent, enum router_node_kind kind,
                          struct slice label)
{
    uint32_t index = (uint32_t)r->node_count;
    struct router_node *n, *p;

    if (!reserve(r, label.len)) return 0;
    n = &r->nodes[index];
    p = &r->nodes[parent];
    *n = (struct router_node){.parent = parent, .kind = (uint8_t)kind};
    label_set(r, n, label);
    r->node_count++;
    if (kind == NODE_BARE) {
        p->bare = index;
        return index;
    }
    if (kind == NODE_LITERAL) p->has_literals = true;
    if (kind == NODE_PREFIX) add_length(r, p, n->label_len);
    if (kind == NODE_WHOLE) p->whole_lengths |= UINT64_C(1) << n->label_len % 64;
    table_put(r, node_hash(r, n), index);
    r->child_count++;
    return index;
}

uint32_t router_tree_peek(const struct router *r, uint32_t parent, enum router_node_kind kind,
                          struct slice label)
{
    if (kind == NODE_BARE) return r->nodes[parent].bare;
    return router_tree_find(r, parent, kind, router_hash_escaped(label), label, true);
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
    void *memory;
    struct router_node *nodes = lines_alloc(r->node_count, &memory);

    if (!nodes) return false;
    memcpy(nodes, r->nodes, r->node_count * sizeof(*nodes));
    mem_free(r->nodes_memory);
    r->nodes_memory = memory;
    r->nodes = nodes;
    r->node_cap = r->node_count;
    return true;
}

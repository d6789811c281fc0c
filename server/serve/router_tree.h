// router_tree: how the router keeps its patterns. For the router only; what others may call is in
// router.h.
//
// One tree of segments for each method. A node stands for a number of segments that were matched;
// its children take one segment more: a literal, `prefix:name`, or `:name`, or all the rest. A
// pattern without parameters is one child of its root that takes the whole path, and is tried
// first: literals win in every segment. A node knows its child when there is but one; else they are
// found in one hash table for all nodes, so that a step costs the same for two and for ten
// thousand.
//
// In a large table a lookup's time is what it fetches from far memory. So a node is small, its
// label stands in it, and it stands behind the one that was made before it, mostly its parent: what
// one pattern adds lies together.
//
// A lookup cannot explode: a node is reached by one sequence of segments only, so even full
// backtracking visits each node once at most.
#ifndef PHOTON_SERVE_ROUTER_TREE_H
#define PHOTON_SERVE_ROUTER_TREE_H

#include <endian.h>
#include "base/buf.h"
#include "serve/router_pattern.h"

enum router_node_kind {
    NODE_ROOT,
    NODE_WHOLE,   // takes the whole path, slashes included
    NODE_LITERAL, // takes one segment
    NODE_PREFIX,  // takes a segment that begins with the label and is longer
    NODE_BARE,    // takes any segment that is not empty
    NODE_REST,    // takes what is left, which may be nothing
    NODE_LENGTH,  // no step: a length that prefixes of its parent have
};

// Nodes and routes go by number, 0 for none: a node's is where it begins in `cells`, a route's its
// index plus 1.
struct router_node {
    union {
        uint32_t parent;
        uint32_t whole_lengths; // of a root: bit `length % 32` for the labels of its whole children
    };
    union {
        uint32_t route;  // whose pattern ends here
        uint32_t length; // of a NODE_LENGTH; the longest comes first
    };
    uint32_t child; // the only one; ROUTER_MANY: in the table. Of a NODE_LENGTH: the next shorter
    uint16_t label_len;
    uint8_t kind;
    uint8_t has; // bit `kind` for the kinds of its children
    char label[];
};

enum { ROUTER_CELL = 4 };
#define ROUTER_MANY UINT32_MAX

// Half a cache line of the hash table: the tags side by side, so that all are compared at once. A
// child stands in the line of its hash, or in the next ones when that is full.
enum { ROUTER_LINE = 6 };

struct router_line {
    unsigned char tags[8]; // 0: free; the last two always are
    uint32_t nodes[ROUTER_LINE];
};

struct router_other {
    struct slice name;
    uint32_t root;
};

enum { ROUTER_ANY = METHOD_OTHER, ROUTER_ROOTS };
enum { ROUTER_FIRST_CHUNK = 16, ROUTER_CHUNKS = 28 };

struct router {
    struct arena arena;                  // the routes' texts
    struct route *routes[ROUTER_CHUNKS]; // of 16, 32, 64, … routes, which never move
    size_t route_count;
    unsigned char *cells; // the nodes; the first cell is never used
    size_t cell_count, cell_cap;
    struct router_line *lines; // a power of two, at most half full
    void *lines_memory;
    size_t line_count, child_count;
    uint32_t roots[ROUTER_ROOTS]; // by enum method, then those for any method; 0: no route
    struct router_other *others;  // methods without a number, by name
    size_t other_count, other_cap;
    bool is_sealed;
};

// Allocates what an empty tree needs. False when there is no memory.
bool router_tree_init(struct router *r);
void router_tree_reset(struct router *r);

// A new, empty root. 0 when there is no memory.
uint32_t router_tree_root(struct router *r);

// The child of `parent` of that kind and (escaped) label, made when it is not there. 0 when there
// is no memory; the tree then is as it was.
uint32_t router_tree_child(struct router *r, uint32_t parent, enum router_node_kind kind,
                           struct slice label);

// The same child when it is there, else 0.
uint32_t router_tree_peek(const struct router *r, uint32_t parent, enum router_node_kind kind,
                          struct slice label);

// The root of a method, by its number or, for METHOD_OTHER, by its name; 0 when it has no routes.
uint32_t router_tree_root_of(const struct router *r, enum method method, struct slice name);

// Room for `count` items of that size: `*items` may move. False when there is no memory.
bool router_tree_grow(void **items, size_t *cap, size_t count, size_t size);

// Gives back what growing took too much. False when there is no memory; the tree then is as it was.
bool router_tree_seal(struct router *r);

// How many nodes a lookup looks at; specs count with it.
unsigned router_tree_steps(const struct router *r, struct slice method, struct slice path);

// ---- hashing: eight bytes a step; the tail is a word filled with zeros

#define ROUTER_ONES  UINT64_C(0x0101010101010101)
#define ROUTER_HIGHS UINT64_C(0x8080808080808080)

static inline uint64_t router_word(const char *p)
{
    uint64_t w;
    memcpy(&w, p, sizeof(w));
    return le64toh(w);
}

// The word of n < 8 bytes; nothing behind them is read.
static inline uint64_t router_word_tail(const char *p, size_t n)
{
    const unsigned char *u = (const unsigned char *)p;
    uint32_t low, high;

    if (n >= 4) {
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        return (uint64_t)le32toh(low) | (uint64_t)le32toh(high) << (8 * (n - 4));
    }
    if (n == 0) return 0;
    return (uint64_t)u[0] | (uint64_t)u[n / 2] << (8 * (n / 2)) |
           (uint64_t)u[n - 1] << (8 * (n - 1));
}

// Not zero when a byte of `w` is `c`; its lowest bit then belongs to the first such byte, but a
// later byte may be marked that is not `c`.
static inline uint64_t router_word_find(uint64_t w, char c)
{
    uint64_t x = w ^ (ROUTER_ONES * (unsigned char)c);
    return (x - ROUTER_ONES) & ~x & ROUTER_HIGHS;
}

// The high bit of each byte of `w` that is `c`, and of no other.
static inline uint64_t router_word_find_all(uint64_t w, unsigned char c)
{
    uint64_t x = w ^ (ROUTER_ONES * c), low = ~ROUTER_HIGHS;
    return ~(((x & low) + low) | x | low);
}

static inline uint64_t router_hash_step(uint64_t h, uint64_t w)
{
    h = (h ^ w) * UINT64_C(0x9fb21c651e98df25);
    return h ^ h >> 32;
}

static inline uint64_t router_hash_end(uint64_t h, uint64_t tail, size_t len)
{
    return router_hash_step(h, tail ^ (uint64_t)len << 56 ^ len);
}

static inline uint64_t router_hash(const char *p, size_t len)
{
    uint64_t h = 0;
    size_t n = len;

    for (; n >= 8; p += 8, n -= 8) h = router_hash_step(h, router_word(p));
    return router_hash_end(h, router_word_tail(p, n), len);
}

// The hash of the bytes that `s` stands for; its escapes are known to be well formed.
uint64_t router_hash_escaped(struct slice s);

// The beginning of `s` that stands for `len` bytes; all of `s` when it stands for fewer.
struct slice router_prefix_escaped(struct slice s, size_t len);

// ---- finding

static inline struct router_node *router_node_at(const struct router *r, uint32_t node)
{
    return (struct router_node *)(r->cells + (size_t)node * ROUTER_CELL);
}

// Which chunk holds the route, and where; without a look into memory that would be far.
static inline unsigned router_chunk_of(uint32_t index, size_t *at)
{
    unsigned log = 31 - (unsigned)__builtin_clz(index + ROUTER_FIRST_CHUNK);

    *at = index + ROUTER_FIRST_CHUNK - ((size_t)1 << log);
    return log - 4;
}

static inline struct route *router_route_at(const struct router *r, uint32_t index)
{
    size_t at;
    unsigned chunk = router_chunk_of(index, &at);

    return r->routes[chunk] + at;
}

static inline struct route *router_node_route(const struct router *r, uint32_t node)
{
    uint32_t route = router_node_at(r, node)->route;

    return route ? router_route_at(r, route - 1) : NULL;
}

// Whether `s` stands for the label. An escaped slash never equals a label's, which separates.
bool router_label_equals_escaped(const char *label, size_t len, struct slice s);

// Most segments are short: a call of memcmp would take as long as all the rest of a step.
static inline bool router_bytes_equal(const char *a, const char *b, size_t n)
{
    if (n > 16) return memcmp(a, b, n) == 0;
    if (n < 8) return router_word_tail(a, n) == router_word_tail(b, n);
    return router_word(a) == router_word(b) && router_word(a + n - 8) == router_word(b + n - 8);
}

static inline bool router_label_equals(const struct router_node *n, struct slice s, bool is_escaped)
{
    if (is_escaped) return router_label_equals_escaped(n->label, n->label_len, s);
    return n->label_len == s.len && router_bytes_equal(n->label, s.ptr, s.len);
}

// The hash of a child; it decides on the line, and its top byte is the tag.
static inline uint32_t router_child_hash(uint32_t parent, enum router_node_kind kind, uint64_t hash)
{
    uint64_t h = (hash ^ ((uint64_t)parent << 3 | kind)) * UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(h >> 32);
}

static inline unsigned char router_tag(uint32_t child_hash)
{
    unsigned char tag = (unsigned char)(child_hash >> 24);
    return tag ? tag : 1;
}

// The child of that kind in the table whose label `s` is, 0 when there is none. `hash` is that of
// the label.
static inline uint32_t router_tree_find(const struct router *r, uint32_t parent,
                                        enum router_node_kind kind, uint64_t hash, struct slice s,
                                        bool is_escaped)
{
    uint32_t child_hash = router_child_hash(parent, kind, hash);
    size_t mask = r->line_count - 1;

    for (size_t at = child_hash & mask;; at = (at + 1) & mask) {
        const struct router_line *line = &r->lines[at];
        uint64_t tags = router_word((const char *)line->tags);
        uint64_t found = router_word_find_all(tags, router_tag(child_hash));
        for (; found; found &= found - 1) {
            uint32_t index = line->nodes[__builtin_ctzll(found) >> 3];
            const struct router_node *n = router_node_at(r, index);
            if (n->parent == parent && n->kind == kind && router_label_equals(n, s, is_escaped))
                return index;
        }
        if (!line->tags[ROUTER_LINE - 1]) return 0;
    }
}

// The same, wherever it stands.
static inline uint32_t router_tree_find_child(const struct router *r, uint32_t parent,
                                              enum router_node_kind kind, uint64_t hash,
                                              struct slice s, bool is_escaped)
{
    const struct router_node *p = router_node_at(r, parent);

    if (!(p->has >> kind & 1)) return 0;
    if (p->child == ROUTER_MANY) return router_tree_find(r, parent, kind, hash, s, is_escaped);
    return router_label_equals(router_node_at(r, p->child), s, is_escaped) ? p->child : 0;
}

// The child of a kind that has no label. Nothing has the hash 0.
static inline uint32_t router_tree_find_only(const struct router *r, uint32_t parent,
                                             enum router_node_kind kind)
{
    const struct router_node *p = router_node_at(r, parent);

    if (!(p->has >> kind & 1)) return 0;
    if (p->child != ROUTER_MANY) return p->child;
    return router_tree_find(r, parent, kind, 0, (struct slice){0}, false);
}

#endif

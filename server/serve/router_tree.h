// router_tree: how the router keeps its patterns. For the router only; what others may call is in
// router.h.
//
// One tree of segments for each method. A node stands for a number of segments that were matched;
// its children take one segment more: a literal, `prefix:name`, or `:name`; `*name` ends in the
// node. Literal and prefix children are found in one hash table for all nodes, so that a step costs
// the same whether a node has one child or ten thousand. A pattern without parameters is one child
// of its root that takes the whole path, and is tried first: literals win in every segment.
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
};

enum { ROUTER_NEAR_LABEL = 32 };

// One cache line.
struct router_node {
    struct route *route; // whose pattern ends here
    struct route *rest;  // whose `*name` begins here
    uint32_t parent;
    uint32_t bare;     // the child that takes any segment; 0: none
    uint32_t prefixes; // the longest of the prefix lengths among the children; 0: none
    uint16_t label_len;
    uint8_t kind;
    bool has_literals;
    union {
        char near_label[ROUTER_NEAR_LABEL];
        uint32_t far_label;     // where it begins in `text`, when it is longer
        uint64_t whole_lengths; // of a root: bit `length % 64` for the labels of its whole children
    };
};

// Half a cache line of the hash table: the tags side by side, so that all are compared at once. A
// child stands in the line of its hash, or in the next ones when that is full.
enum { ROUTER_LINE = 6 };

struct router_line {
    unsigned char tags[8]; // 0: free; the last two always are
    uint32_t nodes[ROUTER_LINE];
};

// A prefix length of one node's children, with the next shorter one.
struct router_length {
    uint32_t len, next;
};

struct router_other {
    struct slice name;
    uint32_t root;
};

enum { ROUTER_ANY = METHOD_OTHER, ROUTER_ROOTS };

struct router {
    struct arena arena; // routes and their texts
    struct route **routes;
    size_t route_count, route_cap;
    struct router_node *nodes; // node 0 is never used
    void *nodes_memory;
    size_t node_count, node_cap;
    struct router_line *lines; // a power of two, at most half full
    void *lines_memory;
    size_t line_count, child_count;
    struct router_length *lengths; // length 0 is never used
    size_t length_count, length_cap;
    struct buf text;
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

// Room for one item more than `count`: `*items` may move. False when there is no memory.
bool router_tree_grow(void **items, size_t *cap, size_t count, size_t item);

// Gives back what growing took too much and puts each node into one cache line. False when there is
// no memory; the tree then is as it was.
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

static inline const char *router_node_label(const struct router *r, const struct router_node *n)
{
    return n->label_len > ROUTER_NEAR_LABEL ? r->text.ptr + n->far_label : n->near_label;
}

// Whether `s` stands for the label. An escaped slash never equals a label's, which separates.
bool router_label_equals_escaped(const char *label, size_t len, struct slice s);

static inline bool router_label_equals(const char *label, size_t len, struct slice s)
{
    return len == s.len && memcmp(label, s.ptr, len) == 0;
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

// The child of that kind whose label `s` is, 0 when there is none. `hash` is that of the label.
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
            const struct router_node *n = &r->nodes[index];
            const char *label = router_node_label(r, n);
            if (n->parent == parent && n->kind == kind &&
                (is_escaped ? router_label_equals_escaped(label, n->label_len, s)
                            : router_label_equals(label, n->label_len, s)))
                return index;
        }
        if (!line->tags[ROUTER_LINE - 1]) return 0;
    }
}

#endif

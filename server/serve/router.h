// router: which route answers a method and a path. A table is built once, then never changes, so
// that all workers read it without locks. Pure: no I/O, no Lua.
//
// Patterns: literal segments, `:name` for one non-empty segment (a literal prefix may stand before
// the colon; the longest prefix is tried first), `*name` last, for the rest (may be empty). Literal
// beats :name beats *name whatever the order of registration, with backtracking. Every method has a
// tree of its own. `%XX` in a literal stands for that byte, so `%3A` is a colon and no parameter.
//
// Paths are cut at their slashes before they are decoded: an escaped slash stays inside a
// parameter, and so does an escaped NUL, whatever it means to who reads the value.
#ifndef PHOTON_SERVE_ROUTER_H
#define PHOTON_SERVE_ROUTER_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "text/message.h"

enum { ROUTER_MAX_PARAMS = 64 };

// What stands behind a pattern. The router only carries `kind` and `target`; who serves reads them.
enum route_kind {
    ROUTE_FIXED,
    ROUTE_LUA,
    ROUTE_STREAM,
    ROUTE_METRICS,
    ROUTE_HEALTH,
    ROUTE_CHANNEL
};

struct route {
    struct slice method;  // "GET", … or "*" for a route of any method
    struct slice pattern; // as registered
    struct slice place;   // "file:line" of the registration
    enum route_kind kind;
    void *target;      // a struct fixed for ROUTE_FIXED; what ROUTE_CHANNEL is without Lua, or NULL
    uint32_t index;    // its place in the table; handlers and counters are found by it
    uint64_t max_body; // bytes; 0: the server's limit
    struct slice *param_names;
    unsigned param_count;
};

struct router; // under construction, then immutable

struct router *router_new(void);
void router_free(struct router *r); // NULL is harmless; targets are the caller's

// Adds a copy of what `route` names (method, pattern, place are copied; index and params are filled
// in). NULL when it is refused; `error` (of `size` bytes) then says why in one line, for a
// duplicate with both places. Not after router_seal.
struct route *router_add(struct router *r, const struct route *route, char *error, size_t size);

// Ends construction and makes lookup fast. False when there is no memory.
bool router_seal(struct router *r);

unsigned router_count(const struct router *r);
const struct route *router_at(const struct router *r, unsigned index); // in order of registration

// The route of that method ("GET", …, "*") and pattern, NULL when there is none.
const struct route *router_find(const struct router *r, struct slice method, struct slice pattern);

enum router_result {
    ROUTER_FOUND,
    ROUTER_NOT_FOUND,
    ROUTER_OTHER_METHOD, // the path is known, but not under this method
    ROUTER_BAD_PATH,     // a malformed percent escape: 400
    ROUTER_NO_MEMORY,
};

struct router_match {
    const struct route *route;
    unsigned param_count;
    struct slice params[ROUTER_MAX_PARAMS]; // decoded; borrowed from the path or from the arena
};

// Looks up the escaped `path`. HEAD falls back to GET's route; a method's own tree is asked before
// the tree of routes for any method, and a more specific pattern does not matter across the two.
// Memory is taken from `a` only for values that hold an escape.
enum router_result router_match(const struct router *r, enum method method,
                                struct slice method_name, struct slice path, struct arena *a,
                                struct router_match *m);

// The Allow list for `path`, "GET, HEAD, OPTIONS" for instance, into `to`; returns its length, 0
// when no method knows the path. Standard methods come first, then others by name; a name that does
// not fit into `size` is left out.
size_t router_allow(const struct router *r, struct slice path, struct arena *a, char *to,
                    size_t size);

#endif

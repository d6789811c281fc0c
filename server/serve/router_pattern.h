// router_pattern: the text of a route's pattern, checked and cut into segments. For the router
// only.
//
// A pattern is written as paths are: `%XX` stands for a byte, so that `%3A` and `%2A` are a colon
// and a star that mean themselves. Other bytes, UTF-8 too, stand for themselves.
#ifndef PHOTON_SERVE_ROUTER_PATTERN_H
#define PHOTON_SERVE_ROUTER_PATTERN_H

#include "serve/router.h"

enum { ROUTER_MAX_PATTERN = 8192 };

enum router_segment_kind {
    ROUTER_LITERAL, // `/users`
    ROUTER_PREFIX,  // `/user_:name`
    ROUTER_BARE,    // `/:name`
    ROUTER_REST,    // `/*name`
};

struct router_segment {
    enum router_segment_kind kind;
    struct slice literal; // the literal, or what stands before the colon; still escaped
    struct slice name;    // of the parameter
};

// True when method and pattern of `route` obey the rules. Otherwise `error` says what is wrong and
// what to do, in one line.
bool router_pattern_check(const struct route *route, char *error, size_t size);

// Writes "METHOD PATTERN (PLACE): " and the message, one line without control bytes. Returns false.
bool router_pattern_refuse(const struct route *route, char *error, size_t size, const char *format,
                           ...) __attribute__((format(printf, 4, 5)));

// The segment whose slash stands at *at, which moves on to the next slash or the end; false at the
// end. Only for a pattern that was checked.
bool router_pattern_next(struct slice pattern, size_t *at, struct router_segment *segment);

// How many parameters a checked pattern has.
unsigned router_pattern_count(struct slice pattern);

#endif

// http1_guard: looks at the raw bytes of an HTTP/1.1 request for what llhttp would let through:
// line ends, control bytes, folding, the request line, chunk lines, trailers, limits. Pure, and
// only for http1_read and http1_read_head. A fault is found at the first byte that makes one
// unavoidable, so the answer never depends on how the bytes were cut.
#ifndef PHOTON_TEXT_HTTP1_GUARD_H
#define PHOTON_TEXT_HTTP1_GUARD_H

#include <stdbool.h>
#include <stdint.h>
#include "base/limits.h"
#include "base/slice.h"

// Why a request is refused. All of them are constants that live for ever.
struct http1_fault {
    int status;
    const char *detail;
};

// How far an unfinished head was looked at. Zero at the beginning of each head.
struct http1_guard {
    uint32_t scanned; // bytes that were looked at
    uint32_t line;    // where the line that is being looked at begins
    uint32_t fields;  // field lines so far
};

// Goes on looking at the head that begins at bytes[0]. NULL when nothing is wrong so far; *head is
// then its length when it is complete, else 0: call again with the same bytes and more. Tabs at
// the end of a field line become spaces, which llhttp accepts.
const struct http1_fault *http1_guard_head(struct http1_guard *g, char *bytes, size_t len,
                                           const struct limits *limits, size_t *head);

// A whole chunk line, LF included; *digits tells how long the size is that it begins with.
const struct http1_fault *http1_guard_chunk(struct slice line, size_t *digits);

// A whole line of the trailer section, LF included; *is_last tells that it is the empty one.
const struct http1_fault *http1_guard_trailer(struct slice line, bool *is_last);

// A host with or without a port (RFC 9110 7.2), neither empty nor with user information.
bool http1_guard_is_host(struct slice s);

#endif

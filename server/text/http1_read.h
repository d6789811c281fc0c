// http1_read: HTTP/1.1 requests out of bytes. The only user of llhttp (compiled strict), with a
// guard of our own on the raw bytes for what llhttp lets through. Pure: no I/O, no clock. Does not
// depend on how the bytes are cut: the caller keeps what was not consumed and calls again with
// more.
#ifndef PHOTON_TEXT_HTTP1_READ_H
#define PHOTON_TEXT_HTTP1_READ_H

#include <llhttp.h>
#include "base/limits.h"
#include "text/http1_guard.h"
#include "text/message.h"

enum http1_event {
    HTTP1_MORE,  // nothing more can be told; what is left unconsumed must come again with more
    HTTP1_HEAD,  // `request` is filled; its slices point into the given bytes
    HTTP1_BODY,  // `piece` is the next part of the body, within the given bytes
    HTTP1_END,   // the request is complete; the next one may follow
    HTTP1_ERROR, // `status` (400, 413, 414, 417, 431, 501, 505) and `detail` (a constant) say why;
                 // the connection must be closed after the reply
};

struct http1_reader {
    llhttp_t parser;
    const struct limits *limits;
    uint64_t body_seen, max_body;
    uint64_t left;            // bytes of the body or chunk that are to come
    struct http1_guard guard; // how much of an unfinished head was looked at
    uint32_t scanned;         // the same for an unfinished chunk or trailer line
    uint32_t chunk_extra;     // bytes of chunk extensions and trailers so far
    uint8_t state, blank_lines;
    bool is_last; // the peer wants no request after this one
};

struct http1_found {
    struct slice piece;
    int status;
    const char *detail;
};

void http1_read_init(struct http1_reader *r, const struct limits *limits);

// Looks at the `len` bytes at `bytes` (header names are made lower case in place) and returns the
// next event; *used tells how many bytes it has consumed. Bytes that were not consumed must be
// offered again as they were left, at the front of the next call. Call until HTTP1_MORE, also with
// no bytes left. `request` must have room for limits->max_headers + 1 headers in request->headers
// (items and cap set by the caller): Host does not count. After the HTTP1_END of a request without
// keep_alive all further bytes are consumed unseen; after HTTP1_ERROR every call fails.
// After HTTP1_HEAD the caller may lower or raise the body limit with http1_read_set_max_body
// before the next call; an announced length over the limit is an HTTP1_ERROR 413 of that next call.
enum http1_event http1_read_next(struct http1_reader *r, char *bytes, size_t len, size_t *used,
                                 struct request *request, struct http1_found *found);

void http1_read_set_max_body(struct http1_reader *r, uint64_t max_body);

// True between requests: nothing of a next request has been seen (blank lines before it aside).
bool http1_read_is_idle(const struct http1_reader *r);

#endif

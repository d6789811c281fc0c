// fixed: a reply that was rendered once, at load, and is served by C alone: GET, HEAD, 304.
// Immutable and shared by all workers. Serving allocates nothing.
#ifndef PHOTON_SERVE_FIXED_H
#define PHOTON_SERVE_FIXED_H

#include "http/exchange.h"

struct fixed;

// Renders head and body; the bytes are copied. A strong ETag of the body and its content-type is
// added unless `headers` bring one. `headers` have passed headers_is_name/value. NULL: no memory.
struct fixed *fixed_new(int status, const struct headers *headers, struct slice body);
void fixed_free(struct fixed *f); // NULL is harmless

// Answers a GET or HEAD: 304 when If-None-Match matches (RFC 9110 13.1.2, for a 200), else the
// reply.
void fixed_serve(const struct fixed *f, struct exchange *x);

#endif

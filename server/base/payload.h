// payload: immutable, shared bytes; the only reference-counted type. A payload may carry bytes
// before (head) and after (tail) its inner slice, so that a protocol can frame it once for all
// readers: HTTP/1.1 writes the chunk size into the head and CRLF into the tail.
#ifndef PHOTON_BASE_PAYLOAD_H
#define PHOTON_BASE_PAYLOAD_H

#include <stdatomic.h>
#include <stdint.h>
#include "base/slice.h"

enum { PAYLOAD_HEAD = 24, PAYLOAD_TAIL = 8 };

struct payload {
    atomic_uint refs;
    uint8_t head_len,
        tail_len; // how much of head and tail room is filled; framed once, by its maker
    size_t len;
    char bytes[]; // PAYLOAD_HEAD bytes of room (filled at its end), the inner bytes, PAYLOAD_TAIL
};

// With room for `len` inner bytes, one reference; NULL when there is no memory. The maker fills
// payload_data before anyone else sees it.
struct payload *payload_new(size_t len);
struct payload *payload_new_copy(struct slice bytes);

static inline char *payload_data(struct payload *p)
{
    return p->bytes + PAYLOAD_HEAD;
}

// The inner bytes.
static inline struct slice payload_slice(const struct payload *p)
{
    return (struct slice){p->bytes + PAYLOAD_HEAD, p->len};
}

// The inner bytes with what was put before and after them.
static inline struct slice payload_framed(const struct payload *p)
{
    return (struct slice){p->bytes + PAYLOAD_HEAD - p->head_len,
                          p->head_len + p->len + p->tail_len};
}

static inline struct payload *payload_retain(struct payload *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

// The last release frees. NULL is harmless.
void payload_release(struct payload *p);

#endif

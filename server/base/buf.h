// buf: growing bytes, owned. Zero is the empty buffer. Every function that can run out of memory
// says so by its result and leaves the contents as they were.
#ifndef PHOTON_BASE_BUF_H
#define PHOTON_BASE_BUF_H

#include <stdbool.h>
#include <stdint.h>
#include "base/slice.h"

struct buf {
    char *ptr;
    size_t len, cap;
};

// Room for `extra` bytes after the contents; returns where they go (the caller then adds to
// `len`), NULL when there is no memory.
char *buf_reserve_slow(struct buf *b, size_t extra);

static inline char *buf_reserve(struct buf *b, size_t extra)
{
    if (b->cap - b->len >= extra && b->ptr) return b->ptr + b->len;
    return buf_reserve_slow(b, extra);
}

static inline bool buf_append(struct buf *b, const char *ptr, size_t len)
{
    char *to = buf_reserve(b, len);
    if (!to) return false;
    if (len) memcpy(to, ptr, len);
    b->len += len;
    return true;
}

static inline bool buf_append_slice(struct buf *b, struct slice s)
{
    return buf_append(b, s.ptr, s.len);
}

bool buf_append_decimal(struct buf *b, uint64_t value);

// printf into the buffer. False when there is no memory.
bool buf_append_format(struct buf *b, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Drops the first `n` bytes; what is left moves to the front.
void buf_consume(struct buf *b, size_t n);

// Frees the memory; the buffer is empty and may be used again.
void buf_reset(struct buf *b);

static inline struct slice buf_slice(const struct buf *b)
{
    return (struct slice){b->ptr, b->len};
}

#endif

// slice: borrowed bytes. A slice owns nothing; whoever hands one out says how long it stays valid.
#ifndef PHOTON_BASE_SLICE_H
#define PHOTON_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct slice {
    const char *ptr;
    size_t len;
};

// A slice over a string literal, without its NUL. SLICE_INIT is the same for static tables.
#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})
#define SLICE_INIT(literal)                                                                        \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

static inline struct slice slice_of(const char *ptr, size_t len)
{
    return (struct slice){ptr, len};
}

// Over a NUL-terminated text; NULL gives the empty slice.
static inline struct slice slice_of_text(const char *text)
{
    return (struct slice){text, text ? strlen(text) : 0};
}

static inline bool slice_equals(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

// ASCII letters compare without regard to case.
static inline bool slice_equals_nocase(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

// The bytes from `from` to the end; `from` must not exceed the length.
static inline struct slice slice_from(struct slice s, size_t from)
{
    return (struct slice){s.ptr + from, s.len - from};
}

// Without spaces and tabs at both ends (RFC 9110 5.6.3, OWS).
static inline struct slice slice_trim(struct slice s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) s.ptr++, s.len--;
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t')) s.len--;
    return s;
}

#endif

#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include "base/mem.h"

enum { BUF_LEAST = 256, BUF_DECIMAL = 20 };

char *buf_reserve_slow(struct buf *b, size_t extra)
{
    if (extra > PTRDIFF_MAX - b->len) return NULL;
    size_t need = b->len + extra, cap = b->cap < BUF_LEAST / 2 ? BUF_LEAST : b->cap * 2;
    if (cap < need) cap = need;
    char *ptr = mem_realloc(b->ptr, cap);
    if (!ptr) return NULL;
    b->ptr = ptr;
    b->cap = cap;
    return ptr + b->len;
}

bool buf_append_decimal(struct buf *b, uint64_t value)
{
    char digits[BUF_DECIMAL], *at = digits + BUF_DECIMAL;
    do *--at = (char)('0' + value % 10);
    while (value /= 10);
    return buf_append(b, at, (size_t)(digits + BUF_DECIMAL - at));
}

bool buf_append_format(struct buf *b, const char *format, ...)
{
    size_t room = b->cap - b->len;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(b->ptr ? b->ptr + b->len : NULL, room, format, args);
    va_end(args);
    if (len < 0) return false;
    if ((size_t)len >= room) {
        // One byte more, as vsnprintf always writes its NUL.
        char *to = buf_reserve(b, (size_t)len + 1);
        if (!to) return false;
        va_start(args, format);
        vsnprintf(to, (size_t)len + 1, format, args);
        va_end(args);
    }
    b->len += (size_t)len;
    return true;
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->len);
    b->len -= n;
    if (b->len && n) memmove(b->ptr, b->ptr + n, b->len);
}

void buf_reset(struct buf *b)
{
    mem_free(b->ptr);
    *b = (struct buf){0};
}

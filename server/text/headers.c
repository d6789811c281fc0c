#include "text/headers.h"

enum { HEADERS_LEAST = 8 };

// RFC 9110 5.6.2, tchar.
static const bool headers_token_bytes[256] = {
    ['!'] = 1, ['#'] = 1, ['$'] = 1, ['%'] = 1,         ['&'] = 1,         ['\''] = 1,
    ['*'] = 1, ['+'] = 1, ['-'] = 1, ['.'] = 1,         ['^'] = 1,         ['_'] = 1,
    ['`'] = 1, ['|'] = 1, ['~'] = 1, ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1,
};

const struct header *headers_find(const struct headers *h, struct slice name)
{
    for (uint32_t i = 0; i < h->count; i++) {
        if (slice_equals(h->items[i].name, name)) return &h->items[i];
    }
    return NULL;
}

unsigned headers_count(const struct headers *h, struct slice name)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < h->count; i++) count += slice_equals(h->items[i].name, name);
    return count;
}

static bool headers_grow(struct headers *h, struct arena *a)
{
    if (h->cap > UINT32_MAX / 2) return false;
    uint32_t cap = h->cap < HEADERS_LEAST ? HEADERS_LEAST : h->cap * 2;
    struct header *items = arena_alloc(a, cap * sizeof *items);
    if (!items) return false;
    if (h->count) memcpy(items, h->items, h->count * sizeof *items);
    h->items = items;
    h->cap = cap;
    return true;
}

bool headers_add(struct headers *h, struct arena *a, struct slice name, struct slice value)
{
    if (h->count == h->cap && !headers_grow(h, a)) return false;
    h->items[h->count++] = (struct header){name, value};
    return true;
}

bool headers_is_name(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!headers_token_bytes[(unsigned char)s.ptr[i]]) return false;
    }
    return s.len > 0;
}

bool headers_is_value(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) return false;
    }
    return true;
}

bool headers_has_token(struct slice value, struct slice token)
{
    while (value.len) {
        const char *comma = memchr(value.ptr, ',', value.len);
        size_t len = comma ? (size_t)(comma - value.ptr) : value.len;
        if (slice_equals_nocase(slice_trim(slice_of(value.ptr, len)), token)) return true;
        value = slice_from(value, comma ? len + 1 : len);
    }
    return false;
}

#include "text/url.h"

#include <stdint.h>

// The value of a hex digit; zero is no digit, so that the table needs no word for all others.
static const uint8_t url_hex_plus_one[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

// The byte that two hex digits mean, -1 when they are not two hex digits.
static inline int url_hex_pair(const char *at)
{
    int high = url_hex_plus_one[(unsigned char)at[0]], low = url_hex_plus_one[(unsigned char)at[1]];
    return high && low ? (high - 1) << 4 | (low - 1) : -1;
}

// Most text has nothing to decode: how much of it can be copied as it is.
static size_t url_plain_length(struct slice s, bool plus)
{
    if (!plus) {
        const char *escape = memchr(s.ptr, '%', s.len);
        return escape ? (size_t)(escape - s.ptr) : s.len;
    }
    size_t len = 0;
    while (len < s.len && s.ptr[len] != '%' && s.ptr[len] != '+') len++;
    return len;
}

long url_decode(char *to, struct slice s, bool plus)
{
    if (!s.len) return 0;
    size_t plain = url_plain_length(s, plus);
    if (to != s.ptr) memcpy(to, s.ptr, plain);
    char *start = to;
    const char *at = s.ptr + plain, *end = s.ptr + s.len;
    for (to += plain; at < end; to++) {
        if (*at == '%') {
            int byte = end - at > 2 ? url_hex_pair(at + 1) : -1;
            if (byte < 0) return -1;
            *to = (char)byte;
            at += 3;
        } else {
            *to = *at == '+' && plus ? ' ' : *at;
            at++;
        }
    }
    return (long)(to - start);
}

bool url_is_escaped_well(struct slice s)
{
    while (s.len) {
        size_t plain = url_plain_length(s, false);
        if (plain == s.len) return true;
        s = slice_from(s, plain);
        if (s.len < 3 || url_hex_pair(s.ptr + 1) < 0) return false;
        s = slice_from(s, 3);
    }
    return true;
}

static struct slice url_take(struct slice *rest, char separator)
{
    const char *end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    struct slice piece = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    *rest = slice_from(*rest, end ? piece.len + 1 : piece.len);
    return piece;
}

bool url_next_pair(struct slice *rest, struct slice *name, struct slice *value)
{
    while (rest->len) {
        struct slice pair = url_take(rest, '&');
        if (!pair.len) continue;
        *name = url_take(&pair, '=');
        *value = pair;
        return true;
    }
    return false;
}

// json_scan: how the bytes of JSON strings and numbers are looked at. Shared by json_read and
// json_write; nobody else needs it.
#ifndef PHOTON_TEXT_JSON_SCAN_H
#define PHOTON_TEXT_JSON_SCAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include "base/slice.h"

// Bytes that stand in a string as they are: ASCII without controls, quote and backslash.
static inline bool json_scan_is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

// The same for eight bytes at once: true when all of them are plain.
static inline bool json_scan_are_plain(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t quote = eight ^ ('"' * ones), backslash = eight ^ ('\\' * ones);
    uint64_t odd = (eight - 0x20 * ones) | (quote - ones) | (backslash - ones) | eight;
    return (odd & (0x80 * ones)) == 0;
}

// How many plain bytes `p` begins with, `len` at most.
static inline size_t json_scan_plain(const char *p, size_t len)
{
    size_t n = 0;
    for (uint64_t eight; len - n >= 8; n += 8) {
        memcpy(&eight, p + n, 8);
        if (!json_scan_are_plain(eight)) break;
    }
    while (n < len && json_scan_is_plain((unsigned char)p[n])) n++;
    return n;
}

// The length of the UTF-8 sequence of two to four bytes that `p` begins with; 0 when it is cut
// short, overlong, a surrogate or beyond U+10FFFF (RFC 3629). `len` is not 0.
static inline size_t json_scan_utf8(const char *p, size_t len)
{
    const unsigned char *u = (const unsigned char *)p;
    unsigned lead = u[0];
    size_t need = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
    if (need == 0 || len < need) return 0;
    unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (u[1] < least || u[1] > most) return 0;
    for (size_t i = 2; i < need; i++)
        if ((u[i] & 0xC0) != 0x80) return 0;
    return need;
}

// Reads the number that the text begins with (a digit or a minus sign). Returns its length; or,
// with *error saying why not, where the culprit stands. A number that a double cannot hold at all
// is an error, one that is only rounded is not.
size_t json_scan_number(struct slice text, double *value, const char **error);

#endif

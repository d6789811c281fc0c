#include "text/json.h"

#include "text/json_scan.h"

static char *write_escape(char *to, unsigned char c)
{
    static const char short_forms[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    char letter = c < 0x20 ? short_forms[c] : (char)c;
    *to++ = '\\';
    if (letter) {
        *to++ = letter;
        return to;
    }
    memcpy(to, "u00", 3);
    to[3] = "0123456789abcdef"[c >> 4];
    to[4] = "0123456789abcdef"[c & 15];
    return to + 5;
}

// Copies while it scans, so that a short string is touched once.
static size_t copy_plain(char *to, const char *from, size_t len)
{
    size_t n = 0;
    for (uint64_t eight; len - n >= 8; n += 8) {
        memcpy(&eight, from + n, 8);
        if (!json_scan_are_plain(eight)) break;
        memcpy(to + n, &eight, 8);
    }
    for (; n < len && json_scan_is_plain((unsigned char)from[n]); n++) to[n] = from[n];
    return n;
}

// Room is kept for the rest of the string as it is, so only an escape has to ask for more.
static enum json_result write_rest(struct buf *to, const char *p, const char *end)
{
    char *out = to->ptr + to->len;
    for (;;) {
        size_t n = copy_plain(out, p, (size_t)(end - p));
        p += n, out += n;
        if (p == end) break;
        if ((unsigned char)*p >= 0x80) {
            size_t length = json_scan_utf8(p, (size_t)(end - p));
            if (length == 0) return JSON_BAD_UTF8;
            for (; length; length--) *out++ = *p++;
            continue;
        }
        to->len = (size_t)(out - to->ptr);
        out = buf_reserve(to, (size_t)(end - p) + 6);
        if (!out) return JSON_NO_MEMORY;
        out = write_escape(out, (unsigned char)*p++);
    }
    *out++ = '"';
    to->len = (size_t)(out - to->ptr);
    return JSON_OK;
}

enum json_result json_write_string(struct buf *to, struct slice s)
{
    size_t start = to->len;
    char *out = buf_reserve(to, s.len + 2);
    if (!out) return JSON_NO_MEMORY;
    *out = '"';
    to->len++;
    enum json_result result = s.len ? write_rest(to, s.ptr, s.ptr + s.len) : write_rest(to, "", "");
    if (result != JSON_OK) to->len = start;
    return result;
}

#include "text/http1_guard.h"

#include <arpa/inet.h>
#include <endian.h>

enum { IS_TOKEN = 1, IS_HOST = 2, IS_HEX = 4, CHUNK_DIGITS = 16, PORT_DIGITS = 5 };

static const uint8_t kinds[256] = {
    ['0' ... '9'] = IS_TOKEN | IS_HOST | IS_HEX,
    ['a' ... 'f'] = IS_TOKEN | IS_HOST | IS_HEX,
    ['g' ... 'z'] = IS_TOKEN | IS_HOST,
    ['A' ... 'F'] = IS_TOKEN | IS_HOST | IS_HEX,
    ['G' ... 'Z'] = IS_TOKEN | IS_HOST,
    ['-'] = IS_TOKEN | IS_HOST,
    ['.'] = IS_TOKEN | IS_HOST,
    ['_'] = IS_TOKEN | IS_HOST,
    ['~'] = IS_TOKEN | IS_HOST,
    ['!'] = IS_TOKEN | IS_HOST,
    ['$'] = IS_TOKEN | IS_HOST,
    ['&'] = IS_TOKEN | IS_HOST,
    ['\''] = IS_TOKEN | IS_HOST,
    ['*'] = IS_TOKEN | IS_HOST,
    ['+'] = IS_TOKEN | IS_HOST,
    ['('] = IS_HOST,
    [')'] = IS_HOST,
    [','] = IS_HOST,
    [';'] = IS_HOST,
    ['='] = IS_HOST,
    ['#'] = IS_TOKEN,
    ['%'] = IS_TOKEN,
    ['^'] = IS_TOKEN,
    ['`'] = IS_TOKEN,
    ['|'] = IS_TOKEN,
};

static const struct http1_fault control_byte = {400, "a control byte in the head"},
                                bare_cr = {400, "a CR without LF"},
                                bare_lf = {400, "a LF without CR"},
                                odd_byte = {400, "a byte beyond ASCII in the request line"},
                                folded = {400, "a field line begins with white space"},
                                no_name = {400, "a field without a name"},
                                blank_lines = {400, "blank lines before the request line"},
                                bad_request_line = {400, "the request line is malformed"},
                                bad_version = {505, "the protocol version is not supported"},
                                long_target = {414, "the request target is too long"},
                                long_head = {431, "the request head is too large"},
                                many_fields = {431, "too many header fields"},
                                bad_chunk = {400, "the chunk size is malformed"},
                                bad_extension = {400, "the chunk size or extension is malformed"},
                                bad_trailer = {400, "the trailer is malformed"};

static bool is_kind(char c, unsigned kind)
{
    return (kinds[(unsigned char)c] & kind) != 0;
}

// How many bytes at the front of `s` are of that kind.
static size_t kind_span(struct slice s, unsigned kind)
{
    size_t n = 0;
    while (n < s.len && is_kind(s.ptr[n], kind)) n++;
    return n;
}

// The first byte in [at, end) that is a control byte, or that shares a bit with `high` repeated;
// `end` when there is none. Eight bytes at a time: a borrow can only raise a false mark above a
// true one, so the lowest mark is always right.
static char *find_control(char *at, const char *end, uint64_t high)
{
    const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
    for (uint64_t word; end - at >= 8; at += 8) {
        memcpy(&word, at, sizeof word);
        word = le64toh(word);
        uint64_t del = word ^ (ones * 0x7f);
        uint64_t marks = ((word - ones * 0x20) & ~word) | ((del - ones) & ~del) | (word & high);
        if ((marks &= tops)) return at + (__builtin_ctzll(marks) >> 3);
    }
    for (; at < end; at++) {
        unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c == 0x7f || (c & high & 0x80)) break;
    }
    return at;
}

static const struct http1_fault *begin_field(struct http1_guard *g, char first,
                                             const struct limits *limits)
{
    if (first == ' ' || first == '\t') return &folded;
    if (first == ':') return &no_name;
    // Host, which every request must have, comes on top of the limit.
    if (first != '\r' && ++g->fields > (uint64_t)limits->max_headers + 1) return &many_fields;
    return NULL;
}

// Whether the target is over the limit, in a request line of which `len` bytes are known.
static bool is_long_target(const char *line, size_t len, size_t max)
{
    const char *target = len > max ? memchr(line, ' ', len) : NULL;
    if (!target) return false;
    size_t rest = len - (size_t)(++target - line);
    const char *stop = memchr(target, ' ', rest);
    return (stop ? (size_t)(stop - target) : rest) > max;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

// A whole request line without its line end: exactly two spaces, a token, a known version.
static const struct http1_fault *check_request_line(struct slice line)
{
    size_t method = kind_span(line, IS_TOKEN);
    if (line.len == 0) return &blank_lines;
    if (method == 0 || method == line.len || line.ptr[method] != ' ') return &bad_request_line;
    struct slice rest = slice_from(line, method + 1);
    const char *space = memchr(rest.ptr, ' ', rest.len);
    if (!space || space == rest.ptr) return &bad_request_line;
    const char *version = space + 1;
    if (rest.ptr + rest.len - version != 8 || memcmp(version, "HTTP/", 5) != 0 ||
        !is_digit(version[5]) || version[6] != '.' || !is_digit(version[7]))
        return &bad_request_line;
    return version[5] == '1' && version[7] <= '1' ? NULL : &bad_version;
}

static void blank_tabs(char *begin, char *end)
{
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t')) *--end = ' ';
}

static const struct http1_fault *fault_of_control(char c)
{
    if (c == '\n') return &bare_lf;
    return (unsigned char)c >= 0x80 ? &odd_byte : &control_byte;
}

// The line from g->line to the CR at `cr` is complete.
static const struct http1_fault *end_line(struct http1_guard *g, char *bytes, char *cr)
{
    char *line = bytes + g->line;
    if (line == bytes) return check_request_line(slice_of(line, (size_t)(cr - line)));
    blank_tabs(line, cr);
    return NULL;
}

const struct http1_fault *http1_guard_head(struct http1_guard *g, char *bytes, size_t len,
                                           const struct limits *limits, size_t *head)
{
    size_t known = len < limits->max_header ? len : limits->max_header;
    char *at = bytes + g->scanned, *end = bytes + known;
    const struct http1_fault *fault = NULL;
    *head = 0;
    while (at < end) {
        bool in_fields = g->line > 0;
        if (in_fields && at == bytes + g->line && (fault = begin_field(g, *at, limits)))
            return fault;
        at = find_control(at, end, in_fields ? 0 : ~(uint64_t)0);
        if (!in_fields && is_long_target(bytes, (size_t)(at - bytes), limits->max_target))
            return &long_target;
        if (at == end) break;
        if (in_fields && *at == '\t') {
            at++;
            continue;
        }
        if (*at != '\r') return fault_of_control(*at);
        if (at + 1 == end) break; // the CR is looked at again together with what follows
        if (at[1] != '\n') return &bare_cr;
        if ((fault = end_line(g, bytes, at))) return fault;
        bool is_empty = at == bytes + g->line;
        at += 2;
        g->line = (uint32_t)(at - bytes);
        if (is_empty) {
            *head = g->line;
            return NULL;
        }
    }
    g->scanned = (uint32_t)(at - bytes);
    return known == limits->max_header ? &long_head : NULL;
}

// A line without its line end in *line; false when it does not end in CRLF.
static bool cut_line_end(struct slice *line)
{
    if (line->len < 2 || line->ptr[line->len - 2] != '\r') return false;
    line->len -= 2;
    return true;
}

// The length of a quoted text at the front of `s`, quotes included; 0 when it is none.
static size_t quoted_span(struct slice s)
{
    for (size_t i = 1; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == '"') return i + 1;
        if (c == '\\' && ++i == s.len) return 0;
        c = (unsigned char)s.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) return 0;
    }
    return 0;
}

// *( ";" name [ "=" value ] ), without the white space that RFC 9112 7.1.1 calls bad.
static bool is_extension(struct slice s)
{
    while (s.len) {
        if (s.ptr[0] != ';') return false;
        s = slice_from(s, 1);
        size_t name = kind_span(s, IS_TOKEN);
        if (name == 0) return false;
        s = slice_from(s, name);
        if (s.len == 0 || s.ptr[0] != '=') continue;
        s = slice_from(s, 1);
        size_t value = s.len && s.ptr[0] == '"' ? quoted_span(s) : kind_span(s, IS_TOKEN);
        if (value == 0) return false;
        s = slice_from(s, value);
    }
    return true;
}

const struct http1_fault *http1_guard_chunk(struct slice line, size_t *digits)
{
    if (!cut_line_end(&line)) return &bare_lf;
    *digits = kind_span(line, IS_HEX);
    if (*digits == 0 || *digits > CHUNK_DIGITS) return &bad_chunk;
    return is_extension(slice_from(line, *digits)) ? NULL : &bad_extension;
}

const struct http1_fault *http1_guard_trailer(struct slice line, bool *is_last)
{
    if (!cut_line_end(&line)) return &bare_lf;
    *is_last = line.len == 0;
    if (*is_last) return NULL;
    size_t name = kind_span(line, IS_TOKEN);
    if (name == 0 || name == line.len || line.ptr[name] != ':') return &bad_trailer;
    for (size_t i = name; i < line.len; i++) {
        unsigned char c = (unsigned char)line.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) return &bad_trailer;
    }
    return NULL;
}

static bool is_ipv6(struct slice s)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (s.len == 0 || s.len >= sizeof text || memchr(s.ptr, 0, s.len)) return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = 0;
    return inet_pton(AF_INET6, text, &address) == 1;
}

// The length of the name or the literal at the front of `s`; 0 when it is none.
static size_t host_span(struct slice s)
{
    if (s.len && s.ptr[0] == '[') {
        const char *end = memchr(s.ptr, ']', s.len);
        if (!end || !is_ipv6(slice_of(s.ptr + 1, (size_t)(end - s.ptr - 1)))) return 0;
        return (size_t)(end - s.ptr) + 1;
    }
    size_t n = 0;
    while ((n += kind_span(slice_from(s, n), IS_HOST)) < s.len && s.ptr[n] == '%') {
        if (s.len - n < 3 || !is_kind(s.ptr[n + 1], IS_HEX) || !is_kind(s.ptr[n + 2], IS_HEX))
            return 0;
        n += 3;
    }
    return n;
}

bool http1_guard_is_host(struct slice s)
{
    size_t host = host_span(s);
    if (host == 0) return false;
    if (host == s.len) return true;
    if (s.ptr[host] != ':' || s.len - host - 1 > PORT_DIGITS) return false;
    unsigned port = 0;
    for (size_t i = host + 1; i < s.len; i++) {
        if (!is_digit(s.ptr[i])) return false;
        port = port * 10 + (unsigned)(s.ptr[i] - '0');
    }
    return port <= 65535;
}

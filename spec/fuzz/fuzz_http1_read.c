// Fuzz target of the HTTP/1.1 reader (libFuzzer). The input is what a peer sends. It is read whole,
// byte by byte and cut at random, each time in blocks of exactly the bytes that are there; all must
// tell the same, and what is told must agree with the bytes.
#include <stdlib.h>
#include "base/buf.h"
#include "base/mem.h"
#include "check.h"
#include "text/http1_read.h"

enum { MAX_ITEMS = 101 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// One reading of the input, and what it told.
struct reading {
    struct http1_reader reader;
    const struct limits *limits;
    struct header items[MAX_ITEMS];
    struct request request;
    struct buf told;
    char *bytes; // a block of its own, so that a look beyond its end is found
    size_t len;
    uint64_t body;
    bool in_body, failed;
};

static void tell(struct reading *r, const char *name, struct slice what)
{
    CHECK(buf_append_format(&r->told, "%s %zu ", name, what.len));
    CHECK(buf_append_slice(&r->told, what) && buf_append(&r->told, "\n", 1));
}

static bool is_within(struct slice s, const char *bytes, size_t len)
{
    return s.ptr >= bytes && s.len <= len && s.ptr + s.len <= bytes + len;
}

// The next line of a head, cut off its front.
static struct slice take_line(struct slice *rest)
{
    const char *end = memmem(rest->ptr, rest->len, "\r\n", 2);
    CHECK(end);
    struct slice line = slice_of(rest->ptr, (size_t)(end - rest->ptr));
    *rest = slice_from(*rest, line.len + 2);
    return line;
}

// A second, simple reading of the field lines must come to the same fields.
static void check_fields(const struct reading *r, struct slice head)
{
    const struct headers *h = &r->request.headers;
    while (head.len >= 2 && memcmp(head.ptr, "\r\n", 2) == 0) head = slice_from(head, 2);
    take_line(&head);
    for (uint32_t i = 0; i < h->count; i++) {
        struct slice line = take_line(&head);
        const char *colon = memchr(line.ptr, ':', line.len);
        CHECK(colon);
        struct slice name = slice_of(line.ptr, (size_t)(colon - line.ptr));
        struct slice value = slice_trim(slice_from(line, name.len + 1));
        CHECK(slice_equals(name, h->items[i].name) && slice_equals(value, h->items[i].value));
        CHECK(headers_is_name(name) && headers_is_value(value));
        for (size_t at = 0; at < name.len; at++) CHECK(name.ptr[at] < 'A' || name.ptr[at] > 'Z');
    }
    CHECK(head.len == 2);
}

static void check_head(const struct reading *r, char *bytes, size_t used)
{
    const struct request *q = &r->request;
    const struct slice slices[] = {q->method_name, q->target, q->path, q->query, q->host};
    for (unsigned i = 0; i < sizeof slices / sizeof *slices; i++)
        CHECK(is_within(slices[i], bytes, used));
    CHECK(used <= r->limits->max_header + 8u); // with blank lines before it
    CHECK(q->target.len <= r->limits->max_target);
    CHECK(q->headers.count <= r->limits->max_headers + 1);
    CHECK(headers_is_name(q->method_name));
    CHECK(q->path.ptr[0] == '/' || (q->method == METHOD_OPTIONS && q->path.ptr[0] == '*'));
    CHECK(q->is_http10 || headers_count(&q->headers, SLICE("host")) == 1);
    unsigned codings = headers_count(&q->headers, SLICE("transfer-encoding"));
    unsigned lengths = headers_count(&q->headers, SLICE("content-length"));
    CHECK(codings + lengths <= 1);
    CHECK(q->content_length == -1 ? codings == 1 : codings == 0);
    CHECK(q->content_length >= -1 && (q->content_length <= 0 || lengths == 1));
    CHECK(!q->expects_continue || q->content_length != 0);
    check_fields(r, slice_of(bytes, used));
}

static void tell_head(struct reading *r)
{
    const struct request *q = &r->request;
    CHECK(buf_append_format(&r->told, "head %d %lld %d %d %d\n", (int)q->method,
                            (long long)q->content_length, q->is_http10, q->keep_alive,
                            q->expects_continue));
    tell(r, "method", q->method_name);
    tell(r, "target", q->target);
    tell(r, "path", q->path);
    tell(r, "query", q->query);
    tell(r, "host", q->host);
    for (uint32_t i = 0; i < q->headers.count; i++) {
        tell(r, "name", q->headers.items[i].name);
        tell(r, "value", q->headers.items[i].value);
    }
}

// Bodies are told by byte, so that the pieces do not matter.
static void tell_piece(struct reading *r, struct slice piece)
{
    r->body += piece.len;
    CHECK(piece.len > 0 && r->body <= r->limits->max_body);
    for (size_t i = 0; i < piece.len; i++)
        CHECK(buf_append_format(&r->told, "body %02x\n", (unsigned char)piece.ptr[i]));
}

static enum http1_event step(struct reading *r, char *bytes, size_t len, size_t *used)
{
    struct http1_found found;
    enum http1_event event = http1_read_next(&r->reader, bytes, len, used, &r->request, &found);
    CHECK(*used <= len);
    switch (event) {
    case HTTP1_MORE: break;
    case HTTP1_HEAD:
        CHECK(!r->in_body);
        check_head(r, bytes, *used);
        tell_head(r);
        r->in_body = true;
        r->body = 0;
        break;
    case HTTP1_BODY:
        CHECK(r->in_body && is_within(found.piece, bytes, *used));
        tell_piece(r, found.piece);
        break;
    case HTTP1_END:
        CHECK(r->in_body &&
              (r->request.content_length < 0 || r->body == (uint64_t)r->request.content_length));
        r->in_body = false;
        CHECK(http1_read_is_idle(&r->reader));
        tell(r, "end", SLICE(""));
        break;
    case HTTP1_ERROR:
        CHECK(found.status >= 400 && found.status <= 505 && found.detail);
        CHECK(buf_append_format(&r->told, "error %d %s\n", found.status, found.detail));
        r->failed = true;
    }
    return event;
}

// The unconsumed rest and `more` in a new block; then everything that can be told.
static void feed(struct reading *r, const uint8_t *more, size_t n)
{
    char *bytes = mem_alloc(r->len + n + !(r->len + n));
    CHECK(bytes);
    if (r->len) memcpy(bytes, r->bytes, r->len);
    if (n) memcpy(bytes + r->len, more, n);
    mem_free(r->bytes);
    r->bytes = bytes;
    r->len += n;
    size_t at = 0, used;
    enum http1_event event;
    do {
        event = step(r, bytes + at, r->len - at, &used);
        at += used;
    } while (event != HTTP1_MORE && event != HTTP1_ERROR);
    r->len -= at;
    memmove(bytes, bytes + at, r->len);
    CHECK(r->failed || r->len <= r->limits->max_header + 18u);
}

// Reads all in pieces of 1 to `most` bytes; what was told is the caller's.
static struct buf read_all(const uint8_t *data, size_t size, size_t most, uint32_t random,
                           const struct limits *limits)
{
    struct reading r = {.limits = limits};
    r.request.headers = (struct headers){.items = r.items, .cap = MAX_ITEMS};
    http1_read_init(&r.reader, limits);
    for (size_t at = 0; at < size && !r.failed;) {
        random = random * 1664525 + 1013904223;
        size_t n = most < size ? 1 + (random >> 8) % most : size;
        if (n > size - at) n = size - at;
        feed(&r, data + at, n);
        at += n;
    }
    mem_free(r.bytes);
    return r.told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct limits small = {
        .max_header = 160, .max_headers = 4, .max_target = 32, .max_body = 40};
    const struct limits ample = LIMITS_DEFAULT;
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619u;
    for (int turn = 0; turn < 2; turn++) {
        const struct limits *limits = turn ? &small : &ample;
        struct buf whole = read_all(data, size, size, 0, limits);
        const size_t most[] = {1, 7, 64};
        for (int i = 0; i < 3; i++) {
            struct buf cut = read_all(data, size, most[i], hash, limits);
            CHECK(slice_equals(buf_slice(&whole), buf_slice(&cut)));
            buf_reset(&cut);
        }
        buf_reset(&whole);
    }
    return 0;
}

// Fuzz target of the reader of HTTP/1.1 responses (libFuzzer). The first byte says what the
// requests were, the rest is what a server sends, up to its close. It is read whole, byte by byte
// and cut at random, each time from blocks of exactly the bytes that are there; all must tell the
// same, and what is told must agree with the bytes.
#include <stdlib.h>
#include "base/buf.h"
#include "base/mem.h"
#include "check.h"
#include "text/http1_read_response.h"

enum { MAX_ITEMS = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// One reading of the input, and what it told.
struct reading {
    struct http1_response_reader reader;
    struct http1_response response;
    struct header items[MAX_ITEMS];
    struct buf told;
    char *bytes;
    size_t len;
    unsigned methods, count; // a bit for each response: the request was a HEAD
    bool in_body, failed;
};

static void begin(struct reading *r)
{
    http1_read_response_begin(&r->reader, r->methods >> r->count++ % 8 & 1);
}

static bool is_within(struct slice s, const char *bytes, size_t len)
{
    return s.len == 0 || (s.ptr >= bytes && s.len <= len && s.ptr + s.len <= bytes + len);
}

static void tell(struct reading *r, const char *name, struct slice what)
{
    CHECK(buf_append_format(&r->told, "%s %zu ", name, what.len));
    CHECK(buf_append_slice(&r->told, what) && buf_append(&r->told, "\n", 1));
}

static void tell_head(struct reading *r, const char *bytes, size_t used)
{
    const struct headers *h = &r->response.headers;
    CHECK(!r->in_body && r->response.status >= 200 && r->response.status <= 999);
    CHECK(h->count <= MAX_ITEMS);
    CHECK(buf_append_format(&r->told, "head %d %d\n", r->response.status, r->response.is_chunked));
    for (uint32_t i = 0; i < h->count; i++) {
        struct slice name = h->items[i].name;
        CHECK(is_within(name, bytes, used) && is_within(h->items[i].value, bytes, used));
        for (size_t at = 0; at < name.len; at++) CHECK(name.ptr[at] < 'A' || name.ptr[at] > 'Z');
        tell(r, "name", name);
        tell(r, "value", h->items[i].value);
    }
    r->in_body = true;
}

// Bodies are told by byte, so that the pieces do not matter.
static void tell_piece(struct reading *r, const char *bytes, size_t used)
{
    struct slice piece = r->reader.piece;
    CHECK(r->in_body && piece.len && is_within(piece, bytes, used));
    for (size_t i = 0; i < piece.len; i++)
        CHECK(buf_append_format(&r->told, "body %02x\n", (unsigned char)piece.ptr[i]));
}

static void tell_end(struct reading *r)
{
    CHECK(r->in_body);
    r->in_body = false;
    CHECK(buf_append_format(&r->told, "end %d\n", r->reader.keep_alive));
    begin(r);
}

// False when there is no more to be had from these bytes.
static bool step(struct reading *r, char *bytes, size_t len, size_t *used)
{
    enum http1_response_event event =
        http1_read_response_next(&r->reader, bytes, len, used, &r->response);
    CHECK(*used <= len);
    switch (event) {
    case HTTP1_RESPONSE_MORE: return false;
    case HTTP1_RESPONSE_HEAD: tell_head(r, bytes, *used); return true;
    case HTTP1_RESPONSE_BODY: tell_piece(r, bytes, *used); return true;
    case HTTP1_RESPONSE_END: tell_end(r); return true;
    case HTTP1_RESPONSE_TRUNCATED: CHECK(false); return false;
    case HTTP1_RESPONSE_ERROR: break;
    }
    CHECK(r->reader.detail);
    CHECK(buf_append_format(&r->told, "error %s\n", r->reader.detail));
    r->failed = true;
    return false;
}

// The unconsumed rest and `more` in a new block; then everything that can be told.
static void feed(struct reading *r, const uint8_t *more, size_t n)
{
    char *bytes = mem_alloc(r->len + n + !(r->len + n));
    size_t at = 0, used;
    bool goes_on;
    CHECK(bytes);
    if (r->len) memcpy(bytes, r->bytes, r->len);
    if (n) memcpy(bytes + r->len, more, n);
    mem_free(r->bytes);
    r->bytes = bytes;
    r->len += n;
    do {
        goes_on = step(r, bytes + at, r->len - at, &used);
        at += used;
    } while (goes_on);
    r->len -= at;
    memmove(bytes, bytes + at, r->len);
    CHECK(r->failed || r->len <= HTTP1_RESPONSE_HEAD_MAX);
}

// Reads all in pieces of 1 to `most` bytes, then the close; what was told is the caller's.
static struct buf read_all(const uint8_t *data, size_t size, size_t most, uint32_t random,
                           unsigned methods)
{
    struct reading r = {.methods = methods};
    r.response.headers = (struct headers){.items = r.items, .cap = MAX_ITEMS};
    http1_read_response_init(&r.reader);
    begin(&r);
    for (size_t at = 0; at < size && !r.failed;) {
        random = random * 1664525 + 1013904223;
        size_t n = most < size ? 1 + (random >> 8) % most : size;
        if (n > size - at) n = size - at;
        feed(&r, data + at, n);
        at += n;
    }
    enum http1_response_event last = http1_read_response_finish(&r.reader, r.len);
    CHECK(r.failed == (last == HTTP1_RESPONSE_ERROR) && last != HTTP1_RESPONSE_HEAD &&
          last != HTTP1_RESPONSE_BODY);
    CHECK(buf_append_format(&r.told, "close %d\n", last));
    mem_free(r.bytes);
    return r.told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t hash = 2166136261u;
    if (!size) return 0;
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619u;
    unsigned methods = data[0];
    data++, size--;
    struct buf whole = read_all(data, size, size, 0, methods);
    const size_t most[] = {1, 2, 7, 64};
    for (int i = 0; i < 4; i++) {
        struct buf cut = read_all(data, size, most[i], hash, methods);
        CHECK(slice_equals(buf_slice(&whole), buf_slice(&cut)));
        buf_reset(&cut);
    }
    buf_reset(&whole);
    return 0;
}

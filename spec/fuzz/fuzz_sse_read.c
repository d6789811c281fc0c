// Fuzz target of the event-stream reader (libFuzzer). The input is what a server sends; its first
// byte chooses the limit of an event. It is read whole, byte by byte and cut at random, each time
// from blocks of exactly the bytes that are there: all must tell the same. What is told is written
// as an event stream again, which must say the same.
#include <stdlib.h>
#include "base/mem.h"
#include "check.h"
#include "text/sse.h"
#include "text/sse_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// One reading of the input, and what it told.
struct reading {
    struct sse_reader reader;
    size_t max_event;
    struct buf told;
    struct buf again; // the events, written anew
    enum sse_found last;
};

static void tell(struct reading *r, const char *name, struct slice what)
{
    CHECK(buf_append_format(&r->told, "%s %zu ", name, what.len));
    CHECK(buf_append_slice(&r->told, what) && buf_append(&r->told, "\n", 1));
}

static void tell_record(struct reading *r, enum sse_found found, const struct sse_record *e)
{
    CHECK(e->data.len <= r->max_event);
    if (found == SSE_COMMENT) {
        tell(r, "comment", e->data);
        return;
    }
    CHECK(e->type.len > 0 && e->type.len <= r->max_event && e->id.len <= r->max_event);
    CHECK(!e->id.len || !memchr(e->id.ptr, 0, e->id.len));
    tell(r, "type", e->type);
    tell(r, "data", e->data);
    tell(r, "id", e->id);
    struct sse_event event = {
        .event = e->type,
        .has_id = true,
        .id = e->id,
        .has_data = true,
        .data = e->data,
        .retry = -1,
    };
    // A NUL may be read in a name, and must not be written.
    if (memchr(e->type.ptr, 0, e->type.len)) event.event = SLICE("nul");
    CHECK(!sse_check(&event) && sse_write(&r->again, &event));
}

// A block of its own, so that a look beyond its end is found.
static void feed(struct reading *r, const uint8_t *more, size_t n)
{
    struct sse_record record;
    char *bytes = mem_alloc(n);
    size_t at = 0, used;
    CHECK(bytes);
    memcpy(bytes, more, n);
    do {
        r->last = sse_read_next(&r->reader, bytes + at, n - at, &used, &record);
        at += used;
        CHECK(at <= n);
        if (r->last == SSE_EVENT || r->last == SSE_COMMENT) tell_record(r, r->last, &record);
    } while (r->last == SSE_EVENT || r->last == SSE_COMMENT);
    CHECK(r->last == SSE_TOO_LARGE || (r->last == SSE_MORE && at == n));
    mem_free(bytes);
}

// Reads all in pieces of 1 to `most` bytes.
static void read_all(struct reading *r, const uint8_t *data, size_t size, size_t most,
                     uint32_t random)
{
    sse_read_init(&r->reader, r->max_event);
    r->last = SSE_MORE;
    for (size_t at = 0; at < size && r->last == SSE_MORE;) {
        random = random * 1664525 + 1013904223;
        size_t n = most < size ? 1 + (random >> 8) % most : size;
        if (n > size - at) n = size - at;
        feed(r, data + at, n);
        at += n;
    }
    // What fails, fails from then on.
    if (r->last == SSE_TOO_LARGE) feed(r, (const uint8_t *)"\n", 1);
    CHECK(buf_append_format(&r->told, "last %d retry %lld %d\n", r->last,
                            (long long)r->reader.retry,
                            r->last == SSE_MORE && sse_read_is_between(&r->reader)));
    sse_read_reset(&r->reader);
}

static void reset(struct reading *r)
{
    buf_reset(&r->told);
    buf_reset(&r->again);
}

// What was written anew is written the same again.
static void check_again(const struct reading *r)
{
    struct reading again = {.max_event = 4 * r->again.len + 16};
    read_all(&again, (const uint8_t *)r->again.ptr, r->again.len, r->again.len, 0);
    CHECK(again.last == SSE_MORE);
    CHECK(slice_equals(buf_slice(&again.again), buf_slice(&r->again)));
    reset(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t limits[] = {1 << 20, 8, 40, 200};
    if (!size) return 0;
    size_t max_event = limits[data[0] % 4];
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619u;
    data++, size--;
    struct reading whole = {.max_event = max_event};
    read_all(&whole, data, size, size, 0);
    check_again(&whole);
    const size_t most[] = {1, 2, 7, 64};
    for (int i = 0; i < 4; i++) {
        struct reading cut = {.max_event = max_event};
        read_all(&cut, data, size, most[i], hash);
        CHECK(slice_equals(buf_slice(&whole.told), buf_slice(&cut.told)));
        reset(&cut);
    }
    reset(&whole);
    return 0;
}

// The input's first byte says what the rest is: a segment as it stands; or a recipe for records,
// whose segment is then damaged at a place. Whatever it is, a scan in one piece and one in many
// agree, what was found is what stands there byte for byte, and damage costs nothing before it.
#include <assert.h>
#include <stdlib.h>
#include "base/buf.h"
#include "serve/journal_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 64 };

// What a scan has found, written again.
struct copy {
    struct journal_scan scan; // first
    struct buf bytes;
    unsigned count;
};

static void put_head(struct buf *to, const struct journal_head *head)
{
    char bytes[JOURNAL_HEAD];
    journal_write_head(bytes, head);
    assert(buf_append(to, bytes, sizeof(bytes)));
}

static void put_record(struct buf *to, const struct journal_record *record, uint64_t serial)
{
    char bytes[JOURNAL_RECORD_HEAD];
    journal_write_record(bytes, record, serial);
    assert(buf_append(to, bytes, sizeof(bytes)));
    assert(buf_append_slice(to, record->event) && buf_append_slice(to, record->data));
}

static bool on_record(struct journal_scan *s, const struct journal_record *record)
{
    struct copy *copy = (struct copy *)s;
    if (!copy->bytes.len) put_head(&copy->bytes, &s->head);
    put_record(&copy->bytes, record, s->head.serial);
    copy->count++;
    return true;
}

static void scan(struct copy *copy, struct slice bytes, size_t piece)
{
    size_t begin = 0, end = 0;
    *copy = (struct copy){.scan.on_record = on_record};
    while (end < bytes.len && copy->scan.found != JOURNAL_BAD &&
           copy->scan.found != JOURNAL_ALIEN) {
        end = bytes.len - end < piece ? bytes.len : end + piece;
        begin += journal_scan(&copy->scan, slice_of(bytes.ptr + begin, end - begin));
        assert(begin == copy->scan.offset && begin <= end);
    }
}

static unsigned check(struct slice bytes, size_t piece)
{
    struct copy whole, parts;
    scan(&whole, bytes, bytes.len);
    scan(&parts, bytes, piece ? piece : 1);
    assert(whole.count == parts.count && whole.scan.found == parts.scan.found);
    assert(whole.scan.offset == parts.scan.offset && whole.scan.next == parts.scan.next);
    assert(slice_equals(buf_slice(&whole.bytes), buf_slice(&parts.bytes)));
    assert(!whole.count || whole.bytes.len == whole.scan.offset);
    assert(!whole.count || memcmp(whole.bytes.ptr, bytes.ptr, whole.bytes.len) == 0);
    if (whole.scan.offset < bytes.len) assert(whole.scan.found != JOURNAL_GOOD);
    buf_reset(&whole.bytes);
    buf_reset(&parts.bytes);
    return whole.count;
}

// Records of lengths and bytes out of the input; the ends of each in `ends`.
static unsigned make(struct buf *to, struct slice recipe, uint64_t serial, size_t ends[MOST])
{
    struct journal_head head = {.serial = serial, .base = 5, .epoch = "0az9bcde"};
    unsigned count = 0;
    put_head(to, &head);
    while (count < MOST && recipe.len > 2) {
        size_t len = (unsigned char)recipe.ptr[0], event = (unsigned char)recipe.ptr[1] % 8;
        recipe = slice_from(recipe, 2);
        if (len > recipe.len) len = recipe.len;
        if (event > len) event = len;
        for (size_t i = 0; i < event; i++) {
            if (strchr("\r\n", recipe.ptr[i])) event = i; // NUL too
        }
        struct journal_record record = {.kind = JOURNAL_EVENT,
                                        .sequence = 5 + count,
                                        .event = {recipe.ptr, event},
                                        .data = {recipe.ptr + event, len - event}};
        put_record(to, &record, serial);
        recipe = slice_from(recipe, len);
        ends[count++] = to->len;
    }
    return count;
}

static void check_damaged(struct slice recipe, size_t at, unsigned mask, size_t piece)
{
    struct buf bytes = {0};
    size_t ends[MOST];
    unsigned count = make(&bytes, recipe, 3, ends), whole = 0;
    assert(check(buf_slice(&bytes), piece) == count);
    at %= bytes.len;
    while (whole < count && ends[whole] <= at) whole++;
    if (mask) {
        bytes.ptr[at] = (char)(bytes.ptr[at] ^ (char)mask);
        assert(check(buf_slice(&bytes), piece) == (at < JOURNAL_HEAD ? 0 : whole));
    } else {
        assert(check(slice_of(bytes.ptr, at), piece) == whole);
    }
    buf_reset(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 6) return 0;
    struct slice rest = {(const char *)data + 5, size - 5};
    if (data[0] % 2)
        check(rest, data[1]);
    else
        check_damaged(rest, (size_t)data[2] << 8 | data[3], data[4], data[1]);
    return 0;
}

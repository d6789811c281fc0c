#include "text/sse_read.h"

enum { BOM_LEN = 3, RETRY_DIGITS = 18 };

static const char sse_bom[BOM_LEN + 1] = "\xEF\xBB\xBF";

void sse_read_init(struct sse_reader *r, size_t max_event)
{
    *r = (struct sse_reader){.retry = -1, .max_event = max_event};
}

void sse_read_reset(struct sse_reader *r)
{
    buf_reset(&r->line);
    buf_reset(&r->data);
    buf_reset(&r->type);
    buf_reset(&r->id);
}

bool sse_read_is_between(const struct sse_reader *r)
{
    bool has_begun = !r->is_told && (r->data.len || r->type.len);
    return r->line.len == 0 && !has_begun && (r->bom == 0 || r->bom == BOM_LEN);
}

static bool sse_set(struct buf *to, struct slice value)
{
    to->len = 0;
    return buf_append_slice(to, value);
}

static bool sse_take_data(struct sse_reader *r, struct slice value)
{
    return buf_reserve(&r->data, value.len + 1) && buf_append_slice(&r->data, value) &&
           buf_append(&r->data, "\n", 1);
}

static void sse_take_retry(struct sse_reader *r, struct slice value)
{
    int64_t ms = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9') return;
        if (i < RETRY_DIGITS) ms = ms * 10 + (value.ptr[i] - '0');
    }
    if (value.len) r->retry = ms;
}

static bool sse_take_field(struct sse_reader *r, struct slice name, struct slice value)
{
    if (slice_equals(name, SLICE("data"))) return sse_take_data(r, value);
    if (slice_equals(name, SLICE("event"))) return sse_set(&r->type, value);
    if (slice_equals(name, SLICE("id")))
        return (value.len && memchr(value.ptr, 0, value.len)) || sse_set(&r->id, value);
    if (slice_equals(name, SLICE("retry"))) sse_take_retry(r, value);
    return true;
}

// The blank line. SSE_MORE when there is nothing to tell.
static enum sse_found sse_dispatch(struct sse_reader *r, struct sse_record *record)
{
    r->is_told = true;
    if (r->data.len == 0) return SSE_MORE;
    *record = (struct sse_record){
        .type = r->type.len ? buf_slice(&r->type) : SLICE("message"),
        .data = slice_of(r->data.ptr, r->data.len - 1),
        .id = buf_slice(&r->id),
    };
    return SSE_EVENT;
}

static enum sse_found sse_take_line(struct sse_reader *r, struct slice line,
                                    struct sse_record *record)
{
    if (line.len == 0) return sse_dispatch(r, record);
    const char *colon = memchr(line.ptr, ':', line.len);
    struct slice name = slice_of(line.ptr, colon ? (size_t)(colon - line.ptr) : line.len);
    struct slice value = slice_from(line, colon ? name.len + 1 : line.len);
    if (colon && name.len == 0) {
        *record = (struct sse_record){.data = value};
        return SSE_COMMENT;
    }
    if (value.len && value.ptr[0] == ' ') value = slice_from(value, 1);
    if (r->data.len + line.len > r->max_event) return SSE_TOO_LARGE;
    return sse_take_field(r, name, value) ? SSE_MORE : SSE_NO_MEMORY;
}

// Drops a byte order mark at the very beginning; what only looks like one is a line's beginning.
static bool sse_skip_bom(struct sse_reader *r, const char *bytes, size_t len, size_t *at)
{
    while (r->bom < BOM_LEN && *at < len) {
        if (bytes[*at] == sse_bom[r->bom]) {
            r->bom++;
            ++*at;
            continue;
        }
        if (!buf_append(&r->line, sse_bom, r->bom)) return false;
        r->bom = BOM_LEN;
    }
    return true;
}

// One line, or what there is of it, from *at on.
static enum sse_found sse_read_line(struct sse_reader *r, struct slice bytes, size_t *at,
                                    struct sse_record *record)
{
    size_t end = *at;
    while (end < bytes.len && bytes.ptr[end] != '\n' && bytes.ptr[end] != '\r') end++;
    struct slice line = slice_of(bytes.ptr + *at, end - *at);
    bool is_complete = end < bytes.len;
    if (r->line.len + line.len > r->max_event) return SSE_TOO_LARGE;
    *at = end + is_complete;
    if (r->line.len || !is_complete) {
        if (!buf_append_slice(&r->line, line)) return SSE_NO_MEMORY;
        line = buf_slice(&r->line);
    }
    if (!is_complete) return SSE_MORE;
    r->is_after_cr = bytes.ptr[end] == '\r';
    r->line.len = 0; // its bytes stay where they are until the next call
    return sse_take_line(r, line, record);
}

static void sse_begin_event(struct sse_reader *r)
{
    r->data.len = r->type.len = 0;
    r->is_told = false;
}

enum sse_found sse_read_next(struct sse_reader *r, const char *bytes, size_t len, size_t *used,
                             struct sse_record *record)
{
    enum sse_found found = SSE_MORE;
    size_t at = 0;
    *used = 0;
    if (r->has_failed) return SSE_TOO_LARGE;
    if (r->bom < BOM_LEN && !sse_skip_bom(r, bytes, len, &at)) found = SSE_NO_MEMORY;
    while (at < len && found == SSE_MORE) {
        if (r->is_told) sse_begin_event(r);
        bool is_rest = r->is_after_cr && bytes[at] == '\n';
        r->is_after_cr = false;
        if (is_rest)
            at++;
        else
            found = sse_read_line(r, slice_of(bytes, len), &at, record);
    }
    r->has_failed = found == SSE_TOO_LARGE || found == SSE_NO_MEMORY;
    *used = at;
    return found;
}

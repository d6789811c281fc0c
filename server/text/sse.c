#include "text/sse.h"

static const struct slice sse_event_name = SLICE_INIT("event: "),
                          sse_data_name = SLICE_INIT("data: "), sse_id_name = SLICE_INIT("id: "),
                          sse_retry_name = SLICE_INIT("retry: "),
                          sse_comment_name = SLICE_INIT(": ");

enum { SSE_DECIMAL = 20 };

static inline bool sse_is_break(char c)
{
    return c == '\n' || c == '\r';
}

// A word has a byte `c` when its exclusive or with a word full of `c` has a zero byte.
static inline uint64_t sse_zero_bytes(uint64_t word)
{
    return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
}

static inline bool sse_word_has_break(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return sse_zero_bytes(word ^ 0x0a0a0a0a0a0a0a0au) | sse_zero_bytes(word ^ 0x0d0d0d0d0d0d0d0du);
}

// The length of the first line: up to CR, LF or the end. Eight bytes at a time, as lines are short
// and two runs of memchr would cost more than they find.
static inline size_t sse_line_length(struct slice text)
{
    if (!text.len) return 0;
    const char *at = text.ptr, *end = at + text.len;
    while (end - at >= 8 && !sse_word_has_break(at)) at += 8;
    while (at < end && !sse_is_break(*at)) at++;
    return (size_t)(at - text.ptr);
}

// At least what sse_put_lines writes: CRLF counts twice, which only wastes a few bytes of room.
static size_t sse_lines_room(size_t name_len, struct slice text, size_t first_line)
{
    size_t lines = 1;
    for (size_t i = first_line; i < text.len; i++) lines += sse_is_break(text.ptr[i]);
    return text.len + lines * (name_len + 1);
}

static inline char *sse_put(char *to, struct slice s)
{
    if (s.len) memcpy(to, s.ptr, s.len);
    return to + s.len;
}

static inline char *sse_put_field(char *to, struct slice name, struct slice value)
{
    to = sse_put(sse_put(to, name), value);
    *to++ = '\n';
    return to;
}

static char *sse_put_lines(char *to, struct slice name, struct slice text, size_t first_line)
{
    size_t len = first_line;
    for (;;) {
        to = sse_put_field(to, name, slice_of(text.ptr, len));
        if (len == text.len) return to;
        bool is_pair = text.ptr[len] == '\r' && len + 1 < text.len && text.ptr[len + 1] == '\n';
        text = slice_from(text, len + 1 + is_pair);
        len = sse_line_length(text);
    }
}

static char *sse_put_decimal(char *to, uint64_t value)
{
    char digits[SSE_DECIMAL], *at = digits + SSE_DECIMAL;
    do *--at = (char)('0' + value % 10);
    while (value /= 10);
    return sse_put(to, slice_of(at, (size_t)(digits + SSE_DECIMAL - at)));
}

static bool sse_is_line(struct slice s)
{
    return !s.len || (sse_line_length(s) == s.len && !memchr(s.ptr, 0, s.len));
}

const char *sse_check(const struct sse_event *e)
{
    if (!sse_is_line(e->event)) return "event must not contain CR, LF or NUL";
    if (e->has_id && !sse_is_line(e->id)) return "id must not contain CR, LF or NUL";
    return NULL;
}

bool sse_write(struct buf *to, const struct sse_event *e)
{
    size_t data_line = e->has_data ? sse_line_length(e->data) : 0;
    size_t comment_line = e->has_comment ? sse_line_length(e->comment) : 0;
    // The blank line, and for each field its name and line end.
    size_t room = 1 + sse_event_name.len + e->event.len + 1 + sse_id_name.len + e->id.len + 1 +
                  sse_retry_name.len + SSE_DECIMAL + 1;
    if (e->has_data) room += sse_lines_room(sse_data_name.len, e->data, data_line);
    if (e->has_comment) room += sse_lines_room(sse_comment_name.len, e->comment, comment_line);
    char *start = buf_reserve(to, room), *at = start;
    if (!start) return false;
    if (e->has_comment) at = sse_put_lines(at, sse_comment_name, e->comment, comment_line);
    if (e->retry >= 0) {
        at = sse_put_decimal(sse_put(at, sse_retry_name), (uint64_t)e->retry);
        *at++ = '\n';
    }
    if (e->has_id) at = sse_put_field(at, sse_id_name, e->id);
    if (e->event.len) at = sse_put_field(at, sse_event_name, e->event);
    if (e->has_data) at = sse_put_lines(at, sse_data_name, e->data, data_line);
    *at++ = '\n';
    to->len += (size_t)(at - start);
    return true;
}

static inline size_t sse_record_room(struct slice event, struct slice data, size_t first_line)
{
    size_t room = sse_lines_room(sse_data_name.len, data, first_line) + 1;
    return event.len ? room + sse_event_name.len + event.len + 1 : room;
}

static inline char *sse_put_record(char *to, struct slice event, struct slice data,
                                   size_t first_line)
{
    if (event.len) to = sse_put_field(to, sse_event_name, event);
    if (first_line == data.len) // as most are
        to = sse_put_field(to, sse_data_name, data);
    else
        to = sse_put_lines(to, sse_data_name, data, first_line);
    *to++ = '\n';
    return to;
}

size_t sse_data_room(struct slice event, struct slice data)
{
    return sse_record_room(event, data, sse_line_length(data));
}

char *sse_put_data(char *to, struct slice event, struct slice data)
{
    return sse_put_record(to, event, data, sse_line_length(data));
}

bool sse_write_data(struct buf *to, struct slice event, struct slice data)
{
    size_t first_line = sse_line_length(data);
    char *start = buf_reserve(to, sse_record_room(event, data, first_line));
    if (!start) return false;
    to->len += (size_t)(sse_put_record(start, event, data, first_line) - start);
    return true;
}

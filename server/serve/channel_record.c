#include "serve/channel_record.h"

#include "text/http1_write.h"
#include "text/json.h"
#include "text/sse.h"

enum { CHANNEL_ID_LINE = 4 + CHANNEL_ID + 2 }; // "id: ", the id, line end and blank line

struct payload *channel_record_new(struct slice event, struct slice data)
{
    struct payload *record = payload_new(sse_data_room(event, data) + CHANNEL_ID_LINE);
    if (!record) return NULL;
    char *start = payload_data(record);
    // The blank line comes after the id.
    record->len = (size_t)(sse_put_data(start, event, data) - start) - 1;
    return record;
}

size_t channel_record_id(struct slice epoch, uint64_t sequence, char to[CHANNEL_ID])
{
    char digits[20], *at = digits + sizeof digits;
    do *--at = (char)('0' + sequence % 10);
    while (sequence /= 10);
    size_t len = (size_t)(digits + sizeof digits - at);
    memcpy(to, epoch.ptr, epoch.len);
    to[epoch.len] = '-';
    memcpy(to + epoch.len + 1, at, len);
    return epoch.len + 1 + len;
}

void channel_record_seal(struct payload *record, struct slice epoch, uint64_t sequence)
{
    char *at = payload_data(record) + record->len;
    memcpy(at, "id: ", 4);
    size_t len = channel_record_id(epoch, sequence, at + 4);
    memcpy(at + 4 + len, "\n\n", 2);
    record->len += 4 + len + 2;
    http1_write_frame(record);
}

// Neither an id nor a blank line holds a line end, so the id's line begins after the last but two.
static struct slice channel_record_id_line(const struct payload *record)
{
    struct slice s = payload_slice(record);
    size_t at = s.len - 2;
    while (at > 0 && s.ptr[at - 1] != '\n') at--;
    return slice_from(s, at);
}

struct slice channel_record_body(const struct payload *record)
{
    struct slice s = payload_slice(record);
    return slice_of(s.ptr, s.len - channel_record_id_line(record).len);
}

static bool channel_record_digits(struct slice s, uint64_t *value)
{
    *value = 0;
    if (s.len == 0 || s.len > 19 || (s.len > 1 && s.ptr[0] == '0')) return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return false;
        *value = *value * 10 + (uint64_t)(s.ptr[i] - '0');
    }
    return true;
}

bool channel_record_next_id(struct slice *rest, struct slice *epoch, uint64_t *sequence,
                            bool *is_good)
{
    if (rest->len == 0) return false;
    const char *comma = memchr(rest->ptr, ',', rest->len);
    struct slice part = slice_of(rest->ptr, comma ? (size_t)(comma - rest->ptr) : rest->len);
    *rest = slice_from(*rest, part.len + (comma != NULL));
    *is_good = part.len > CHANNEL_EPOCH + 1 && part.ptr[CHANNEL_EPOCH] == '-' &&
               channel_record_digits(slice_from(part, CHANNEL_EPOCH + 1), sequence);
    *epoch = *is_good ? slice_of(part.ptr, CHANNEL_EPOCH) : part;
    return true;
}

static const char channel_data_name[] = "data: ";
enum { CHANNEL_DATA_NAME = sizeof channel_data_name - 1 };

// Joins the data lines of a record with LF.
static bool channel_record_join(struct slice lines, struct buf *scratch)
{
    scratch->len = 0;
    if (!buf_reserve(scratch, lines.len)) return false;
    while (lines.len) {
        size_t end = (size_t)((const char *)memchr(lines.ptr, '\n', lines.len) - lines.ptr);
        buf_append(scratch, lines.ptr + CHANNEL_DATA_NAME, end + 1 - CHANNEL_DATA_NAME);
        lines = slice_from(lines, end + 1);
    }
    scratch->len--; // the last line's end
    return true;
}

bool channel_parse_event(const struct payload *record, struct channel_event *to,
                         struct buf *scratch)
{
    struct slice body = channel_record_body(record), id = channel_record_id_line(record);
    *to = (struct channel_event){.id = slice_of(id.ptr + 4, id.len - 6)};
    if (body.len > 7 && memcmp(body.ptr, "event: ", 7) == 0) {
        size_t end = (size_t)((const char *)memchr(body.ptr, '\n', body.len) - body.ptr);
        to->event = slice_of(body.ptr + 7, end - 7);
        body = slice_from(body, end + 1);
    }
    const char *end = memchr(body.ptr, '\n', body.len);
    if (end == body.ptr + body.len - 1) {
        to->data = slice_of(body.ptr + CHANNEL_DATA_NAME, body.len - 1 - CHANNEL_DATA_NAME);
        return true;
    }
    if (!channel_record_join(body, scratch)) return false;
    to->data = buf_slice(scratch);
    return true;
}

// A member of the line's object; text that is no UTF-8 cannot be said in JSON.
static bool channel_line_string(struct buf *to, const char *name, struct slice text)
{
    if (!buf_append_format(to, "\"%s\":", name)) return false;
    enum json_result result = json_write_string(to, text);
    return result == JSON_OK || (result == JSON_BAD_UTF8 && buf_append(to, "null", 4));
}

// Line ends between the tokens of JSON would end the line.
static bool channel_line_data(struct buf *to, struct slice data)
{
    size_t at;
    if (json_validate(data, &at) != NULL) return channel_line_string(to, "data", data);
    if (!buf_append(to, "\"data\":", 7)) return false;
    size_t start = to->len;
    if (!buf_append_slice(to, data)) return false;
    for (size_t i = start; i < to->len; i++) {
        if (to->ptr[i] == '\n' || to->ptr[i] == '\r') to->ptr[i] = ' ';
    }
    return true;
}

bool channel_record_line(struct buf *to, struct slice id, struct slice event, struct slice data)
{
    size_t start = to->len;
    bool ok = buf_append(to, "{", 1);
    if (ok && id.len) ok = channel_line_string(to, "id", id) && buf_append(to, ",", 1);
    if (ok && event.len) ok = channel_line_string(to, "event", event) && buf_append(to, ",", 1);
    ok = ok && channel_line_data(to, data) && buf_append(to, "}\n", 2);
    if (!ok) to->len = start;
    return ok;
}

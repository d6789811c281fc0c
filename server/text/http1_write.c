#include "text/http1_write.h"

#include <assert.h>

enum { HTTP1_DECIMAL = 20, HTTP1_LENGTH_LINE = 16 + HTTP1_DECIMAL + 2, HTTP1_FINISH = 128 };

static inline char *http1_put(char *to, struct slice s)
{
    if (s.len) memcpy(to, s.ptr, s.len);
    return to + s.len;
}

static char *http1_put_status(char *to, int status, struct slice reason)
{
    to = http1_put(to, SLICE("HTTP/1.1 "));
    to[0] = (char)('0' + status / 100);
    to[1] = (char)('0' + status / 10 % 10);
    to[2] = (char)('0' + status % 10);
    to[3] = ' ';
    return http1_put(http1_put(to + 4, reason), SLICE("\r\n"));
}

static char *http1_put_length(char *to, uint64_t value)
{
    char digits[HTTP1_DECIMAL], *at = digits + HTTP1_DECIMAL;
    do *--at = (char)('0' + value % 10);
    while (value /= 10);
    to = http1_put(to, SLICE("content-length: "));
    to = http1_put(to, slice_of(at, (size_t)(digits + HTTP1_DECIMAL - at)));
    return http1_put(to, SLICE("\r\n"));
}

static size_t http1_head_room(const struct headers *h, struct slice reason)
{
    size_t room = sizeof "HTTP/1.1 200 \r\n" + reason.len + HTTP1_LENGTH_LINE;
    for (uint32_t i = 0; i < h->count; i++) {
        room += h->items[i].name.len + h->items[i].value.len + 4;
    }
    return room;
}

bool http1_write_head(struct buf *to, const struct reply *reply)
{
    if (reply->http1.len) return buf_append_slice(to, reply->http1);
    assert(reply->status >= 100 && reply->status <= 599);
    const struct headers *h = &reply->headers;
    struct slice reason = slice_of_text(message_reason(reply->status));
    char *start = buf_reserve(to, http1_head_room(h, reason));
    if (!start) return false;
    char *at = http1_put_status(start, reply->status, reason);
    for (uint32_t i = 0; i < h->count; i++) {
        at = http1_put(http1_put(at, h->items[i].name), SLICE(": "));
        at = http1_put(http1_put(at, h->items[i].value), SLICE("\r\n"));
    }
    if (reply->content_length >= 0 && !message_is_bodyless(reply->status)) {
        at = http1_put_length(at, (uint64_t)reply->content_length);
    }
    to->len += (size_t)(at - start);
    return true;
}

bool http1_write_finish(struct buf *to, const struct http1_finish *f)
{
    assert(f->date.len <= 29);
    char *start = buf_reserve(to, HTTP1_FINISH), *at = start;
    if (!start) return false;
    if (f->date.len) {
        at = http1_put(http1_put(at, SLICE("date: ")), f->date);
        at = http1_put(at, SLICE("\r\n"));
    }
    if (f->close)
        at = http1_put(at, SLICE("connection: close\r\n"));
    else if (f->keep_alive)
        at = http1_put(at, SLICE("connection: keep-alive\r\n"));
    if (f->chunked) at = http1_put(at, SLICE("transfer-encoding: chunked\r\n"));
    if (f->server) at = http1_put(at, SLICE("server: photon\r\n"));
    at = http1_put(at, SLICE("\r\n"));
    to->len += (size_t)(at - start);
    return true;
}

size_t http1_write_chunk_head(char *to, size_t len)
{
    char digits[sizeof len * 2], *at = digits + sizeof digits;
    do *--at = "0123456789abcdef"[len & 15];
    while (len >>= 4);
    return (size_t)(http1_put(http1_put(to, slice_of(at, (size_t)(digits + sizeof digits - at))),
                              SLICE("\r\n")) -
                    to);
}

void http1_write_frame(struct payload *p)
{
    char head[HTTP1_CHUNK_HEAD];
    size_t len = http1_write_chunk_head(head, p->len);
    memcpy(payload_data(p) - len, head, len);
    memcpy(payload_data(p) + p->len, "\r\n", 2);
    p->head_len = (uint8_t)len;
    p->tail_len = 2;
}

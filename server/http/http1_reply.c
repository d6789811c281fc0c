#include "http/http1_conn.h"

#include "text/http1_write.h"

static struct http1_exchange *http1_of(struct exchange *x)
{
    return (struct http1_exchange *)x;
}

// No memory for output: the reply cannot be completed, and the peer must not take it for complete.
static void http1_fail(struct http1_exchange *e)
{
    e->is_aborted = true;
    e->h->is_last = true;
    http1_go_on(e->h);
}

// Whether the connection can carry another request after this one (RFC 9112 9.3, 9.6).
static bool http1_must_close(const struct http1_exchange *e)
{
    const struct http1 *h = e->h;
    const struct exchange *x = &e->x;
    return !x->request.keep_alive || x->wants_close || x->is_draining || h->is_broken ||
           h->host->is_draining || (x->request.is_http10 && e->is_chunked) ||
           (x->request.expects_continue && !e->has_continued && !e->has_request_end);
}

static void http1_head(struct exchange *x, const struct reply *reply)
{
    struct http1_exchange *e = http1_of(x);
    struct buf *out = conn_stage(e->h->conn);
    bool is_unknown = reply->content_length < 0 && !message_is_bodyless(reply->status);
    e->is_bodyless = x->is_head_request || message_is_bodyless(reply->status);
    e->is_chunked = is_unknown;
    e->left = reply->content_length < 0 ? 0 : (uint64_t)reply->content_length;
    if (http1_must_close(e)) e->h->is_last = true;
    struct http1_finish finish = {
        .date = loop_date(x->loop),
        .close = e->h->is_last,
        .keep_alive = x->request.is_http10 && !e->h->is_last,
        .chunked = is_unknown && !x->request.is_http10,
        .server = x->limits->server_header,
    };
    if (!http1_write_head(out, reply) || !http1_write_finish(out, &finish)) http1_fail(e);
}

// For HTTP/1.0 peers the end of the body is the end of the connection.
static bool http1_frames(const struct http1_exchange *e)
{
    return e->is_chunked && !e->x.request.is_http10;
}

// Bytes over the announced length would be taken for the next reply: they are our mistake and are
// dropped, never sent.
static size_t http1_clip(struct http1_exchange *e, size_t len)
{
    if (e->is_chunked) return len;
    if (len > e->left) len = e->left;
    e->left -= len;
    return len;
}

static void http1_body(struct exchange *x, struct slice piece)
{
    struct http1_exchange *e = http1_of(x);
    struct buf *out = conn_stage(e->h->conn);
    if (e->is_ended || e->is_aborted || e->is_bodyless) return;
    piece.len = http1_clip(e, piece.len);
    if (!buf_reserve(out, piece.len + HTTP1_CHUNK_HEAD + 2)) {
        http1_fail(e);
        return;
    }
    if (http1_frames(e)) out->len += http1_write_chunk_head(out->ptr + out->len, piece.len);
    buf_append_slice(out, piece);
    if (http1_frames(e)) buf_append(out, "\r\n", 2);
}

static void http1_body_payload(struct exchange *x, struct payload *p)
{
    struct http1_exchange *e = http1_of(x);
    bool is_framed = http1_frames(e);
    if (e->is_ended || e->is_aborted || e->is_bodyless) return;
    if (is_framed ? !p->head_len : !e->is_chunked && p->len > e->left) {
        http1_body(x, payload_slice(p));
        return;
    }
    http1_clip(e, p->len);
    conn_stage_payload(e->h->conn, p, is_framed ? payload_framed(p) : payload_slice(p));
}

// A stream that begins after the peer's end of file is over as those are that had begun before.
static void http1_flush(struct exchange *x)
{
    struct http1_exchange *e = http1_of(x);
    conn_flush(e->h->conn);
    if (http1_is_unread(e)) http1_go_on(e->h);
}

// Whether all can be sent as they are: framed by their makers, or for an HTTP/1.0 peer.
static bool http1_can_gather(const struct http1_exchange *e, struct payload *const *list,
                             size_t count)
{
    bool is_framed = http1_frames(e);
    if (!e->is_chunked) return false;
    for (size_t i = 0; is_framed && i < count; i++) {
        if (!list[i]->head_len || !list[i]->len) return false;
    }
    return true;
}

static size_t http1_payloads(struct exchange *x, struct payload *const *list, size_t count)
{
    struct http1_exchange *e = http1_of(x);
    if (e->is_ended || e->is_aborted || e->is_bodyless) return count;
    if (http1_can_gather(e, list, count))
        return conn_send_payloads(e->h->conn, list, count, http1_frames(e));
    for (size_t i = 0; i < count; i++) {
        if (list[i]->len) http1_body_payload(x, list[i]);
    }
    http1_flush(&e->x);
    return count;
}

static void http1_end(struct exchange *x)
{
    struct http1_exchange *e = http1_of(x);
    struct http1 *h = e->h;
    if (e->is_ended || e->is_aborted) return;
    if (!e->is_bodyless && !e->is_chunked && e->left > 0) {
        http1_fail(e);
        return;
    }
    if (http1_frames(e) && !e->is_bodyless &&
        !buf_append_slice(conn_stage(h->conn), SLICE("0\r\n\r\n"))) {
        http1_fail(e);
        return;
    }
    e->is_ended = true;
    if (h->is_running) return; // the driver sees it, and sends several replies at once
    conn_flush(h->conn);
    http1_go_on(h);
}

static void http1_abort(struct exchange *x)
{
    http1_fail(http1_of(x));
}

static size_t http1_backlog(const struct exchange *x)
{
    return conn_backlog(((const struct http1_exchange *)x)->h->conn);
}

static void http1_inform(struct exchange *x, int status)
{
    struct http1_exchange *e = http1_of(x);
    if (x->request.is_http10 || x->phase != EXCHANGE_OPEN) return;
    buf_append_format(conn_stage(e->h->conn), "HTTP/1.1 %d %s\r\n\r\n", status,
                      message_reason(status));
    conn_flush(e->h->conn);
}

static void http1_want(struct exchange *x, uint64_t credit)
{
    struct http1_exchange *e = http1_of(x);
    bool overflows = e->credit + credit < credit;
    e->credit = overflows ? UINT64_MAX : e->credit + credit;
    if (x->request.expects_continue && !e->has_continued) {
        e->has_continued = true;
        if (x->body_received == 0) http1_inform(x, 100);
    }
    http1_go_on(e->h);
}

const struct exchange_ops http1_ops = {
    .head = http1_head,
    .body = http1_body,
    .body_payload = http1_body_payload,
    .payloads = http1_payloads,
    .flush = http1_flush,
    .end = http1_end,
    .abort = http1_abort,
    .backlog = http1_backlog,
    .inform = http1_inform,
    .want = http1_want,
};

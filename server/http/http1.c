#include "http/http1_conn.h"

#include <unistd.h>
#include "base/mem.h"

enum {
    HTTP1_SPARE = 64,           // free exchanges kept
    HTTP1_DISCARD = 256 * 1024, // most unread request body that is read and dropped to keep a
                                // connection; beyond that it is closed
    HTTP1_IN_SLACK = 1024,      // kept input over max_header, so that the reader sees the excess
};

static struct http1_exchange *http1_exchange_new(struct http1 *h, const struct request *request)
{
    struct http1_host *host = h->host;
    struct http1_exchange *e = host->spare;
    if (e) {
        host->spare = e->node.next;
        host->spare_count--;
    } else if ((e = mem_alloc(sizeof *e)) == NULL) {
        return NULL;
    }
    *e = (struct http1_exchange){.h = h};
    exchange_init(&e->x, &http1_ops, host->loop, host->limits);
    e->x.request = *request;
    e->x.peer = &h->conn->peer;
    e->x.serial = host->serial++;
    e->x.is_head_request = request->method == METHOD_HEAD;
    return e;
}

static void http1_exchange_free(struct http1_exchange *e)
{
    struct http1_host *host = e->h->host;
    if (host->spare_count == HTTP1_SPARE) {
        mem_free(e);
        return;
    }
    e->node.next = host->spare;
    host->spare = e;
    host->spare_count++;
}

void http1_close(struct http1 *h)
{
    if (h->is_closing) return;
    h->is_closing = true;
    conn_close_gracefully(h->conn);
}

// The current exchange is over; the connection goes on or ends.
void http1_finish(struct http1 *h, enum exchange_end how)
{
    struct http1_exchange *e = h->current;
    h->current = NULL;
    exchange_over(&e->x, how);
    if (how == EXCHANGE_ABORTED && e->x.request.is_http10) {
        h->is_closing = true; // no framing tells an HTTP/1.0 peer that this is not the end
        conn_close(h->conn);
    }
    http1_exchange_free(e);
    if (h->is_last) http1_close(h);
}

static void http1_count_refusal(struct http1 *h, int status)
{
    struct counters *n = h->host->loop->counters;
    counters_add(status == 413   ? &n->limit_body
                 : status == 414 ? &n->limit_target
                 : status == 431 ? &n->limit_header
                                 : &n->bad_requests,
                 1);
}

// A head that cannot be served still gets its answer, through an exchange like any other.
bool http1_refuse(struct http1 *h, const struct http1_found *found)
{
    struct request request = {.method_name = SLICE("GET"), .path = SLICE("/")};
    h->is_last = h->is_broken = true;
    http1_count_refusal(h, found->status);
    h->current = http1_exchange_new(h, &request);
    if (!h->current) {
        http1_close(h);
        return false;
    }
    h->current->has_request_end = true;
    exchange_error(&h->current->x, found->status, found->detail, NULL);
    return true;
}

static void http1_serve(struct http1 *h, const struct request *request)
{
    struct http1_exchange *e = h->current = http1_exchange_new(h, request);
    if (!e) {
        http1_close(h);
        return;
    }
    e->has_request_end = e->x.is_body_complete = request->content_length == 0;
    h->host->handler->serve(h->host->handler, &e->x);
    if (!e->is_ended && !exchange_hold(&e->x)) exchange_abort(&e->x);
    http1_read_set_max_body(&h->reader, e->x.max_body);
}

// Reads one head and serves it. False when there is none yet.
static bool http1_begin(struct http1 *h, char *bytes, size_t len, size_t *at)
{
    struct http1_found found = {0};
    struct request request = {.headers = {h->host->scratch, 0, h->host->scratch_cap}};
    size_t used = 0;
    enum http1_event event =
        http1_read_next(&h->reader, bytes + *at, len - *at, &used, &request, &found);
    *at += used;
    if (event == HTTP1_ERROR) return http1_refuse(h, &found);
    if (event != HTTP1_HEAD) return false;
    if (request.content_length == 0) {
        event = http1_read_next(&h->reader, bytes + *at, len - *at, &used, &request, &found);
        *at += used;
        if (event == HTTP1_ERROR) return http1_refuse(h, &found);
    }
    http1_serve(h, &request);
    return true;
}

// A piece of the request's body, for the handler or, when that has ended, for nobody.
static void http1_take(struct http1 *h, struct http1_exchange *e, struct slice piece)
{
    if (e->is_ended) {
        e->discarded += piece.len;
        return;
    }
    e->credit -= e->credit < piece.len ? e->credit : piece.len;
    if (!exchange_take_body(&e->x, piece, false)) h->is_last = h->is_broken = true;
}

static void http1_fail_input(struct http1 *h, struct http1_exchange *e, int status)
{
    h->is_last = h->is_broken = true;
    e->has_request_end = true;
    http1_count_refusal(h, status);
    if (!e->is_ended) exchange_fail_body(&e->x, status);
}

// True when more of the request's body is to be read.
static bool http1_reads_body(struct http1 *h, const struct http1_exchange *e)
{
    const struct request *r = &e->x.request;
    if (e->has_request_end || h->is_broken) return false;
    if (!e->is_ended) return e->credit > 0;
    if (h->is_last) return false;
    if (e->discarded > HTTP1_DISCARD || r->content_length > HTTP1_DISCARD) {
        h->is_last = true;
        return false;
    }
    return true;
}

// Moves the current exchange on. True when it is over and the next one may begin.
static bool http1_advance(struct http1 *h, char *bytes, size_t len, size_t *at)
{
    struct http1_exchange *e = h->current;
    while (!e->is_aborted && http1_reads_body(h, e)) {
        struct http1_found found = {0};
        size_t used = 0;
        enum http1_event event =
            http1_read_next(&h->reader, bytes + *at, len - *at, &used, NULL, &found);
        *at += used;
        if (event == HTTP1_MORE && !h->conn->is_eof) return false;
        if (event == HTTP1_MORE) http1_fail_input(h, e, 400);
        if (event == HTTP1_BODY) http1_take(h, e, found.piece);
        if (event == HTTP1_ERROR) http1_fail_input(h, e, found.status);
        if (event == HTTP1_END) {
            e->has_request_end = true;
            if (!e->is_ended) exchange_take_body(&e->x, (struct slice){0}, true);
        }
    }
    if (!e->is_ended && !e->is_aborted) return false;
    http1_finish(h, e->is_aborted ? EXCHANGE_ABORTED : EXCHANGE_DONE);
    return true;
}

static size_t http1_run(struct http1 *h, char *bytes, size_t len)
{
    size_t at = 0;
    h->is_running = true;
    while (!h->is_closing) {
        if (h->current && !http1_advance(h, bytes, len, &at)) break;
        if (h->is_closing || at == len) break;
        if (!h->current && !http1_begin(h, bytes, len, &at)) break;
    }
    h->is_running = false;
    return h->is_closing ? len : at;
}

static size_t http1_on_bytes(struct conn *c, char *bytes, size_t len)
{
    struct http1 *h = c->state;
    size_t taken = http1_run(h, bytes, len);
    if (c->is_eof && !h->current) http1_close(h); // half a request, and no more to come
    if (!h->is_closing) conn_flush(c);
    http1_arm(h, taken < len);
    return taken;
}

// Everything that the peer has sent was taken, and no more can come.
static void http1_end_of_input(struct http1 *h)
{
    struct http1_exchange *e = h->current;
    if (!e) {
        http1_close(h);
    } else if (!e->has_request_end && e->is_ended) {
        h->is_last = true;
        http1_finish(h, EXCHANGE_DONE);
    } else if (http1_reads_body(h, e)) {
        http1_fail_input(h, e, 400);
    }
}

// An exchange has ended outside of on_bytes, or wants more of its body, or the input has ended.
static void http1_on_turn(struct loop_turn *turn)
{
    struct http1 *h = list_entry(turn, struct http1, turn);
    struct http1_exchange *e = h->current;
    if (h->is_closing) return;
    if (e && e->is_aborted) {
        h->is_last = true;
        http1_finish(h, EXCHANGE_ABORTED);
    } else if (e && http1_is_unread(e)) {
        h->is_last = true;
        http1_finish(h, EXCHANGE_GONE);
    } else if (e && e->is_ended && (e->has_request_end || h->is_last)) {
        http1_finish(h, EXCHANGE_DONE);
    }
    if (!h->is_closing && h->conn->is_eof && h->conn->in.len == 0) http1_end_of_input(h);
    http1_arm(h, h->conn->in.len > 0);
    if (!h->is_closing) conn_poke(h->conn);
}

void http1_go_on(struct http1 *h)
{
    if (!h->is_running) loop_next_turn(h->host->loop, &h->turn);
}

// The peer sends no more, or has hung up with bytes still to be read. What has been received is
// answered all the same, then the connection closes; a stream has nobody left to read it.
static void http1_on_eof(struct conn *c)
{
    struct http1 *h = c->state;
    struct http1_exchange *e = h->current;
    if (e && http1_is_unread(e)) {
        h->is_last = true;
        http1_finish(h, EXCHANGE_GONE);
    } else if (c->is_eof) {
        http1_go_on(h);
    }
}

static void http1_on_drain(struct conn *c)
{
    struct http1 *h = c->state;
    if (h->current) exchange_notify_drain(&h->current->x);
}

static void http1_on_close(struct conn *c, enum conn_end how)
{
    struct http1 *h = c->state;
    struct counters *n = h->host->loop->counters;
    if (how == CONN_STALLED) counters_add(&n->timeout_write, 1);
    counters_add(&n->connections, -1);
    h->is_closing = true;
    h->is_last = false;
    if (h->current) http1_finish(h, EXCHANGE_GONE);
    timer_stop(&h->timer);
    loop_forget(&h->turn);
    list_remove(&h->node);
    mem_free(h);
}

static const struct conn_protocol http1_protocol = {
    .on_bytes = http1_on_bytes,
    .on_eof = http1_on_eof,
    .on_drain = http1_on_drain,
    .on_close = http1_on_close,
};

bool http1_accept(struct http1_host *host, int fd, const struct peer *peer)
{
    struct http1 *h = mem_zalloc(sizeof *h);
    struct conn *c = h ? conn_open(host->loop, fd, peer, &http1_protocol, h) : NULL;
    if (!c) {
        if (!h) close(fd); // conn_open has closed it otherwise
        mem_free(h);
        return false;
    }
    h->conn = c;
    h->host = host;
    h->turn.on_turn = http1_on_turn;
    http1_read_init(&h->reader, host->limits);
    conn_limit_in(c, host->limits->max_header + HTTP1_IN_SLACK);
    c->write_timeout = host->limits->write_timeout;
    list_append(&host->conns, &h->node);
    counters_add(&host->loop->counters->connections, 1);
    counters_add(&host->loop->counters->connections_accepted, 1);
    http1_arm(h, false);
    return true;
}

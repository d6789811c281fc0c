#include "bench_client.h"

#include <stdio.h>
#include "text/mime.h"

enum { CLIENT_REST_FIRST = 10, CLIENT_REST_LONGEST = 200 };

static void client_drop_conn(struct bench_client *c)
{
    if (!c->conn) return;
    c->conn->state = NULL;
    conn_close(c->conn);
    c->conn = NULL;
}

static uint64_t client_seconds(double seconds)
{
    return (uint64_t)(seconds * 1e9);
}

// A stall is a time in which nothing at all came, not even a comment.
static void client_note_silence(struct bench_client *c, uint64_t now)
{
    if (now - c->last_bytes > client_seconds(c->run->options->stall)) c->run->result->stalls++;
    c->last_bytes = now;
}

static void client_on_rested(struct timer *timer)
{
    bench_client_go_on(list_entry(timer, struct bench_client, timer));
}

// Counts an error, which is what has become of the ticket. The rest keeps a server that fails at
// once from being asked in a tight loop.
static void client_fail(struct bench_client *c, enum bench_error kind, const char *detail)
{
    struct bench_result *r = c->run->result;
    uint64_t now = uv_hrtime();
    if (c->is_stream) client_note_silence(c, now);
    if (r->errors[kind]++ == 0) snprintf(r->examples[kind], BENCH_EXAMPLE, "%s", detail);
    bench_run_slot(c->run, now)->errors++;
    client_drop_conn(c);
    c->is_stream = c->has_ticket = false;
    c->state = CLIENT_RESTING;
    c->rest_ms = c->rest_ms ? c->rest_ms * 2 : CLIENT_REST_FIRST;
    if (c->rest_ms > CLIENT_REST_LONGEST) c->rest_ms = CLIENT_REST_LONGEST;
    timer_start(&c->run->loop, &c->timer, c->rest_ms, client_on_rested);
}

static void client_on_timeout(struct timer *timer)
{
    struct bench_client *c = list_entry(timer, struct bench_client, timer);
    char detail[BENCH_EXAMPLE];
    snprintf(detail, sizeof(detail), "no response within %g s", c->run->options->timeout);
    client_fail(c, BENCH_TIMEOUT, detail);
}

static void client_count_error_status(struct bench_client *c)
{
    struct bench_result *r = c->run->result;
    if (r->errors[BENCH_STATUS]++ == 0)
        snprintf(r->examples[BENCH_STATUS], BENCH_EXAMPLE, "status %u", c->status);
    bench_run_slot(c->run, uv_hrtime())->errors++;
}

static bool client_is_event_stream(const struct http1_response *response)
{
    const struct header *type = headers_find(&response->headers, SLICE("content-type"));
    return type && slice_equals_nocase(mime_essence(type->value), SLICE("text/event-stream"));
}

static void client_begin_stream(struct bench_client *c, uint64_t now)
{
    timer_stop(&c->timer);
    c->is_stream = true;
    c->last_bytes = now;
    c->last_event = 0;
    c->run->result->streams++;
    sse_read_reset(&c->sse);
    sse_read_init(&c->sse, BENCH_MAX_EVENT);
}

// The first answer that is no error decides what is measured.
static void client_take_head(struct bench_client *c, const struct http1_response *response,
                             uint64_t now)
{
    struct bench_result *r = c->run->result;
    bool is_event_stream = client_is_event_stream(response);
    char detail[BENCH_EXAMPLE];
    c->status = (uint16_t)response->status;
    if (c->status < BENCH_MAX_STATUS) r->statuses[c->status]++;
    if (r->mode == BENCH_AUTO && c->status < 400)
        r->mode = is_event_stream ? BENCH_SSE : BENCH_HTTP;
    if (r->mode != BENCH_SSE) return;
    snprintf(detail, sizeof(detail), "status %u", c->status);
    if (c->status != 200)
        client_fail(c, BENCH_STATUS, detail);
    else if (!is_event_stream && c->run->options->mode == BENCH_AUTO)
        client_fail(c, BENCH_TYPE, "the response is not text/event-stream");
    else
        client_begin_stream(c, now);
}

static void client_note_events(struct bench_client *c, uint64_t count, uint64_t now)
{
    struct bench_result *r = c->run->result;
    struct bench_slot *slot = bench_run_slot(c->run, now);
    uint64_t gap = c->last_event ? now - c->last_event : 0;
    if (c->last_event)
        histogram_add(&r->gap, gap, 1);
    else
        histogram_add(&r->first_event, now - c->due, 1);
    histogram_add(&r->gap, 0, count - 1); // they were readable at once
    r->events += count;
    slot->units += count;
    if (gap > slot->longest) slot->longest = gap;
    c->last_event = now;
    c->rest_ms = 0;
}

static void client_take_piece(struct bench_client *c, struct slice piece, uint64_t now)
{
    struct sse_record record;
    uint64_t events = 0;
    size_t used;
    enum sse_found found;
    while ((found = sse_read_next(&c->sse, piece.ptr, piece.len, &used, &record)) != SSE_MORE) {
        piece = slice_from(piece, used);
        events += found == SSE_EVENT;
        c->run->result->comments += found == SSE_COMMENT;
        if (found == SSE_TOO_LARGE || found == SSE_NO_MEMORY) break;
    }
    if (events) client_note_events(c, events, now);
    if (found == SSE_TOO_LARGE) client_fail(c, BENCH_FRAMING, "an event is larger than 1 MiB");
    if (found == SSE_NO_MEMORY) client_fail(c, BENCH_FRAMING, "not enough memory for an event");
}

static void client_note_response(struct bench_client *c, uint64_t now)
{
    struct bench_result *r = c->run->result;
    struct bench_slot *slot = bench_run_slot(c->run, now);
    uint64_t latency = now - c->due;
    r->responses++;
    slot->units++;
    if (latency > slot->longest) slot->longest = latency;
    histogram_add(&r->latency, latency, 1);
    histogram_add(&r->service, now - c->sent, 1);
}

static void client_take_end(struct bench_client *c, size_t extra, uint64_t now)
{
    timer_stop(&c->timer);
    if (extra) {
        client_fail(c, BENCH_FRAMING, "bytes after the end of a response");
        return;
    }
    if (c->is_stream && !sse_read_is_between(&c->sse)) {
        client_fail(c, BENCH_TRUNCATED, "a stream ended within an event");
        return;
    }
    if (c->is_stream)
        c->run->result->responses++;
    else if (c->status >= 400)
        client_count_error_status(c);
    else
        client_note_response(c, now);
    if (!c->reader.keep_alive) client_drop_conn(c);
    c->is_stream = c->has_ticket = false;
    c->rest_ms = 0;
    bench_client_go_on(c);
}

// The peer has sent, or closed, what nobody had asked for: a server may give up an idle connection.
static void client_renew(struct bench_client *c)
{
    list_remove(&c->node);
    client_drop_conn(c);
    bench_client_go_on(c);
}

static void client_note_bytes(struct bench_client *c, uint64_t now)
{
    if (!c->has_first_byte) histogram_add(&c->run->result->first_byte, now - c->due, 1);
    c->has_first_byte = true;
    if (c->is_stream) client_note_silence(c, now);
}

static size_t client_on_bytes(struct conn *conn, char *bytes, size_t len)
{
    struct bench_client *c = conn->state;
    struct header items[BENCH_MAX_FIELDS];
    struct http1_response response = {.headers = {.items = items, .cap = BENCH_MAX_FIELDS}};
    uint64_t now = uv_hrtime();
    size_t at = 0, used;
    if (c->state != CLIENT_WAITING) {
        client_renew(c);
        return len;
    }
    client_note_bytes(c, now);
    while (c->conn == conn) {
        enum http1_response_event event =
            http1_read_response_next(&c->reader, bytes + at, len - at, &used, &response);
        at += used;
        if (event == HTTP1_RESPONSE_MORE) return at;
        if (event == HTTP1_RESPONSE_HEAD) client_take_head(c, &response, now);
        if (event == HTTP1_RESPONSE_BODY && c->is_stream)
            client_take_piece(c, c->reader.piece, now);
        if (event == HTTP1_RESPONSE_ERROR) client_fail(c, BENCH_FRAMING, c->reader.detail);
        if (event != HTTP1_RESPONSE_END) continue;
        client_take_end(c, len - at, now);
        break;
    }
    return len;
}

static void client_on_eof(struct conn *conn)
{
    struct bench_client *c = conn->state;
    if (c->state != CLIENT_WAITING) {
        client_renew(c);
        return;
    }
    enum http1_response_event event = http1_read_response_finish(&c->reader, conn->in.len);
    if (event == HTTP1_RESPONSE_END)
        client_take_end(c, 0, uv_hrtime());
    else if (event == HTTP1_RESPONSE_MORE)
        client_fail(c, BENCH_TRUNCATED, "closed without a response");
    else
        client_fail(c, BENCH_TRUNCATED, "closed before the end of the response");
}

static void client_on_drain(struct conn *conn)
{
    (void)conn; // nothing more is to be sent
}

static void client_on_close(struct conn *conn, enum conn_end how)
{
    struct bench_client *c = conn->state;
    if (!c) return; // given up before
    c->conn = NULL;
    if (c->state != CLIENT_WAITING)
        client_renew(c);
    else if (how == CONN_RESET)
        client_fail(c, BENCH_RESET, "the connection was reset");
    else
        client_fail(c, BENCH_TRUNCATED, "the connection was closed");
}

static const struct conn_protocol client_protocol = {
    .on_bytes = client_on_bytes,
    .on_eof = client_on_eof,
    .on_drain = client_on_drain,
    .on_close = client_on_close,
};

static void client_on_connected(void *owner, int fd)
{
    struct bench_client *c = owner;
    const struct peer peer = {.family = AF_UNIX}; // nobody asks
    c->connector = NULL;
    if (fd >= 0) c->conn = conn_open(&c->run->loop, fd, &peer, &client_protocol, c);
    if (fd < 0) {
        client_fail(c, BENCH_CONNECT, strerror(-fd));
    } else if (!c->conn) {
        client_fail(c, BENCH_CONNECT, "not enough memory");
    } else {
        histogram_add(&c->run->result->connect, uv_hrtime() - c->connect_begun, 1);
        http1_read_response_init(&c->reader);
        bench_client_go_on(c);
    }
    bench_run_connected(c->run);
}

void bench_client_init(struct bench_client *c, struct bench_run *run)
{
    *c = (struct bench_client){.run = run};
}

void bench_client_go_on(struct bench_client *c)
{
    if (!c->has_ticket && !bench_run_take_ticket(c->run)) {
        client_drop_conn(c);
        c->state = CLIENT_PARKED;
        bench_run_park(c->run);
        return;
    }
    c->has_ticket = true;
    c->state = c->conn ? CLIENT_READY : CLIENT_QUEUED;
    if (c->conn)
        bench_run_pace(c->run, c);
    else
        bench_run_connect(c->run, c);
}

void bench_client_connect(struct bench_client *c)
{
    struct bench_run *run = c->run;
    uint32_t timeout = (uint32_t)(run->options->timeout * 1000);
    c->state = CLIENT_CONNECTING;
    c->connect_begun = uv_hrtime();
    // The target's order of addresses is the connector's to change.
    c->connector = connector_open(&run->loop, (struct connector_target *)&run->options->target,
                                  timeout, client_on_connected, c);
    if (c->connector) return;
    client_fail(c, BENCH_CONNECT, "not enough memory");
    bench_run_connected(run);
}

void bench_client_send(struct bench_client *c, uint64_t due)
{
    const struct bench_options *o = c->run->options;
    c->state = CLIENT_WAITING;
    c->sent = uv_hrtime();
    c->due = due ? due : c->sent;
    c->has_first_byte = false;
    http1_read_response_begin(&c->reader, slice_equals(o->method, SLICE("HEAD")));
    timer_start(&c->run->loop, &c->timer, (uint64_t)(o->timeout * 1000), client_on_timeout);
    if (buf_append_slice(conn_stage(c->conn), buf_slice(&o->request)))
        conn_flush(c->conn);
    else
        client_fail(c, BENCH_CONNECT, "not enough memory");
}

static void client_note_unfinished(struct bench_client *c, uint64_t now)
{
    struct bench_result *r = c->run->result;
    uint64_t age = now - c->due;
    r->unfinished++;
    if (age > r->oldest) r->oldest = age;
    // What is due and has no answer has waited at least that long.
    if (c->run->options->rate > 0) histogram_add(&r->latency, age, 1);
}

void bench_client_stop(struct bench_client *c, uint64_t now)
{
    if (c->is_stream) {
        c->run->result->streams_open++;
        client_note_silence(c, now);
    } else if (c->state == CLIENT_WAITING) {
        client_note_unfinished(c, now);
    }
    timer_stop(&c->timer);
    list_remove(&c->node);
    if (c->connector) connector_cancel(c->connector);
    c->connector = NULL;
    client_drop_conn(c);
    sse_read_reset(&c->sse);
    c->state = CLIENT_PARKED;
}

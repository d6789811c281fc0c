// What a connection waits for, and how long it may.
#include "http/http1_conn.h"

static uint32_t http1_timeout(const struct http1 *h)
{
    const struct limits *limits = h->host->limits;
    if (h->wait == HTTP1_WAIT_IDLE) return limits->idle_timeout;
    return h->wait == HTTP1_WAIT_HEADER ? limits->header_timeout : limits->body_timeout;
}

static enum http1_wait http1_wait_now(const struct http1 *h, bool has_rest)
{
    const struct http1_exchange *e = h->current;
    if (h->is_closing) return HTTP1_WAIT_NONE;
    if (!e) {
        return has_rest || !http1_read_is_idle(&h->reader) ? HTTP1_WAIT_HEADER : HTTP1_WAIT_IDLE;
    }
    return !e->has_request_end && (e->credit > 0 || e->is_ended) ? HTTP1_WAIT_BODY
                                                                 : HTTP1_WAIT_NONE;
}

static void http1_timed_out(struct http1 *h)
{
    struct counters *n = h->host->loop->counters;
    struct http1_found found = {.status = 408, .detail = "the request did not arrive in time"};
    if (h->wait == HTTP1_WAIT_IDLE) {
        counters_add(&n->timeout_idle, 1);
        h->is_last = true;
        http1_close(h);
    } else if (h->wait == HTTP1_WAIT_HEADER) {
        counters_add(&n->timeout_header, 1);
        if (http1_refuse(h, &found)) http1_finish(h, EXCHANGE_DONE);
    } else {
        counters_add(&n->timeout_body, 1);
        h->is_last = h->is_broken = true;
        if (h->current->is_ended)
            http1_finish(h, EXCHANGE_DONE);
        else
            exchange_fail_body(&h->current->x, 408);
    }
}

// One timer stands for all waits. It is not moved at every request: it looks again when it fires.
static void http1_on_time(struct timer *timer)
{
    struct http1 *h = list_entry(timer, struct http1, timer);
    uint64_t due = h->since + http1_timeout(h);
    if (h->wait == HTTP1_WAIT_NONE || h->is_closing) return;
    if (h->host->loop->now < due) {
        timer_start(h->host->loop, timer, due - h->host->loop->now, http1_on_time);
        return;
    }
    http1_timed_out(h);
}

// A head has header_timeout as a whole, or a peer could send it a byte at a time for hours; a body
// and an idle connection count from the last progress.
void http1_arm(struct http1 *h, bool has_rest)
{
    struct loop *loop = h->host->loop;
    enum http1_wait wait = http1_wait_now(h, has_rest);
    if (wait != HTTP1_WAIT_HEADER || h->wait != wait) h->since = loop->now;
    h->wait = (uint8_t)wait;
    if (wait == HTTP1_WAIT_NONE) return;
    uint64_t due = h->since + http1_timeout(h);
    if (timer_is_running(&h->timer) && h->timer.at <= due) return;
    timer_start(loop, &h->timer, due - loop->now, http1_on_time);
}

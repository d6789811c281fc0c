// serve_probe: an exchange without a peer. Its protocol writes down what it is given.
#ifndef PHOTON_SPEC_SERVE_PROBE_H
#define PHOTON_SPEC_SERVE_PROBE_H

#include <string.h>
#include "base/mem.h"
#include "http/exchange.h"
#include "report.h"
#include "text/http1_write.h"

enum { PROBE_ROOM = 1 << 20 };

struct probe {
    struct exchange x; // first, so that one pointer is both
    struct header headers[8];
    char head[4096], body[PROBE_ROOM];
    size_t head_len, body_len;
    unsigned heads, payloads, ends, aborts;
    int64_t content_length;
};

static struct probe probe;
static struct loop probe_loop;
static struct limits probe_limits = LIMITS_DEFAULT;

// A fixed buffer of its own, so that the probe allocates nothing either.
static void probe_head(struct exchange *x, const struct reply *reply)
{
    struct probe *p = (struct probe *)x;
    struct buf to = {p->head, 0, sizeof p->head};
    p->heads++;
    p->content_length = reply->content_length;
    CHECK(http1_write_head(&to, reply) && to.ptr == p->head);
    p->head_len = to.len;
}

static void probe_body(struct exchange *x, struct slice piece)
{
    struct probe *p = (struct probe *)x;
    if (!CHECK(piece.len <= sizeof p->body - p->body_len)) return;
    memcpy(p->body + p->body_len, piece.ptr, piece.len);
    p->body_len += piece.len;
}

static void probe_body_payload(struct exchange *x, struct payload *payload)
{
    ((struct probe *)x)->payloads++;
    probe_body(x, payload_slice(payload));
}

static void probe_end(struct exchange *x)
{
    ((struct probe *)x)->ends++;
}

static void probe_abort(struct exchange *x)
{
    ((struct probe *)x)->aborts++;
}

static const struct exchange_ops probe_ops = {
    .head = probe_head,
    .body = probe_body,
    .body_payload = probe_body_payload,
    .end = probe_end,
    .abort = probe_abort,
};

// A new exchange in the place of the last one, with that method.
static inline struct exchange *probe_begin(enum method method)
{
    probe.head_len = probe.body_len = 0;
    probe.heads = probe.payloads = probe.ends = probe.aborts = 0;
    exchange_init(&probe.x, &probe_ops, &probe_loop, &probe_limits);
    probe.x.request.method = method;
    probe.x.request.headers = (struct headers){probe.headers, 0, 8};
    probe.x.is_head_request = method == METHOD_HEAD;
    return &probe.x;
}

static inline void probe_add(const char *name, const char *value)
{
    headers_add(&probe.x.request.headers, NULL, slice_of_text(name), slice_of_text(value));
}

static inline struct slice probe_head_text(void)
{
    return slice_of(probe.head, probe.head_len);
}

static inline struct slice probe_body_text(void)
{
    return slice_of(probe.body, probe.body_len);
}

static inline bool probe_has(struct slice text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

static inline void probe_finish(void)
{
    exchange_over(&probe.x, EXCHANGE_DONE);
    arena_pool_reset(&probe_loop.arenas);
}

#endif

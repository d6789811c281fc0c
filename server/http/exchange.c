#include "http/exchange.h"

#include "text/json.h"

void exchange_init(struct exchange *x, const struct exchange_ops *ops, struct loop *loop,
                   const struct limits *limits)
{
    *x = (struct exchange){.ops = ops, .loop = loop, .limits = limits};
    x->arena.pool = &loop->arenas;
    x->max_body = limits->max_body;
    list_init(&x->watches);
}

void exchange_over(struct exchange *x, enum exchange_end how)
{
    struct list *node;
    if (x->phase == EXCHANGE_OVER) return;
    x->phase = EXCHANGE_OVER;
    while ((node = list_take(&x->watches)) != NULL) {
        struct exchange_watch *w = list_entry(node, struct exchange_watch, node);
        if (w->on_over) w->on_over(w, how);
    }
    if (x->on_release) x->on_release(x);
    buf_reset(&x->body);
    arena_reset(&x->arena);
}

// Watches may unwatch themselves while they are told: each is moved to a local list, then back.
static void exchange_tell(struct exchange *x, bool is_drain)
{
    struct list told, *node;
    list_init(&told);
    list_move_all(&told, &x->watches);
    while ((node = list_take(&told)) != NULL) {
        struct exchange_watch *w = list_entry(node, struct exchange_watch, node);
        list_append(&x->watches, node);
        if (is_drain && w->on_drain) w->on_drain(w);
        if (!is_drain && w->on_body) w->on_body(w);
    }
}

void exchange_notify_drain(struct exchange *x)
{
    exchange_tell(x, true);
}

void exchange_fail_body(struct exchange *x, int status)
{
    if (x->is_body_complete || x->body_error) return;
    x->body_error = status;
    exchange_tell(x, false);
}

bool exchange_take_body(struct exchange *x, struct slice piece, bool is_last)
{
    if (x->body_error) return false;
    bool fits = x->body_received + piece.len <= x->max_body;
    if (!fits || !buf_append_slice(&x->body, piece)) {
        exchange_fail_body(x, fits ? 503 : 413);
        return false;
    }
    x->body_received += piece.len;
    x->is_body_complete = is_last;
    exchange_tell(x, false);
    return true;
}

bool exchange_hold(struct exchange *x)
{
    struct request copy;
    if (x->is_held) return true;
    if (!message_copy_request(&copy, &x->request, &x->arena)) return false;
    x->request = copy;
    x->is_held = true;
    return true;
}

void exchange_watch(struct exchange *x, struct exchange_watch *w)
{
    list_append(&x->watches, &w->node);
}

void exchange_unwatch(struct exchange_watch *w)
{
    list_remove(&w->node);
}

void exchange_head(struct exchange *x, const struct reply *reply)
{
    if (x->phase != EXCHANGE_OPEN) return;
    x->phase = EXCHANGE_HEADED;
    x->status = reply->status;
    x->ops->head(x, reply);
}

void exchange_body(struct exchange *x, struct slice piece)
{
    if (x->phase != EXCHANGE_HEADED || piece.len == 0) return;
    x->bytes_out += piece.len;
    x->ops->body(x, piece);
}

void exchange_body_payload(struct exchange *x, struct payload *p)
{
    if (x->phase != EXCHANGE_HEADED || p->len == 0) return;
    x->bytes_out += p->len;
    x->ops->body_payload(x, p);
}

static size_t exchange_payloads_singly(struct exchange *x, struct payload *const *list,
                                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i]->len) x->ops->body_payload(x, list[i]);
    }
    x->ops->flush(x);
    return count;
}

size_t exchange_payloads(struct exchange *x, struct payload *const *list, size_t count)
{
    if (x->phase != EXCHANGE_HEADED) return count;
    size_t taken = x->ops->payloads ? x->ops->payloads(x, list, count)
                                    : exchange_payloads_singly(x, list, count);
    for (size_t i = 0; i < taken; i++) x->bytes_out += list[i]->len;
    return taken;
}

void exchange_flush(struct exchange *x)
{
    if (x->phase != EXCHANGE_OVER) x->ops->flush(x);
}

void exchange_end(struct exchange *x)
{
    if (x->phase == EXCHANGE_HEADED) x->ops->end(x);
}

void exchange_abort(struct exchange *x)
{
    if (x->phase != EXCHANGE_OVER) x->ops->abort(x);
}

size_t exchange_backlog(const struct exchange *x)
{
    return x->phase == EXCHANGE_OVER ? 0 : x->ops->backlog(x);
}

void exchange_want(struct exchange *x, uint64_t credit)
{
    if (x->phase == EXCHANGE_OVER || x->is_body_complete || x->body_error) return;
    if (x->request.content_length > 0 && (uint64_t)x->request.content_length > x->max_body) {
        x->body_error = 413; // before a waiting peer is told to go on
        x->wants_close = true;
        return;
    }
    x->ops->want(x, credit);
}

void exchange_reply(struct exchange *x, struct reply *reply, struct slice body)
{
    reply->content_length = (int64_t)body.len;
    exchange_head(x, reply);
    exchange_body(x, body);
    exchange_end(x);
}

// A bijection of 64 bits (splitmix64's finalizer), so that consecutive serials look unrelated.
static uint64_t exchange_scramble(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void exchange_id(const struct exchange *x, char to[EXCHANGE_ID])
{
    uint64_t bits = exchange_scramble(x->serial);
    for (int i = EXCHANGE_ID - 1; i >= 0; i--, bits >>= 4) to[i] = "0123456789abcdef"[bits & 15];
}

// Members of RFC 9457 in the order of its examples.
static bool exchange_write_problem(struct buf *to, int status, const char *detail, struct slice id)
{
    bool ok = buf_append_format(to, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d",
                                message_reason(status), status);
    if (ok && detail) {
        ok = buf_append_slice(to, SLICE(",\"detail\":")) &&
             json_write_string(to, slice_of_text(detail)) == JSON_OK;
    }
    return ok && buf_append_format(to, ",\"request_id\":\"%.*s\"}\n", (int)id.len, id.ptr);
}

void exchange_error(struct exchange *x, int status, const char *detail, const struct headers *extra)
{
    char id[EXCHANGE_ID];
    struct buf body = {0};
    struct reply reply = {.status = status};
    if (x->phase != EXCHANGE_OPEN) {
        exchange_abort(x);
        return;
    }
    exchange_id(x, id);
    headers_add(&reply.headers, &x->arena, SLICE("content-type"),
                SLICE("application/problem+json"));
    headers_add(&reply.headers, &x->arena, SLICE("x-request-id"), slice_of(id, EXCHANGE_ID));
    for (uint32_t i = 0; extra && i < extra->count; i++) {
        headers_add(&reply.headers, &x->arena, extra->items[i].name, extra->items[i].value);
    }
    if (!exchange_write_problem(&body, status, detail, slice_of(id, EXCHANGE_ID))) body.len = 0;
    exchange_reply(x, &reply, buf_slice(&body));
    buf_reset(&body);
}

#include <stdio.h>
#include "http/memory_private.h"

enum { MEMORY_FULL = 65536 }; // staged bytes that leave without a flush

static struct memory *memory_of(struct exchange *x)
{
    return (struct memory *)x;
}

static void memory_abort(struct exchange *x)
{
    memory_of(x)->is_aborted = true;
    memory_go_on(memory_of(x));
}

static bool memory_copy_header(struct memory *m, struct slice name, struct slice value)
{
    name = arena_copy(&m->arena, name);
    value = arena_copy(&m->arena, value);
    return name.ptr && value.ptr && headers_add(&m->headers, &m->arena, name, value);
}

// What every protocol tells besides the given fields: length and date.
static bool memory_add_own(struct memory *m, const struct reply *reply)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)reply->content_length);
    bool has_length = reply->content_length >= 0 && !message_is_bodyless(reply->status);
    if (has_length &&
        !memory_copy_header(m, SLICE("content-length"), slice_of(digits, (size_t)len))) {
        return false;
    }
    return memory_copy_header(m, SLICE("date"), loop_date(m->host->loop));
}

static void memory_head(struct exchange *x, const struct reply *reply)
{
    struct memory *m = memory_of(x);
    bool ok = true;
    m->is_bodyless = x->is_head_request || message_is_bodyless(reply->status);
    m->content_length = reply->content_length;
    m->left = reply->content_length < 0 ? UINT64_MAX : (uint64_t)reply->content_length;
    for (uint32_t i = 0; ok && i < reply->headers.count; i++) {
        ok = memory_copy_header(m, reply->headers.items[i].name, reply->headers.items[i].value);
    }
    if (!ok || !memory_add_own(m, reply)) memory_abort(x);
}

// The head goes with the first bytes. Of a slow reader only the body is slowed down.
static void memory_flush(struct exchange *x)
{
    struct memory *m = memory_of(x);
    if (x->phase == EXCHANGE_OPEN || m->is_aborted) return;
    m->has_head = true;
    memory_send(m);
}

static void memory_body(struct exchange *x, struct slice piece)
{
    struct memory *m = memory_of(x);
    if (m->is_bodyless || m->is_ended || m->is_aborted) return;
    if (piece.len > m->left) piece.len = (size_t)m->left;
    if (m->content_length >= 0) m->left -= piece.len;
    if (!buf_append_slice(&m->staged, piece))
        memory_abort(x);
    else if (m->staged.len >= MEMORY_FULL)
        memory_flush(x);
}

static void memory_body_payload(struct exchange *x, struct payload *p)
{
    memory_body(x, payload_slice(p));
}

static void memory_end(struct exchange *x)
{
    struct memory *m = memory_of(x);
    if (m->is_ended || m->is_aborted) return;
    if (m->content_length >= 0 && m->left > 0 && !m->is_bodyless) {
        memory_abort(x); // less than was announced
        return;
    }
    memory_flush(x);
    m->is_ended = true;
}

static size_t memory_backlog(const struct exchange *x)
{
    const struct memory *m = (const struct memory *)x;
    return m->staged.len + m->queue.len;
}

static void memory_inform(struct exchange *x, int status)
{
    (void)x;
    (void)status; // a client in the same process does not wait for 100
}

static void memory_want(struct exchange *x, uint64_t credit)
{
    struct memory *m = memory_of(x);
    bool overflows = m->credit + credit < credit;
    m->credit = overflows ? UINT64_MAX : m->credit + credit;
    memory_go_on(m);
}

const struct exchange_ops memory_ops = {
    .head = memory_head,
    .body = memory_body,
    .body_payload = memory_body_payload,
    .flush = memory_flush,
    .end = memory_end,
    .abort = memory_abort,
    .backlog = memory_backlog,
    .inform = memory_inform,
    .want = memory_want,
};

#include "wire/conn_private.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include "base/mem.h"

enum {
    CONN_COPY = 4096,     // parts of payloads up to that size are copied rather than shared
    CONN_GATHER = 64,     // pieces in one write
    CONN_COMPACT = 32768, // sent bytes that may stand before unsent ones in `out`
};

// What waits before `out`: a part of a payload, or an older `out`, whose memory it owns.
struct conn_piece {
    struct list node;
    struct payload *payload;
    struct buf owned;
    struct slice left;
};

static size_t conn_unsent(const struct conn *c)
{
    return c->out.len - c->out_sent;
}

static void conn_release_out(struct conn *c)
{
    c->out_sent = 0;
    loop_give_buffer(c->loop, &c->out);
}

static void conn_free_piece(struct conn *c, struct conn_piece *piece)
{
    list_remove(&piece->node);
    payload_release(piece->payload);
    loop_give_buffer(c->loop, &piece->owned);
    mem_free(piece);
}

void conn_drop_output(struct conn *c)
{
    while (!list_is_empty(&c->pieces))
        conn_free_piece(c, list_entry(c->pieces.next, struct conn_piece, node));
    c->queued = 0;
    conn_release_out(c);
}

// No memory: the bytes that follow must not go out without these.
static bool conn_add_piece(struct conn *c, struct slice part, struct payload *p, struct buf *owned)
{
    struct conn_piece *piece = mem_zalloc(sizeof(*piece));
    if (!piece) {
        conn_end(c, CONN_CLOSED);
        return false;
    }
    piece->left = part;
    if (p) piece->payload = payload_retain(p);
    if (owned) piece->owned = *owned;
    list_append(&c->pieces, &piece->node);
    c->queued += part.len;
    return true;
}

// Makes a piece of what is staged, so that something can be queued behind it.
static bool conn_seal_out(struct conn *c)
{
    if (conn_unsent(c) == 0) return true;
    struct slice rest = slice_from(buf_slice(&c->out), c->out_sent);
    if (!conn_add_piece(c, rest, NULL, &c->out)) return false;
    c->out = (struct buf){0};
    c->out_sent = 0;
    return true;
}

// `len` bytes have gone.
static void conn_consume(struct conn *c, size_t len)
{
    counters_add(&c->loop->counters->bytes_out, (int64_t)len);
    while (len && !list_is_empty(&c->pieces)) {
        struct conn_piece *piece = list_entry(c->pieces.next, struct conn_piece, node);
        size_t n = len < piece->left.len ? len : piece->left.len;
        piece->left = slice_from(piece->left, n);
        c->queued -= n;
        len -= n;
        if (piece->left.len == 0) conn_free_piece(c, piece);
    }
    c->out_sent += len;
    assert(c->out_sent <= c->out.len);
    if (c->out_sent == c->out.len) {
        conn_release_out(c);
    } else if (c->out_sent >= CONN_COMPACT && c->out_sent >= conn_unsent(c)) {
        buf_consume(&c->out, c->out_sent);
        c->out_sent = 0;
    }
}

// After a write: what it calls for.
static void conn_settle(struct conn *c, size_t sent)
{
    c->is_blocked = conn_backlog(c) > 0;
    if (!c->is_blocked && c->is_lingering)
        conn_linger(c);
    else if (c->is_blocked && c->write_timeout && (sent || !c->is_watched))
        conn_watch_progress(c);
    conn_watch(c);
}

// The hostile build writes short: large writes are halved, small ones go byte by byte.
static void conn_shorten(struct msghdr *message)
{
#ifdef PHOTON_HOSTILE
    size_t len = message->msg_iov->iov_len;
    message->msg_iovlen = 1;
    message->msg_iov->iov_len = len > 1024 ? len / 2 : 1;
#else
    (void)message;
#endif
}

// Returns how much was sent, 0 when the socket is full. A failure ends the conn; then -1.
static ssize_t conn_send(struct conn *c, struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    conn_shorten(&message);
    ssize_t sent;
    do
        sent = message.msg_iovlen == 1
                   ? send(c->fd, parts->iov_base, parts->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                   : sendmsg(c->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno == EAGAIN) return 0;
    if (sent < 0)
        conn_fail(c, errno);
    else
        c->sent += (uint64_t)sent;
    return sent;
}

static struct iovec conn_iovec(struct slice s)
{
    return (struct iovec){.iov_base = (char *)s.ptr, .iov_len = s.len};
}

static size_t conn_gather(struct conn *c, struct iovec parts[CONN_GATHER])
{
    size_t count = 0;
    for (struct list *at = c->pieces.next; at != &c->pieces && count < CONN_GATHER; at = at->next)
        parts[count++] = conn_iovec(list_entry(at, struct conn_piece, node)->left);
    if (count < CONN_GATHER && conn_unsent(c))
        parts[count++] = conn_iovec(slice_from(buf_slice(&c->out), c->out_sent));
    return count;
}

static void conn_write(struct conn *c)
{
    struct iovec parts[CONN_GATHER];
    ssize_t sent = conn_send(c, parts, conn_gather(c, parts));
    if (sent < 0) return;
    conn_consume(c, (size_t)sent);
    conn_settle(c, (size_t)sent);
}

void conn_flush(struct conn *c)
{
    if (c->is_closing || c->is_shut) {
        conn_drop_output(c);
    } else if (conn_backlog(c) == 0) {
        conn_release_out(c);
    } else if (!c->is_blocked) {
        conn_write(c);
    }
}

void conn_write_on(struct conn *c)
{
    if (!c->is_blocked) return;
    conn_write(c);
    if (!c->is_blocked && !c->is_closing && !c->is_lingering) c->protocol->on_drain(c);
}

void conn_stage_payload(struct conn *c, struct payload *p, struct slice part)
{
    if (c->is_closing || c->is_shut || part.len == 0) return;
    if (part.len <= CONN_COPY) {
        if (!buf_append_slice(conn_stage(c), part)) conn_end(c, CONN_CLOSED);
    } else if (conn_seal_out(c)) {
        conn_add_piece(c, part, p, NULL);
    }
}

// Sends `part` without taking a reference first. Nothing waits, or only a little in `out`.
static void conn_send_borrowed(struct conn *c, struct payload *p, struct slice part)
{
    struct iovec parts[2] = {conn_iovec(buf_slice(&c->out)), conn_iovec(part)};
    size_t staged = c->out.len;
    ssize_t sent = staged ? conn_send(c, parts, 2) : conn_send(c, parts + 1, 1);
    if (sent < 0) return;
    size_t of_part = (size_t)sent > staged ? (size_t)sent - staged : 0;
    counters_add(&c->loop->counters->bytes_out, (int64_t)of_part);
    conn_consume(c, (size_t)sent - of_part);
    conn_stage_payload(c, p, slice_from(part, of_part));
    if (!c->is_closing) conn_settle(c, (size_t)sent);
}

void conn_send_payload(struct conn *c, struct payload *p, struct slice part)
{
    bool is_waiting = c->is_blocked || !list_is_empty(&c->pieces) || c->out_sent;
    bool is_cheaper_copied = c->out.len && part.len <= CONN_COPY;
    if (c->is_closing || c->is_shut || is_waiting || is_cheaper_copied || part.len == 0) {
        conn_stage_payload(c, p, part);
        conn_flush(c);
    } else {
        conn_send_borrowed(c, p, part);
    }
}

static struct slice conn_part(const struct payload *p, bool is_framed)
{
    return is_framed ? payload_framed(p) : payload_slice(p);
}

// How many of `count` payloads `len` bytes have covered; one that they end in, or before, is
// queued.
static size_t conn_take_payloads(struct conn *c, struct payload *const *list, size_t count,
                                 bool is_framed, size_t len)
{
    for (size_t i = 0; i < count; i++) {
        struct slice part = conn_part(list[i], is_framed);
        if (len < part.len) {
            conn_add_piece(c, slice_from(part, len), list[i], NULL);
            return i + 1;
        }
        len -= part.len;
    }
    return count;
}

size_t conn_send_payloads(struct conn *c, struct payload *const *list, size_t count, bool is_framed)
{
    struct iovec parts[CONN_GATHER];
    size_t n = 0, taken = 0, staged;
    if (!c->is_closing && (!list_is_empty(&c->pieces) || c->out_sent)) conn_flush(c);
    if (c->is_closing || c->is_shut) return count;
    if (c->is_blocked) return 0;
    staged = c->out.len;
    if (staged) parts[n++] = conn_iovec(buf_slice(&c->out));
    if (count > CONN_GATHER - n) count = CONN_GATHER - n;
    for (size_t i = 0; i < count; i++) parts[n++] = conn_iovec(conn_part(list[i], is_framed));
    ssize_t sent = conn_send(c, parts, n);
    if (sent < 0) return count;
    size_t of_out = (size_t)sent < staged ? (size_t)sent : staged, len = (size_t)sent - of_out;
    counters_add(&c->loop->counters->bytes_out, (int64_t)len);
    if (staged) conn_consume(c, of_out);
    if (of_out == staged) taken = conn_take_payloads(c, list, count, is_framed, len);
    if (!c->is_closing) conn_settle(c, (size_t)sent);
    return taken;
}

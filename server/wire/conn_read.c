#include "wire/conn_private.h"

#include <assert.h>
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

// A peer that fills every read leaves the others their turn after so many.
enum { CONN_READ_ROUNDS = 4 };

// The hostile build reads as short as it writes: half of much, what is little byte by byte.
static size_t conn_read_size(const struct conn *c, size_t room)
{
#ifdef PHOTON_HOSTILE
    int waiting = 0;
    ioctl(c->fd, FIONREAD, &waiting);
    size_t size = waiting > 1024 ? (size_t)waiting / 2 : 1;
    return size < room ? size : room;
#else
    (void)c;
    return room;
#endif
}

size_t conn_read_room(const struct conn *c)
{
    if (c->is_eof) return 0;
    if (c->is_lingering) return LOOP_READ_BUFFER;
    if (c->is_read_stopped || c->in.len >= c->max_in) return 0;
    size_t room = c->max_in - c->in.len;
    return room < LOOP_READ_BUFFER ? room : LOOP_READ_BUFFER;
}

static size_t conn_deliver(struct conn *c, char *bytes, size_t len)
{
    c->is_delivering = true;
    size_t taken = c->protocol->on_bytes(c, bytes, len);
    c->is_delivering = false;
    assert(taken <= len);
    return taken;
}

void conn_deliver_kept(struct conn *c)
{
    size_t taken = conn_deliver(c, c->in.ptr, c->in.len);
    if (c->is_closing) return;
    buf_consume(&c->in, taken);
    if (c->in.len == 0 || c->is_lingering) buf_reset(&c->in);
}

// Bytes that are taken at once, as those of most requests are, are never copied.
static void conn_take(struct conn *c, size_t len)
{
    char *bytes = c->loop->read_buffer;
    size_t taken = 0;
    bool is_behind = c->in.len > 0;
    if (!is_behind) {
        taken = conn_deliver(c, bytes, len);
        if (c->is_closing || c->is_lingering || taken == len) return;
    }
    if (!buf_append(&c->in, bytes + taken, len - taken))
        conn_end(c, CONN_CLOSED);
    else if (is_behind)
        conn_deliver_kept(c);
}

static void conn_drop_input(struct conn *c, size_t len)
{
    if (!c->is_shut) return;
    if (len >= c->linger_left)
        conn_end(c, CONN_CLOSED);
    else
        c->linger_left -= (uint32_t)len;
}

static void conn_read_end(struct conn *c)
{
    c->is_eof = true;
    if (!c->is_lingering)
        c->protocol->on_eof(c);
    else if (c->is_shut)
        conn_end(c, CONN_CLOSED);
}

// One read of the socket. False when it has no more for now.
static bool conn_read_once(struct conn *c)
{
    size_t size = conn_read_size(c, conn_read_room(c));
    if (size == 0 || c->is_closing) return false;
    ssize_t len = recv(c->fd, c->loop->read_buffer, size, 0);
    if (len < 0) {
        if (errno != EAGAIN && errno != EINTR) conn_fail(c, errno);
        return false;
    }
    if (len == 0) {
        conn_read_end(c);
        return false;
    }
    counters_add(&c->loop->counters->bytes_in, len);
    if (c->is_lingering)
        conn_drop_input(c, (size_t)len);
    else
        conn_take(c, (size_t)len);
    return (size_t)len == size;
}

void conn_read(struct conn *c)
{
    for (int round = 0; round < CONN_READ_ROUNDS && conn_read_once(c); round++) continue;
    conn_watch(c);
}

void conn_hang_up(struct conn *c)
{
    c->is_hung_up = true;
    conn_watch(c);
    if (!c->is_lingering) c->protocol->on_eof(c);
}

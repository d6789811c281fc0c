#include "wire/conn_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/mem.h"

enum { CONN_LINGER_MS = 2000, CONN_LINGER_BYTES = 1 << 20 };

static int conn_socket_error(const struct conn *c)
{
    int error = 0;
    socklen_t len = sizeof(error);
    return getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : 0;
}

static void conn_on_poll(uv_poll_t *poll, int status, int events)
{
    struct conn *c = list_entry(poll, struct conn, poll);
    loop_refresh(c->loop);
    if (status < 0) { // POLLERR: libuv has stopped polling
        conn_fail(c, conn_socket_error(c));
        return;
    }
    if (events & UV_WRITABLE) conn_write_on(c);
    if (c->is_closing) return;
    if (events & UV_READABLE)
        conn_read(c);
    else if (events & UV_DISCONNECT)
        conn_hang_up(c);
}

// A level-triggered poll would report an end of file or a hang-up for ever, so what has been seen
// is polled no more.
static unsigned conn_wanted_events(const struct conn *c)
{
    unsigned events = c->is_blocked ? UV_WRITABLE : 0;
    if (conn_read_room(c)) return events | UV_READABLE;
    return c->is_eof || c->is_hung_up ? events : events | UV_DISCONNECT;
}

void conn_watch(struct conn *c)
{
    if (c->is_closing || c->is_delivering) return;
    unsigned events = conn_wanted_events(c);
    if (events == c->events) return;
    c->events = (uint8_t)events;
    if (events == 0)
        uv_poll_stop(&c->poll);
    else if (uv_poll_start(&c->poll, (int)events, conn_on_poll) != 0)
        conn_end(c, CONN_CLOSED);
}

static void conn_on_news(struct loop_turn *turn)
{
    struct conn *c = list_entry(turn, struct conn, news);
    if (c->in.len && !c->is_lingering) conn_deliver_kept(c);
    conn_watch(c);
}

struct conn *conn_open(struct loop *loop, int fd, const struct peer *peer,
                       const struct conn_protocol *protocol, void *state)
{
    struct conn *c = mem_zalloc(sizeof(*c));
    if (!c || uv_poll_init(&loop->uv, &c->poll, fd) != 0) {
        mem_free(c);
        close(fd);
        return NULL;
    }
    c->loop = loop;
    c->fd = fd;
    c->peer = *peer;
    c->protocol = protocol;
    c->state = state;
    c->max_in = LOOP_READ_BUFFER;
    c->news.on_turn = conn_on_news;
    list_init(&c->pieces);
    conn_watch(c);
    return c;
}

void conn_poke(struct conn *c)
{
    if (!c->is_closing) loop_next_turn(c->loop, &c->news);
}

void conn_stop_reading(struct conn *c, bool stop)
{
    c->is_read_stopped = stop;
    conn_watch(c);
}

static void conn_on_closed(uv_handle_t *poll)
{
    struct conn *c = list_entry(poll, struct conn, poll);
    loop_refresh(c->loop);
    c->protocol->on_close(c, (enum conn_end)c->end);
    conn_drop_output(c);
    buf_reset(&c->in);
    mem_free(c);
}

// The descriptor is closed at once, as libuv allows; the protocol may stand above this call with
// bytes of `in` in its hands, so memory waits for the close callback.
void conn_end(struct conn *c, enum conn_end how)
{
    if (c->is_closing) return;
    c->is_closing = true;
    c->end = c->is_shut ? CONN_CLOSED : how;
    timer_stop(&c->stall);
    loop_forget(&c->news);
    conn_drop_output(c);
    conn_end_watch(c);
    uv_close((uv_handle_t *)&c->poll, conn_on_closed);
    close(c->fd);
    c->fd = -1;
}

void conn_fail(struct conn *c, int error)
{
    conn_end(c, error == ETIMEDOUT ? CONN_STALLED : CONN_RESET);
}

void conn_close(struct conn *c)
{
    conn_end(c, CONN_CLOSED);
}

void conn_close_gracefully(struct conn *c)
{
    if (c->is_closing || c->is_lingering) return;
    c->is_lingering = true;
    conn_flush(c);
    if (!c->is_blocked && !c->is_shut && !c->is_closing) conn_linger(c);
    conn_watch(c); // what still comes is read and dropped, lest the peer wait for that
}

static void conn_on_linger_end(struct timer *stall)
{
    conn_end(list_entry(stall, struct conn, stall), CONN_CLOSED);
}

void conn_linger(struct conn *c)
{
    // After its end of file the peer has nothing in flight that could provoke a reset.
    if (c->is_eof || shutdown(c->fd, SHUT_WR) != 0) {
        conn_end(c, CONN_CLOSED);
        return;
    }
    c->is_shut = true;
    c->linger_left = CONN_LINGER_BYTES;
    timer_start(c->loop, &c->stall, CONN_LINGER_MS, conn_on_linger_end);
}

size_t conn_peer_text(const struct peer *peer, char to[46])
{
    if (peer->family != AF_INET && peer->family != AF_INET6)
        return (size_t)snprintf(to, 46, "unix");
    return inet_ntop(peer->family, peer->ip, to, 46) ? strlen(to) : 0;
}

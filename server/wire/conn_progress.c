// Whether a full socket's peer takes anything.
//
// TCP_USER_TIMEOUT finds a peer that acknowledges nothing, but it also ends one that reads slowly
// and never lets the window open wide. So while a socket is full we look ourselves whether anything
// of what it holds is taken, however little.
#include "wire/conn_private.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { CONN_LOOKS = 4 }; // in a write_timeout

static void conn_on_look(struct timer *stall);

static uint64_t conn_acknowledged(const struct conn *c)
{
    int held = 0;
    return ioctl(c->fd, SIOCOUTQ, &held) == 0 ? c->sent - (uint64_t)held : c->sent;
}

static void conn_limit_silence(struct conn *c, uint32_t ms)
{
    setsockopt(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms)); // other sockets have none
}

static void conn_look_later(struct conn *c)
{
    uint64_t due = c->progress_at + c->write_timeout - c->loop->now;
    uint64_t step = c->write_timeout / CONN_LOOKS + 1;
    timer_start(c->loop, &c->stall, due < step ? due : step, conn_on_look);
}

static void conn_note_progress(struct conn *c, uint64_t acknowledged)
{
    c->acknowledged = acknowledged;
    c->progress_at = c->loop->now;
}

void conn_end_watch(struct conn *c)
{
    if (c->is_watched) conn_limit_silence(c, c->write_timeout);
    c->is_watched = false;
}

static void conn_on_look(struct timer *stall)
{
    struct conn *c = list_entry(stall, struct conn, stall);
    uint64_t now = conn_acknowledged(c);
    if (now != c->acknowledged) conn_note_progress(c, now);
    if (now == c->sent && !c->is_blocked) {
        conn_end_watch(c);
    } else if (c->loop->now - c->progress_at >= c->write_timeout) {
        conn_end(c, CONN_STALLED);
    } else {
        conn_look_later(c);
    }
}

// What the socket has taken of the write is no progress once that is watched, or heartbeats that
// come one by one would keep a dead peer.
void conn_watch_progress(struct conn *c)
{
    uint64_t now = conn_acknowledged(c);
    if (c->is_watched) {
        if (now != c->acknowledged) conn_note_progress(c, now);
        return;
    }
    c->is_watched = true;
    conn_limit_silence(c, 0);
    conn_note_progress(c, now);
    conn_look_later(c);
}

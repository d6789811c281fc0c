// wire_probe: a conn under test with a protocol that a case steers, and the peer's descriptor.
#ifndef PHOTON_SPEC_WIRE_PROBE_H
#define PHOTON_SPEC_WIRE_PROBE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "report.h"
#include "wire/conn.h"

// The hostile build moves single bytes, so it gets fewer.
#ifdef PHOTON_HOSTILE
enum { PROBE_SCALE = 64 };
#else
enum { PROBE_SCALE = 1 };
#endif

struct probe {
    struct conn *conn; // NULL after on_close
    int peer;
    size_t (*on_bytes)(struct probe *p, char *bytes, size_t len);
    void (*on_eof)(struct probe *p);
    void (*on_drain)(struct probe *p);
    unsigned calls, eofs, drains, closes;
    size_t seen; // bytes at the last on_bytes
    enum conn_end how;
    bool is_inside;     // a call of ours into the conn is running
    bool was_called_up; // and a callback came from inside it
};

static struct loop loop;
static struct counters counters;

static void probe_note(struct probe *p)
{
    if (p->is_inside) p->was_called_up = true;
}

static size_t probe_on_bytes(struct conn *c, char *bytes, size_t len)
{
    struct probe *p = c->state;
    probe_note(p);
    p->calls++;
    p->seen = len;
    return p->on_bytes ? p->on_bytes(p, bytes, len) : len;
}

static void probe_on_eof(struct conn *c)
{
    struct probe *p = c->state;
    probe_note(p);
    p->eofs++;
    if (p->on_eof) p->on_eof(p);
}

static void probe_on_drain(struct conn *c)
{
    struct probe *p = c->state;
    probe_note(p);
    p->drains++;
    if (p->on_drain) p->on_drain(p);
}

static void probe_on_close(struct conn *c, enum conn_end how)
{
    struct probe *p = c->state;
    probe_note(p);
    p->closes++;
    p->how = how;
    p->conn = NULL;
}

static const struct conn_protocol probe_protocol = {probe_on_bytes, probe_on_eof, probe_on_drain,
                                                    probe_on_close};

// A case that waits in vain gives up after a minute without progress.
static uint64_t probe_progress;

static inline void probe_went_on(void)
{
    probe_progress = uv_hrtime();
}

static inline bool probe_is_stuck(void)
{
    return uv_hrtime() - probe_progress > UINT64_C(60000000000);
}

static bool probe_tcp_pair(int pair[2])
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(name);
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pair[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_ready = bind(listening, (struct sockaddr *)&name, len) == 0 &&
                    listen(listening, 1) == 0 &&
                    getsockname(listening, (struct sockaddr *)&name, &len) == 0 &&
                    connect(pair[1], (struct sockaddr *)&name, len) == 0;
    pair[0] = is_ready ? accept(listening, NULL, NULL) : -1;
    int on = 1; // as listeners set it
    setsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(pair[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    close(listening);
    return pair[0] >= 0;
}

// Opens the loop and a conn. The peer's descriptor does not block.
static inline void probe_begin(struct probe *p, bool is_tcp)
{
    int pair[2] = {-1, -1};
    struct peer peer = {.family = AF_UNIX};
    memset(&loop, 0, sizeof(loop));
    loop_open(&loop, &counters);
    if (is_tcp)
        CHECK(probe_tcp_pair(pair));
    else
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    *p = (struct probe){.peer = pair[1]};
    fcntl(p->peer, F_SETFL, O_NONBLOCK);
    probe_went_on();
    p->conn = conn_open(&loop, pair[0], &peer, &probe_protocol, p);
}

static inline void probe_turns(unsigned count)
{
    while (count--) loop_run_once(&loop, 1);
}

// Closes what is left; every conn must have had its on_close, once, and none from inside a call.
static inline void probe_finish(struct probe *p)
{
    if (p->conn) conn_close(p->conn);
    probe_turns(3);
    EQUAL(p->closes, 1);
    CHECK(!p->was_called_up);
    if (p->peer >= 0) close(p->peer);
    loop_close(&loop);
}

// Runs turns until the peer has read `len` bytes, or its end of file (then the result is shorter),
// or an error (-1 with errno).
static inline long probe_read(struct probe *p, char *to, size_t len)
{
    size_t have = 0;
    probe_went_on();
    while (have < len && !probe_is_stuck()) {
        ssize_t n = read(p->peer, to + have, len - have);
        if (n == 0) break;
        if (n < 0 && errno != EAGAIN) return -1;
        if (n < 0)
            loop_run_once(&loop, 1);
        else
            have += (size_t)n, probe_went_on();
    }
    return (long)have;
}

// Runs turns until everything is written.
static inline bool probe_write(struct probe *p, const char *from, size_t len)
{
    probe_went_on();
    while (len && !probe_is_stuck()) {
        ssize_t n = send(p->peer, from, len, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN) return false;
        if (n < 0)
            loop_run_once(&loop, 1);
        else
            from += n, len -= (size_t)n, probe_went_on();
    }
    return len == 0;
}

#endif

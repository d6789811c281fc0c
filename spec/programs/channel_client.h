// channel_client: a channel behind HTTP/1 on real sockets, and its clients.
#ifndef PHOTON_SPEC_CHANNEL_CLIENT_H
#define PHOTON_SPEC_CHANNEL_CLIENT_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/mem.h"
#include "http/http1.h"
#include "report.h"
#include "serve/channel_worker.h"

struct site {
    struct handler handler;
    struct loop loop;
    struct counters counters;
    struct limits limits;
    struct http1_host http;
    struct channel_worker worker;
    struct channel_registry *registry;
    struct channel *channel;
    struct channel_terms terms;
    _Atomic uint32_t streams;
    unsigned served;
};

static struct site site;

struct client {
    int fd;
    struct buf got; // everything
    bool is_over;   // end of file
};

static inline void on_serve(struct handler *self, struct exchange *x)
{
    (void)self;
    site.served++;
    channel_subscribe(&site.worker, x, &site.channel, 1, &site.terms);
}

static inline void begin(const struct channel_options *options)
{
    memset(&site, 0, sizeof site);
    site.limits = LIMITS_DEFAULT;
    site.handler.serve = on_serve;
    site.terms.retry = -1;
    CHECK(loop_open(&site.loop, &site.counters));
    CHECK(http1_host_open(&site.http, &site.loop, &site.limits, &site.handler));
    channel_worker_open(&site.worker, &site.loop, &site.streams);
    site.registry = channel_registry_new(10);
    channel_open(site.registry, SLICE("c"), options, 1, 0, &site.channel);
}

static inline void turns(unsigned count)
{
    while (count--) loop_run_once(&site.loop, 0);
}

static inline void finish(void)
{
    http1_host_abort(&site.http);
    turns(5);
    EQUAL(site.streams, 0);
    http1_host_close(&site.http);
    channel_worker_close(&site.worker);
    channel_release(site.channel);
    channel_registry_free(site.registry);
    loop_close(&site.loop);
}

static inline void connect_client(struct client *c, const char *version, int room)
{
    int pair[2];
    struct peer peer = {.family = AF_UNIX};
    char text[128];
    *c = (struct client){.fd = -1};
    if (!CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0))
        return;
    if (room) setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    c->fd = pair[1];
    CHECK(http1_accept(&site.http, pair[0], &peer));
    int len = snprintf(text, sizeof text, "GET / HTTP/%s\r\nhost: x\r\n\r\n", version);
    CHECK(send(c->fd, text, (size_t)len, MSG_NOSIGNAL) == len);
    unsigned before = site.served;
    for (int i = 0; i < 5000 && site.served == before; i++) turns(1);
}

// Reads at most `most` bytes; what has come so far.
static inline size_t receive(struct client *c, size_t most)
{
    size_t have = 0;
    while (have < most && buf_reserve(&c->got, 65536)) {
        size_t room = most - have < 65536 ? most - have : 65536;
        ssize_t n = read(c->fd, c->got.ptr + c->got.len, room);
        if (n == 0) c->is_over = true;
        if (n <= 0) break;
        c->got.len += (size_t)n;
        have += (size_t)n;
    }
    return have;
}

static inline void receive_all(struct client *c)
{
    unsigned idle = 0;
    while (idle < 20) {
        idle = receive(c, SIZE_MAX) ? 0 : idle + 1;
        turns(1);
    }
}

static inline void leave(struct client *c)
{
    buf_reset(&c->got);
    if (c->fd >= 0) close(c->fd);
    turns(3);
}

static inline struct slice body_of(struct client *c)
{
    struct slice all = buf_slice(&c->got);
    const char *end = all.len ? memmem(all.ptr, all.len, "\r\n\r\n", 4) : NULL;
    return end ? slice_from(all, (size_t)(end + 4 - all.ptr)) : (struct slice){0};
}

// The body without its chunk frames; *is_whole tells whether the last chunk has come.
static inline struct buf unchunk(struct slice body, bool *is_whole)
{
    struct buf plain = {0};
    *is_whole = false;
    while (body.len) {
        char *end;
        unsigned long len = strtoul(body.ptr, &end, 16);
        size_t head = (size_t)(end - body.ptr) + 2;
        if (head + len + 2 > body.len) break;
        CHECK(memcmp(end, "\r\n", 2) == 0 && memcmp(body.ptr + head + len, "\r\n", 2) == 0);
        if (len == 0) {
            *is_whole = true;
            EQUAL(head + len + 2, body.len);
            break;
        }
        buf_append(&plain, body.ptr + head, len);
        body = slice_from(body, head + len + 2);
    }
    return plain;
}

// Every event from `from` to `to` in order, nothing else; how many bytes each has.
static inline void check_sequence(struct slice plain, uint64_t from, uint64_t to)
{
    uint64_t next = from;
    const char *at = plain.ptr, *end = plain.ptr + plain.len;
    while (at && at < end) {
        const char *id = memmem(at, (size_t)(end - at), "\nid: ", 5);
        if (!CHECK(id && id + 5 + CHANNEL_EPOCH < end)) return;
        EQUAL(strtoull(id + 5 + CHANNEL_EPOCH + 1, NULL, 10), next);
        next++;
        at = memmem(id + 1, (size_t)(end - id - 1), "\n\n", 2);
        at = at ? at + 2 : NULL;
    }
    EQUAL(next, to + 1);
}

static inline void publish(unsigned count, size_t size)
{
    char *data = mem_zalloc(size + 1);
    memset(data, 'x', size);
    while (count--) channel_publish(site.channel, SLICE(""), slice_of(data, size), 0, NULL);
    mem_free(data);
}

#endif

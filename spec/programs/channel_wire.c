// Channels over HTTP/1.1 and 1.0 on real sockets: frames, full sockets, ends.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/mem.h"
#include "http/http1.h"
#include "report.h"
#include "serve/channel_worker.h"
#include "text/http1_write.h"

#ifdef PHOTON_HOSTILE
enum { EVENTS = 60, LARGE = 3000 };
#else
enum { EVENTS = 2000, LARGE = 60000 };
#endif

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

static void on_serve(struct handler *self, struct exchange *x)
{
    (void)self;
    site.served++;
    channel_subscribe(&site.worker, x, &site.channel, 1, &site.terms);
}

// A reply of unframed and framed payloads, as any handler may give them.
static void on_serve_payloads(struct handler *self, struct exchange *x)
{
    struct reply reply = {.status = 200, .content_length = -1};
    struct payload *list[2] = {payload_new_copy(SLICE("plain")), payload_new_copy(SLICE("framed"))};
    (void)self;
    site.served++;
    http1_write_frame(list[1]);
    exchange_head(x, &reply);
    exchange_body_payload(x, list[0]);
    exchange_body_payload(x, list[1]);
    // A full socket takes none or one: the others are staged behind it.
    for (size_t i = exchange_payloads(x, list, 2); i < 2; i++) exchange_body_payload(x, list[i]);
    exchange_end(x);
    payload_release(list[0]);
    payload_release(list[1]);
}

static void begin(const struct channel_options *options)
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

static void turns(unsigned count)
{
    while (count--) loop_run_once(&site.loop, 0);
}

static void finish(void)
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

static void connect_client(struct client *c, const char *version, int room)
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
static size_t receive(struct client *c, size_t most)
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

static void receive_all(struct client *c)
{
    unsigned idle = 0;
    while (idle < 20) {
        idle = receive(c, SIZE_MAX) ? 0 : idle + 1;
        turns(1);
    }
}

static void leave(struct client *c)
{
    buf_reset(&c->got);
    if (c->fd >= 0) close(c->fd);
    turns(3);
}

static struct slice body_of(struct client *c)
{
    struct slice all = buf_slice(&c->got);
    const char *end = all.len ? memmem(all.ptr, all.len, "\r\n\r\n", 4) : NULL;
    return end ? slice_from(all, (size_t)(end + 4 - all.ptr)) : (struct slice){0};
}

// The body without its chunk frames; *is_whole tells whether the last chunk has come.
static struct buf unchunk(struct slice body, bool *is_whole)
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
static void check_sequence(struct slice plain, uint64_t from, uint64_t to)
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

static void publish(unsigned count, size_t size)
{
    char *data = mem_zalloc(size + 1);
    memset(data, 'x', size);
    while (count--) channel_publish(site.channel, SLICE(""), slice_of(data, size), 0, NULL);
    mem_free(data);
}

static void test_frames(void)
{
    struct client c;
    begin(NULL);
    connect_client(&c, "1.1", 0);
    publish(1, 3);
    turns(2);
    publish(2, 20);
    turns(2);
    receive_all(&c);
    struct slice all = buf_slice(&c.got), body = body_of(&c);
    CHECK(memmem(all.ptr, all.len, "transfer-encoding: chunked\r\n", 28) != NULL);
    CHECK(memmem(all.ptr, all.len, "content-type: text/event-stream\r\n", 33) != NULL);
    // "data: xxx\n" "id: eeeeeeee-1\n" "\n"
    CHECK(body.len > 4 && memcmp(body.ptr, "1a\r\ndata: xxx\nid: ", 18) == 0);
    bool is_whole;
    struct buf plain = unchunk(body, &is_whole);
    CHECK(!is_whole);
    check_sequence(buf_slice(&plain), 1, 3);
    buf_reset(&plain);
    channel_finish(site.channel, true, SLICE(""), SLICE("end"), 0, NULL);
    turns(3);
    receive_all(&c);
    plain = unchunk(body_of(&c), &is_whole);
    CHECK(is_whole && !c.is_over); // the connection lives on
    check_sequence(buf_slice(&plain), 1, 4);
    buf_reset(&plain);
    leave(&c);
    finish();
}

static void test_http10(void)
{
    struct client c;
    begin(NULL);
    connect_client(&c, "1.0", 0);
    publish(3, 20);
    turns(3);
    receive_all(&c);
    check_sequence(body_of(&c), 1, 3);
    channel_finish(site.channel, false, SLICE(""), SLICE(""), 0, NULL);
    turns(3);
    receive_all(&c);
    CHECK(c.is_over);
    leave(&c);
    finish();
}

static void test_payloads(void)
{
    struct client c;
    bool is_whole;
    begin(NULL);
    site.handler.serve = on_serve_payloads;
    connect_client(&c, "1.1", 0);
    receive_all(&c);
    struct buf plain = unchunk(body_of(&c), &is_whole);
    CHECK(is_whole && slice_equals(buf_slice(&plain), SLICE("plainframedplainframed")));
    buf_reset(&plain);
    leave(&c);
    connect_client(&c, "1.0", 0);
    receive_all(&c);
    CHECK(slice_equals(body_of(&c), SLICE("plainframedplainframed")));
    leave(&c);
    finish();
}

static void test_stalled(void)
{
    struct channel_options options = {.replay = EVENTS};
    struct client stalled, quick;
    bool is_whole;
    begin(&options);
    connect_client(&stalled, "1.1", 4096);
    connect_client(&quick, "1.1", 0);
    for (int i = 0; i < EVENTS; i += 20) {
        publish(20, 100);
        turns(3);
        receive(&quick, SIZE_MAX);
    }
    receive_all(&quick);
    struct buf plain = unchunk(body_of(&quick), &is_whole);
    check_sequence(buf_slice(&plain), 1, EVENTS);
    buf_reset(&plain);
    while (receive(&stalled, 777)) turns(2);
    receive_all(&stalled);
    plain = unchunk(body_of(&stalled), &is_whole);
    check_sequence(buf_slice(&plain), 1, EVENTS);
    buf_reset(&plain);
    publish(1, 10); // both are live again
    turns(2);
    receive_all(&stalled);
    receive_all(&quick);
    EQUAL(site.counters.channel_deliveries, 2 * (EVENTS + 1));
    EQUAL(site.counters.channel_gaps, 0);
    leave(&stalled);
    leave(&quick);
    finish();
}

static void test_large(void)
{
    struct channel_options options = {.replay = 100};
    struct client c[3];
    bool is_whole;
    uint32_t random = 7;
    begin(&options);
    for (int i = 0; i < 3; i++) connect_client(&c[i], i == 2 ? "1.0" : "1.1", i ? 8192 : 0);
    for (int i = 0; i < 30; i++) {
        publish(1 + report_random(&random) % 3, report_random(&random) % LARGE);
        turns(1);
        for (int k = 0; k < 3; k++) receive(&c[k], report_random(&random) % LARGE);
    }
    uint64_t last = channel_last(site.channel);
    for (int k = 0; k < 3; k++) {
        receive_all(&c[k]);
        struct buf plain = {0};
        if (k < 2) plain = unchunk(body_of(&c[k]), &is_whole);
        check_sequence(k < 2 ? buf_slice(&plain) : body_of(&c[k]), 1, last);
        buf_reset(&plain);
        leave(&c[k]);
    }
    finish();
}

static void test_lost(void)
{
    struct client c, other;
    begin(NULL);
    connect_client(&c, "1.1", 4096);
    connect_client(&other, "1.1", 0);
    EQUAL(channel_subscribers(site.channel), 2);
    publish(100, 1000);
    turns(2);
    close(c.fd);
    c.fd = -1;
    turns(50);
    EQUAL(channel_subscribers(site.channel), 1);
    receive_all(&other);
    bool is_whole;
    struct buf plain = unchunk(body_of(&other), &is_whole);
    check_sequence(buf_slice(&plain), 1, 100);
    buf_reset(&plain);
    leave(&c);
    leave(&other);
    EQUAL(channel_subscribers(site.channel), 0);
    finish();
}

static const struct report_case cases[] = {
    {"events are framed as one chunk each", test_frames},
    {"HTTP/1.0 clients get the bare events", test_http10},
    {"payloads leave with their frames, or are given one", test_payloads},
    {"a stalled client loses nothing that is kept, and delays nobody", test_stalled},
    {"large events in parts", test_large},
    {"a lost client leaves", test_lost},
    {0},
};

int main(void)
{
    return report_run(cases);
}

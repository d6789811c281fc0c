// fixed through http1, to a peer that reads slowly.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "http/http1.h"
#include "report.h"
#include "serve/fixed.h"

enum { LARGE = 300000 };

static char large[LARGE];

static struct fixed *served[3];

static void serve_by_path(struct handler *self, struct exchange *x)
{
    (void)self;
    fixed_serve(served[(x->request.path.ptr[1] - '0') % 3], x);
}

// Reads a reply's head and body off the front; returns the length of both, 0 when it is not `body`.
static size_t take_reply(struct slice from, struct slice body)
{
    const char *end = memmem(from.ptr, from.len, "\r\n\r\n", 4);
    if (!end) return 0;
    size_t head = (size_t)(end + 4 - from.ptr);
    if (from.len < head + body.len) return 0;
    return memcmp(from.ptr + head, body.ptr, body.len) == 0 ? head + body.len : 0;
}

static size_t read_all(struct loop *loop, int fd, char *to, size_t room)
{
    size_t have = 0;
    for (int idle = 0; idle < 200 && have < room;) {
        ssize_t n = read(fd, to + have, room - have < 7000 ? room - have : 7000);
        if (n == 0) break;
        if (n > 0)
            have += (size_t)n, idle = 0;
        else
            idle++;
        loop_run_once(loop, n > 0 ? 0 : 1);
    }
    return have;
}

static void pipelined_replies_keep_their_order(void)
{
    enum { REQUESTS = 30 };
    struct slice bodies[3] = {SLICE("small"), {large, LARGE}, {large + 7, 20000}};
    struct limits limits = LIMITS_DEFAULT;
    struct loop loop = {0};
    struct counters counters = {0};
    struct http1_host host = {0};
    struct handler handler = {serve_by_path};
    struct peer peer = {.family = AF_UNIX};
    int pair[2];
    size_t room = REQUESTS * (LARGE + 1000), have, at = 0;
    char *got = malloc(room);
    for (int i = 0; i < 3; i++) served[i] = fixed_new(200, NULL, bodies[i]);
    CHECK(loop_open(&loop, &counters) && http1_host_open(&host, &loop, &limits, &handler));
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    CHECK(http1_accept(&host, pair[0], &peer));
    for (int i = 0; i < REQUESTS; i++) {
        char request[64];
        int len = snprintf(request, sizeof request, "GET /%d HTTP/1.1\r\nHost: a\r\n%s\r\n", i % 3,
                           i == REQUESTS - 1 ? "Connection: close\r\n" : "");
        CHECK(write(pair[1], request, (size_t)len) == len);
    }
    have = read_all(&loop, pair[1], got, room);
    for (int i = 0; i < REQUESTS; i++) {
        size_t len = take_reply(slice_of(got + at, have - at), bodies[i % 3]);
        if (!CHECK(len > 0)) break;
        at += len;
    }
    EQUAL(have, at);
    close(pair[1]);
    for (int i = 0; i < 5; i++) loop_run_once(&loop, 1);
    CHECK(list_is_empty(&host.conns));
    http1_host_close(&host);
    loop_close(&loop);
    for (int i = 0; i < 3; i++) fixed_free(served[i]);
    free(got);
}

int main(void)
{
    static const struct report_case cases[] = {
        {"pipelined replies keep their order", pipelined_replies_keep_their_order},
        {NULL, NULL},
    };
    uint32_t seed = 1;
    for (size_t i = 0; i < LARGE; i++) large[i] = (char)('a' + report_random(&seed) % 26);
    return report_run(cases);
}

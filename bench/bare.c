// bare REPLY [EVENTS]: the floor that Photon is measured against. One thread, one epoll, no parser:
// every blank line is a request and is answered by the bytes of the file REPLY. A request for
// /events is answered by a stream of EVENTS events, each in a chunk and a send of its own. Prints
// its port.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MAX_FD     65536
#define MAX_EVENTS 10000

struct bytes {
    char *at;
    size_t len;
};

static struct bytes reply, stream_head, events[MAX_EVENTS];
static int event_count = 100;
static unsigned char matched[MAX_FD]; // how much of the blank line each connection has sent

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void send_all(int fd, const char *at, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            struct pollfd p = {fd, POLLOUT, 0};
            if (poll(&p, 1, 5000) <= 0 || (p.revents & (POLLERR | POLLHUP))) return;
            continue;
        }
        at += n;
        len -= n;
    }
}

static void send_stream(int fd)
{
    send_all(fd, stream_head.at, stream_head.len);
    for (int i = 0; i < event_count; i++) send_all(fd, events[i].at, events[i].len);
    send_all(fd, "0\r\n\r\n", 5);
}

static int count_requests(int fd, const char *at, size_t len)
{
    static const char blank[] = "\r\n\r\n";
    int count = 0;
    unsigned m = matched[fd];

    for (size_t i = 0; i < len; i++) {
        m = at[i] == blank[m] ? m + 1 : at[i] == '\r';
        if (m == 4) count++, m = 0;
    }
    matched[fd] = m;
    return count;
}

static void serve(int fd)
{
    static char in[65536];
    ssize_t n = recv(fd, in, sizeof in, MSG_DONTWAIT);

    if (n <= 0) {
        close(fd);
        return;
    }
    int count = count_requests(fd, in, n);
    int is_stream = n > 12 && memcmp(in, "GET /events ", 12) == 0;
    while (count-- > 0) {
        if (is_stream)
            send_stream(fd);
        else
            send_all(fd, reply.at, reply.len);
    }
}

static void accept_all(int listener, int poller)
{
    int fd, one = 1;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        if (fd >= MAX_FD) {
            close(fd);
            continue;
        }
        matched[fd] = 0;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e);
    }
}

static int listen_anywhere(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0 || bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, 4096) < 0)
        fail("listen");
    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0) fail("getsockname");
    printf("%d\n", ntohs(addr.sin_port));
    fflush(stdout);
    return fd;
}

static void make_events(void)
{
    static char head[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
                         "cache-control: no-store, no-transform\r\nx-accel-buffering: no\r\n"
                         "transfer-encoding: chunked\r\n\r\n";

    stream_head = (struct bytes){head, strlen(head)};
    for (int i = 0; i < event_count; i++) {
        char text[64];
        int len = snprintf(text, sizeof text, "data: event number %d\n\n", i + 1);
        int framed = asprintf(&events[i].at, "%x\r\n%s\r\n", len, text);
        if (framed < 0) fail("memory");
        events[i].len = framed;
    }
}

static void read_reply(const char *path)
{
    FILE *in = fopen(path, "rb");
    static char text[65536];

    if (!in) fail(path);
    reply = (struct bytes){text, fread(text, 1, sizeof text, in)};
    fclose(in);
}

int main(int argc, char **argv)
{
    struct epoll_event ready[256], e = {.events = EPOLLIN};

    if (argc < 2) return fprintf(stderr, "usage: bare REPLY [EVENTS]\n"), 2;
    if (argc > 2) event_count = atoi(argv[2]);
    if (event_count < 0 || event_count > MAX_EVENTS) return 2;
    read_reply(argv[1]);
    make_events();
    int listener = listen_anywhere(), poller = epoll_create1(EPOLL_CLOEXEC);
    e.data.fd = listener;
    if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &e) < 0) fail("epoll");
    for (;;) {
        int n = epoll_wait(poller, ready, 256, -1);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.fd == listener)
                accept_all(listener, poller);
            else
                serve(ready[i].data.fd);
        }
    }
}

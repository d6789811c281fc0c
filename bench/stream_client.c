// stream_client PORT PATH CONNECTIONS SECONDS: reads event streams to their end, again and again,
// on CONNECTIONS connections at once. Prints the streams that ended, the events in them, and the
// bytes.
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

struct peer {
    int fd;
    char tail[8]; // the last bytes seen, for what is cut between two reads
    size_t tail_len;
};

static struct sockaddr_in address = {.sin_family = AF_INET};
static char request[512];
static size_t request_len;
static long streams, events, bytes;
static int poller;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void peer_ask(struct peer *p)
{
    p->tail_len = 0;
    if (send(p->fd, request, request_len, MSG_NOSIGNAL) != (ssize_t)request_len) fail("send");
}

static void peer_open(struct peer *p)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};

    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0 || connect(p->fd, (struct sockaddr *)&address, sizeof address) < 0)
        fail("connect");
    if (epoll_ctl(poller, EPOLL_CTL_ADD, p->fd, &e) < 0) fail("epoll_ctl");
    peer_ask(p);
}

// Each event ends with an empty line, which stands in one chunk with it.
static void count_events(const char *at, size_t len, size_t fresh)
{
    for (size_t i = fresh ? fresh : 1; i < len; i++)
        if (at[i] == '\n' && at[i - 1] == '\n') events++;
}

static void peer_take(struct peer *p, char *buffer, size_t kept, size_t got)
{
    size_t len = kept + got;

    bytes += got;
    count_events(buffer, len, kept);
    p->tail_len = len < 7 ? len : 7;
    memcpy(p->tail, buffer + len - p->tail_len, p->tail_len);
    if (p->tail_len == 7 && memcmp(p->tail, "\r\n0\r\n\r\n", 7) == 0) {
        streams++;
        peer_ask(p);
    }
}

static void peer_read(struct peer *p)
{
    static char buffer[8 + 262144];
    size_t kept = p->tail_len;

    memcpy(buffer, p->tail, kept);
    ssize_t n = recv(p->fd, buffer + kept, sizeof buffer - kept, MSG_DONTWAIT);
    if (n > 0) {
        peer_take(p, buffer, kept, n);
    } else if (n == 0 || errno != EAGAIN) {
        close(p->fd);
        peer_open(p);
    }
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct epoll_event ready[128];

    if (argc < 5) return fprintf(stderr, "usage: stream_client PORT PATH CONNECTIONS SECONDS\n"), 2;
    int count = atoi(argv[3]);
    double end = now() + atof(argv[4]);
    struct peer *peers = calloc(count, sizeof *peers);
    address.sin_port = htons(atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    request_len =
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n", argv[2]);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (!peers || poller < 0 || request_len >= sizeof request) fail("start");
    for (int i = 0; i < count; i++) peer_open(&peers[i]);
    while (now() < end) {
        int n = epoll_wait(poller, ready, 128, 100);
        for (int i = 0; i < n; i++) peer_read(ready[i].data.ptr);
    }
    printf("%ld %ld %ld\n", streams, events, bytes);
    free(peers);
    return 0;
}

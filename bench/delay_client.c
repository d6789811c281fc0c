// delay_client PORT PATH CONNECTIONS SECONDS [SILENT_PATH SILENT]: how long events are on their
// way. Reads streams whose events begin with the time of CLOCK_MONOTONIC, in ns, at which they were
// sent. An event has arrived when the poll that tells of its bytes returns; one that comes after
// that, with the reading. SILENT connections ask, too, and never read. Prints "ready" when each
// stream has its head, then at the end the events, the p50, p99 and longest delay in microseconds,
// and the bytes that wait for the silent ones.
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 8000000 };

static const char mark[] = "data: ";

// What of an event has been seen: `at` bytes of the mark, then the digits.
struct peer {
    int fd;
    unsigned at;
    uint64_t stamp;
    int has_head;
};

static struct sockaddr_in address = {.sin_family = AF_INET};
static uint64_t *delays;
static long events, heads;
static int poller;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int ask(const char *path)
{
    char request[256];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n", path);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) fail("connect");
    if (send(fd, request, (size_t)len, MSG_NOSIGNAL) != len) fail("send");
    return fd;
}

static void note_event(uint64_t stamp, uint64_t polled)
{
    uint64_t arrived = stamp <= polled ? polled : now();
    if (events < MOST) delays[events++] = arrived - stamp;
}

static void peer_take(struct peer *p, const char *bytes, size_t len, uint64_t polled)
{
    for (size_t i = 0; i < len; i++) {
        char c = bytes[i];
        if (p->at < sizeof mark - 1) {
            p->at = c == mark[p->at] ? p->at + 1 : c == mark[0];
        } else if (c >= '0' && c <= '9') {
            p->stamp = p->stamp * 10 + (uint64_t)(c - '0');
        } else {
            note_event(p->stamp, polled);
            p->at = 0;
            p->stamp = 0;
        }
    }
}

static void peer_read(struct peer *p, uint64_t polled)
{
    static char bytes[262144];
    ssize_t len = recv(p->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (len == 0 || (len < 0 && errno != EAGAIN)) fail("a stream has ended");
    if (len < 0) return;
    heads += !p->has_head;
    p->has_head = 1;
    peer_take(p, bytes, (size_t)len, polled);
}

static void read_some(void)
{
    struct epoll_event ready[512];
    int n = epoll_wait(poller, ready, 512, 100);
    uint64_t polled = now();
    for (int i = 0; i < n; i++) peer_read(ready[i].data.ptr, polled);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static long unread(const int *silent, int count)
{
    long all = 0;
    for (int i = 0; i < count; i++) {
        int waiting = 0;
        if (ioctl(silent[i], FIONREAD, &waiting) == 0) all += waiting;
    }
    return all;
}

static void report(long waiting)
{
    qsort(delays, (size_t)events, sizeof *delays, compare);
    long most = events ? events - 1 : 0;
    printf("%ld %.1f %.1f %.1f %ld\n", events, (double)delays[events / 2] / 1e3,
           (double)delays[events * 99 / 100] / 1e3, (double)delays[most] / 1e3, waiting);
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 7)
        return fprintf(stderr, "usage: delay_client PORT PATH CONNECTIONS SECONDS [PATH SILENT]\n"),
               2;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    int count = atoi(argv[3]), silent_count = argc > 6 ? atoi(argv[6]) : 0;
    struct peer *peers = calloc((size_t)count, sizeof *peers);
    int *silent = calloc((size_t)silent_count + 1, sizeof *silent);
    delays = calloc(MOST, sizeof *delays);
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (!peers || !silent || !delays || poller < 0) fail("start");
    address.sin_port = htons((uint16_t)atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < count; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &peers[i]};
        peers[i].fd = ask(argv[2]);
        if (epoll_ctl(poller, EPOLL_CTL_ADD, peers[i].fd, &e) < 0) fail("epoll_ctl");
    }
    for (int i = 0; i < silent_count; i++) silent[i] = ask(argv[5]);
    while (heads < count) read_some();
    events = 0;
    puts("ready");
    fflush(stdout);
    for (uint64_t end = now() + (uint64_t)(atof(argv[4]) * 1e9); now() < end;) read_some();
    report(unread(silent, silent_count));
    return 0;
}

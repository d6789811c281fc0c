// fanout [SUBSCRIBERS…]: what a delivery of a channel costs beside a bare loop of send over the
// same sockets with the same bytes. One thread serves, another one reads everything; the serving
// thread's CPU time for each is told, and their ratio. Events of both kinds take turns.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "http/http1.h"
#include "serve/channel_worker.h"

enum { MOST = 19000, DATA = 100, DELIVERIES = 100000, WARM = 3 };

static struct loop loop;
static struct counters counters;
static struct limits limits = LIMITS_DEFAULT;
static struct http1_host http;
static struct channel_worker worker;
static struct channel_registry *registry;
static struct channel *channel;
static _Atomic uint32_t streams;
static int servers[MOST];
static _Atomic uint64_t *received; // by the other process

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void on_serve(struct handler *self, struct exchange *x)
{
    struct channel_terms terms = {.retry = -1, .heartbeat = 15000};
    (void)self;
    channel_subscribe(&worker, x, &channel, 1, &terms);
}

static struct handler handler = {on_serve};

// The reading process: connects, asks, and reads for ever.
static void read_all(const struct sockaddr_in *name, int count)
{
    struct epoll_event events[256] = {{.events = EPOLLIN}};
    static char bytes[65536];
    int poller = epoll_create1(0);
    for (int i = 0; i < count; i++) {
        int fd = events[0].data.fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *)name, sizeof *name) < 0) fail("connect");
        if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, events) < 0) fail("epoll_ctl");
        if (send(fd, "GET / HTTP/1.1\r\nhost: x\r\n\r\n", 27, 0) != 27) fail("send");
    }
    for (;;) {
        int ready = epoll_wait(poller, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            ssize_t n = read(events[i].data.fd, bytes, sizeof bytes);
            if (n > 0) atomic_fetch_add(received, (uint64_t)n);
            if (n <= 0) exit(0);
        }
    }
}

static void serve_one(int listening, int at)
{
    int on = 1, lowat = 16384;
    struct peer peer = {.family = AF_INET};
    servers[at] = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (servers[at] < 0) fail("accept");
    setsockopt(servers[at], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(servers[at], IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof lowat);
    if (!http1_accept(&http, servers[at], &peer)) fail("http1_accept");
    loop_run_once(&loop, 0);
}

static pid_t open_pairs(int count)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof name;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listening, (struct sockaddr *)&name, len) < 0 || listen(listening, 1024) < 0 ||
        getsockname(listening, (struct sockaddr *)&name, &len) < 0)
        fail("listen");
    pid_t reader = fork();
    if (reader < 0) fail("fork");
    if (reader == 0) read_all(&name, count);
    for (int i = 0; i < count; i++) serve_one(listening, i);
    close(listening);
    while (worker.count < (unsigned)count) loop_run_once(&loop, 1);
    return reader;
}

static void close_pairs(pid_t reader)
{
    kill(reader, SIGKILL);
    waitpid(reader, NULL, 0);
    while (worker.count) loop_run_once(&loop, 1);
    for (int i = 0; i < 5; i++) loop_run_once(&loop, 1);
}

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

// Waits until nothing has been received for a moment: the reading thread has all.
static void settle(void)
{
    uint64_t before;
    do {
        before = atomic_load(received);
        usleep(1000);
    } while (atomic_load(received) != before);
}

static double by_channel(int count, struct slice data)
{
    uint64_t until = counters.channel_deliveries + (uint64_t)count;
    double began = cpu_now();
    channel_publish(channel, SLICE(""), data, loop.now, NULL);
    while (counters.channel_deliveries < until) loop_run_once(&loop, 0);
    return (cpu_now() - began) / count;
}

static double by_send(int count, struct slice bytes)
{
    double began = cpu_now();
    for (int i = 0; i < count; i++) {
        if (send(servers[i], bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) fail("send");
    }
    return (cpu_now() - began) / count;
}

static double resident_mb(void)
{
    long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &pages, &resident) != 2) fail("/proc/self/statm");
    fclose(file);
    return (double)(resident * sysconf(_SC_PAGESIZE)) / (1 << 20);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

static void measure(int count)
{
    int rounds = DELIVERIES / count < 2000 ? DELIVERIES / count : 2000;
    double *channels = calloc((size_t)rounds, sizeof *channels);
    double *sends = calloc((size_t)rounds, sizeof *sends), *ratios = calloc((size_t)rounds, 8);
    char data[DATA];
    struct payload *record;
    uint64_t first;
    memset(data, 'x', sizeof data);
    channel_publish(channel, SLICE(""), slice_of(data, sizeof data), loop.now, NULL);
    if (channel_read_last(channel, 0, loop.now, &record, 1, &first) != 1) fail("channel_read_last");
    pid_t reader = open_pairs(count);
    for (int i = -WARM; i < rounds; i++) {
        settle();
        double bare = by_send(count, payload_framed(record));
        settle();
        double ours = by_channel(count, slice_of(data, sizeof data));
        if (i >= 0) channels[i] = ours, sends[i] = bare, ratios[i] = ours / bare;
    }
    printf("%6d subscribers: send %.3f us, channel %.3f us a delivery, ratio %.3f, %.1f MB\n",
           count, median(sends, rounds), median(channels, rounds), median(ratios, rounds),
           resident_mb());
    fflush(stdout);
    payload_release(record);
    close_pairs(reader);
    free(channels);
    free(sends);
    free(ratios);
}

int main(int argc, char **argv)
{
    struct channel_options options = {.replay = 1000};
    struct rlimit files = {MOST + 100, MOST + 100};
    if (setrlimit(RLIMIT_NOFILE, &files) < 0) {
        getrlimit(RLIMIT_NOFILE, &files);
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    limits.max_streams = MOST;
    received = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    registry = channel_registry_new(10);
    if (!registry || !loop_open(&loop, &counters)) fail("loop_open");
    if (!http1_host_open(&http, &loop, &limits, &handler)) fail("http1_host_open");
    channel_worker_open(&worker, &loop, &streams);
    channel_open(registry, SLICE("c"), &options, 1, 0, &channel);
    for (int i = 0; i < 1000; i++) {
        char data[DATA];
        memset(data, 'y', sizeof data);
        channel_publish(channel, SLICE(""), slice_of(data, sizeof data), loop.now, NULL);
    }
    static const int standard[] = {1, 100, 1000, 10000};
    for (int i = 0; argc < 2 && i < 4; i++) measure(standard[i]);
    for (int i = 1; i < argc; i++) measure(atoi(argv[i]) < MOST ? atoi(argv[i]) : MOST);
    return 0;
}

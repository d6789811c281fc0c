// The specs of wire/connector.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/un.h>
#include "wire/connector.h"
#include "wire_probe.h"

enum { PATIENCE = 60000 }; // ms, for what must come

struct outcome {
    unsigned calls;
    int fd; // or the error
};

static struct outcome outcome;
static bool is_inside;

static void on_done(void *owner, int fd)
{
    CHECK(!is_inside);
    CHECK(owner == &outcome);
    outcome.calls++;
    outcome.fd = fd;
}

static struct connector *begin(struct connector_target *target, uint32_t timeout)
{
    outcome = (struct outcome){0};
    is_inside = true;
    struct connector *c = connector_open(&loop, target, timeout, on_done, &outcome);
    is_inside = false;
    return c;
}

// Runs the loop until on_done has been called.
static void finish(void)
{
    probe_went_on();
    while (!outcome.calls && !probe_is_stuck()) loop_run_once(&loop, 50);
    EQUAL(outcome.calls, 1);
}

static void connect_to(struct connector_target *target, uint32_t timeout)
{
    CHECK(begin(target, timeout));
    finish();
}

static int listen_at(struct connector_address *address, int backlog)
{
    struct sockaddr *name = (struct sockaddr *)&address->name;
    int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, name, address->len) == 0);
    CHECK(listen(fd, backlog) == 0);
    CHECK(getsockname(fd, name, &address->len) == 0);
    return fd;
}

static int listen_on_tcp(struct connector_target *target, unsigned at)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct connector_address *address = &target->addresses[at];
    memcpy(&address->name, &name, sizeof(name));
    address->len = sizeof(name);
    if (target->count <= at) target->count = at + 1;
    return listen_at(address, 8);
}

static void check_connected(int listening)
{
    int peer = accept(listening, NULL, NULL);
    char byte = 0;
    CHECK(outcome.fd >= 0 && peer >= 0);
    CHECK(fcntl(outcome.fd, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(outcome.fd, F_GETFD) & FD_CLOEXEC);
    CHECK(write(outcome.fd, "x", 1) == 1 && read(peer, &byte, 1) == 1 && byte == 'x');
    close(peer);
    close(outcome.fd);
}

static void test_connect(void)
{
    struct connector_target target = {0};
    int listening = listen_on_tcp(&target, 0);
    connect_to(&target, PATIENCE);
    check_connected(listening);
    close(listening);
}

static void test_refused(void)
{
    struct connector_target target = {0};
    close(listen_on_tcp(&target, 0));
    connect_to(&target, PATIENCE);
    EQUAL(outcome.fd, -ECONNREFUSED);
}

static void test_second_address(void)
{
    struct connector_target target = {0};
    close(listen_on_tcp(&target, 0));
    int listening = listen_on_tcp(&target, 1);
    connect_to(&target, PATIENCE);
    check_connected(listening);
    EQUAL(target.first, 1);
    connect_to(&target, PATIENCE);
    check_connected(listening);
    close(listening);
    connect_to(&target, PATIENCE);
    EQUAL(outcome.fd, -ECONNREFUSED);
}

static size_t take_five(struct probe *p, char *bytes, size_t len)
{
    (void)p;
    (void)bytes;
    return len < 5 ? 0 : len;
}

static void test_conn(void)
{
    struct connector_target target = {0};
    struct probe p = {.on_bytes = take_five};
    int listening = listen_on_tcp(&target, 0);
    struct peer none = {.family = AF_UNIX};
    connect_to(&target, PATIENCE);
    int peer = accept(listening, NULL, NULL);
    p.conn = conn_open(&loop, outcome.fd, &none, &probe_protocol, &p);
    if (!CHECK(p.conn && write(peer, "hello", 5) == 5)) return;
    probe_went_on();
    while (p.seen < 5 && !probe_is_stuck()) loop_run_once(&loop, 50);
    EQUAL(p.seen, 5);
    conn_close(p.conn);
    while (!p.closes && !probe_is_stuck()) loop_run_once(&loop, 50);
    close(peer);
    close(listening);
}

static void test_resolve(void)
{
    struct connector_target target;
    char error[128] = "", port[8];
    struct connector_target one = {0};
    int listening = listen_on_tcp(&one, 0);
    const struct sockaddr_in *name = (const struct sockaddr_in *)&one.addresses[0].name;
    snprintf(port, sizeof(port), "%u", ntohs(name->sin_port));
    CHECK(connector_resolve(&target, "localhost", port, error, sizeof(error)));
    CHECK(target.count > 0);
    connect_to(&target, PATIENCE); // by way of ::1 where localhost is that too
    check_connected(listening);
    CHECK(!connector_resolve(&target, "no.such.host.invalid", "80", error, sizeof(error)));
    CHECK(strstr(error, "no.such.host.invalid: "));
    close(listening);
}

static void test_unix(void)
{
    struct connector_target target;
    char path[64], too_long[200];
    memset(too_long, 'x', sizeof(too_long));
    too_long[sizeof(too_long) - 1] = 0;
    CHECK(!connector_set_path(&target, too_long));
    snprintf(path, sizeof(path), "/tmp/wire_connector.%ld", (long)getpid());
    CHECK(connector_set_path(&target, path));
    connect_to(&target, PATIENCE);
    EQUAL(outcome.fd, -ENOENT);
    int listening = listen_at(&target.addresses[0], 8);
    connect_to(&target, PATIENCE);
    check_connected(listening);
    close(listening);
    unlink(path);
}

// A unix socket whose backlog is full takes connections again when somebody accepts.
static void test_full_backlog(void)
{
    struct connector_target target;
    char path[64];
    snprintf(path, sizeof(path), "/tmp/wire_connector.%ld", (long)getpid());
    CHECK(connector_set_path(&target, path));
    int listening = listen_at(&target.addresses[0], 0), first;
    connect_to(&target, PATIENCE);
    first = outcome.fd;
    connect_to(&target, 20);
    EQUAL(outcome.fd, -EAGAIN);
    CHECK(begin(&target, PATIENCE));
    loop_run_once(&loop, 20);
    EQUAL(outcome.calls, 0);
    close(accept(listening, NULL, NULL));
    finish();
    check_connected(listening);
    close(first);
    close(listening);
    unlink(path);
}

static void test_cancel(void)
{
    struct connector_target target = {0};
    int listening = listen_on_tcp(&target, 0);
    struct connector *c = begin(&target, PATIENCE);
    if (!CHECK(c)) return;
    connector_cancel(c);
    for (int i = 0; i < 5; i++) loop_run_once(&loop, 1);
    EQUAL(outcome.calls, 0);
    close(listening);
    c = begin(&target, PATIENCE); // one that is about to fail
    connector_cancel(c);
    for (int i = 0; i < 5; i++) loop_run_once(&loop, 1);
    EQUAL(outcome.calls, 0);
}

// Nobody answers: a listener whose queue is full drops what comes.
static void test_timeout(void)
{
    struct connector_target target = {0};
    int fds[8];
    unsigned count = 0;
    int listening = listen_on_tcp(&target, 0);
    listen(listening, 0);
    do {
        connect_to(&target, 100);
        if (outcome.fd >= 0) fds[count++] = outcome.fd;
    } while (outcome.fd >= 0 && count < 8);
    EQUAL(outcome.fd, -ETIMEDOUT);
    while (count) close(fds[--count]);
    close(listening);
}

int main(void)
{
    static const struct report_case cases[] = {
        {"connects", test_connect},
        {"tells of a refusal", test_refused},
        {"tries every address, first the one that worked", test_second_address},
        {"gives what a conn takes", test_conn},
        {"looks names up", test_resolve},
        {"connects to a unix socket", test_unix},
        {"waits for a unix socket whose backlog is full", test_full_backlog},
        {"can be cancelled", test_cancel},
        {"gives up after its time limit", test_timeout},
        {NULL, NULL},
    };
    if (!loop_open(&loop, &counters)) return 1;
    int status = report_run(cases);
    loop_close(&loop);
    return status;
}

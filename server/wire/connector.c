#include "wire/connector.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/mem.h"

enum { CONNECTOR_RETRY_MS = 5 };

// One address. Apart from the connector, since its handle needs a close callback before it is
// freed.
struct connector_try {
    uv_poll_t poll;
    struct connector *connector;
};

struct connector {
    struct loop *loop;
    struct connector_target *target;
    void (*on_done)(void *owner, int fd);
    void *owner;
    struct connector_try *try;
    struct timer timer; // the time limit, or the wait before the next try
    uint32_t timeout, waited;
    unsigned tried; // addresses
    int fd, error;
};

bool connector_resolve(struct connector_target *to, const char *host, const char *port, char *error,
                       size_t size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    int failure = getaddrinfo(host, port, &hints, &found);
    *to = (struct connector_target){0};
    if (failure) {
        snprintf(error, size, "%s: %s", host, gai_strerror(failure));
        return false;
    }
    for (struct addrinfo *a = found; a && to->count < CONNECTOR_ADDRESSES; a = a->ai_next) {
        struct connector_address *address = &to->addresses[to->count++];
        memcpy(&address->name, a->ai_addr, a->ai_addrlen);
        address->len = a->ai_addrlen;
    }
    freeaddrinfo(found);
    return true;
}

bool connector_set_path(struct connector_target *to, const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(name.sun_path)) return false;
    memcpy(name.sun_path, path, strlen(path) + 1);
    *to = (struct connector_target){.count = 1};
    memcpy(&to->addresses[0].name, &name, sizeof(name));
    to->addresses[0].len = sizeof(name);
    return true;
}

static struct connector_address *connector_address(const struct connector *c)
{
    return &c->target->addresses[(c->target->first + c->tried) % c->target->count];
}

static void connector_on_closed(uv_handle_t *poll)
{
    mem_free(list_entry(poll, struct connector_try, poll));
}

// The descriptor is the caller's from now on.
static int connector_end_try(struct connector *c)
{
    int fd = c->fd;
    timer_stop(&c->timer);
    if (c->try) uv_close((uv_handle_t *)&c->try->poll, connector_on_closed);
    c->try = NULL;
    c->fd = -1;
    return fd;
}

static void connector_finish(struct connector *c, int result)
{
    void (*on_done)(void *owner, int fd) = c->on_done;
    void *owner = c->owner;
    mem_free(c);
    on_done(owner, result);
}

static void connector_begin(struct connector *c);

static void connector_fail(struct connector *c, int error)
{
    int fd = connector_end_try(c);
    if (fd >= 0) close(fd);
    if (++c->tried < c->target->count)
        connector_begin(c);
    else
        connector_finish(c, -error);
}

static void connector_on_poll(uv_poll_t *poll, int status, int events)
{
    struct connector *c = list_entry(poll, struct connector_try, poll)->connector;
    int error = 0;
    socklen_t len = sizeof(error);
    (void)events;
    loop_refresh(c->loop);
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error == 0 && status < 0) error = -status;
    if (error) {
        connector_fail(c, error);
        return;
    }
    c->target->first = (c->target->first + c->tried) % c->target->count;
    connector_finish(c, connector_end_try(c));
}

static void connector_on_timeout(struct timer *timer)
{
    connector_fail(list_entry(timer, struct connector, timer), ETIMEDOUT);
}

static void connector_on_failed(struct timer *timer)
{
    struct connector *c = list_entry(timer, struct connector, timer);
    connector_fail(c, c->error);
}

static void connector_on_retry(struct timer *timer)
{
    struct connector *c = list_entry(timer, struct connector, timer);
    int fd = connector_end_try(c);
    if (fd >= 0) close(fd);
    connector_begin(c);
}

static bool connector_watch(struct connector *c)
{
    struct connector_try *try = mem_zalloc(sizeof(*try));
    if (!try || uv_poll_init(&c->loop->uv, &try->poll, c->fd) != 0) {
        mem_free(try);
        return false;
    }
    try->connector = c;
    c->try = try;
    return uv_poll_start(&try->poll, UV_WRITABLE, connector_on_poll) == 0;
}

// 0, or the error. A unix socket whose backlog is full says EAGAIN, and is not waited for by poll.
static int connector_start(struct connector *c)
{
    const struct connector_address *address = connector_address(c);
    int on = 1, family = address->name.ss_family;
    c->fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0) return errno;
    if (family != AF_UNIX) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(c->fd, (const struct sockaddr *)&address->name, address->len) != 0 &&
        errno != EINPROGRESS)
        return errno;
    return connector_watch(c) ? 0 : ENOMEM;
}

static void connector_begin(struct connector *c)
{
    c->error = connector_start(c);
    bool waits = c->error == EAGAIN && c->waited < c->timeout;
    if (waits) {
        c->waited += CONNECTOR_RETRY_MS;
        timer_start(c->loop, &c->timer, CONNECTOR_RETRY_MS, connector_on_retry);
    } else if (c->error) {
        timer_start(c->loop, &c->timer, 1, connector_on_failed);
    } else {
        timer_start(c->loop, &c->timer, c->timeout, connector_on_timeout);
    }
}

struct connector *connector_open(struct loop *loop, struct connector_target *target,
                                 uint32_t timeout, void (*on_done)(void *owner, int fd),
                                 void *owner)
{
    struct connector *c = mem_alloc(sizeof(*c));
    if (!c) return NULL;
    *c = (struct connector){.loop = loop,
                            .target = target,
                            .timeout = timeout,
                            .on_done = on_done,
                            .owner = owner,
                            .fd = -1};
    connector_begin(c);
    return c;
}

void connector_cancel(struct connector *c)
{
    int fd = connector_end_try(c);
    if (fd >= 0) close(fd);
    mem_free(c);
}

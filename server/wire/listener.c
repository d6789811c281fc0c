#include "wire/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "base/mem.h"
#include "wire/listener_address.h"

enum { LISTENER_BACKLOG = 4096, LISTENER_LOWAT = 16384 };

// Where a refusal goes: one line that begins with the address.
struct listener_error {
    struct slice address;
    char *text;
    size_t size;
};

static bool listener_refuse(const struct listener_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool listener_refuse(const struct listener_error *e, const char *format, ...)
{
    int len =
        snprintf(e->text, e->size, "cannot listen on %.*s: ", (int)e->address.len, e->address.ptr);
    if (len < 0 || (size_t)len >= e->size) return false;
    va_list args;
    va_start(args, format);
    vsnprintf(e->text + len, e->size - (size_t)len, format, args);
    va_end(args);
    return false;
}

// What failed, and what can be done about it.
static bool listener_refuse_errno(const struct listener_error *e, int code)
{
    const char *advice = "";
    if (code == EADDRINUSE) advice = "; is another server running? choose another --listen";
    if (code == EACCES) advice = "; ports below 1024 and foreign folders need more rights";
    if (code == EADDRNOTAVAIL) advice = "; no interface has this address, :PORT means all of them";
    if (code == ENOENT) advice = "; the folder of the socket must exist";
    if (code == EMFILE) advice = "; raise ulimit -n";
    return listener_refuse(e, "%s%s", uv_strerror(-code), advice);
}

// Accepted sockets inherit all of these. A kernel that does not know one serves without.
static void listener_set_tcp_options(int fd, uint32_t write_timeout)
{
    int on = 1, lowat = LISTENER_LOWAT;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
    if (write_timeout)
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &write_timeout, sizeof(write_timeout));
}

// Returns a listening socket or -1 with errno.
static int listener_listen(const struct sockaddr *name, socklen_t len, uint32_t write_timeout)
{
    int on = 1, off = 0;
    int fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    if (name->sa_family != AF_UNIX) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        listener_set_tcp_options(fd, write_timeout);
    }
    if (name->sa_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, name, len) == 0 && listen(fd, LISTENER_BACKLOG) == 0) return fd;
    int code = errno;
    close(fd);
    errno = code;
    return -1;
}

// A machine without IPv6 still listens on all its interfaces.
static int listener_listen_ipv4(const struct listener_address *address, uint32_t write_timeout)
{
    struct sockaddr_in all = {.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)strtoul(address->port, NULL, 10))};
    return listener_listen((const struct sockaddr *)&all, sizeof(all), write_timeout);
}

static bool listener_bind_tcp(struct listener *l, const struct listener_address *address,
                              uint32_t write_timeout, const struct listener_error *e)
{
    struct addrinfo *found = NULL;
    int code = EADDRNOTAVAIL;
    int failure = listener_address_resolve(address, &found);
    if (failure != 0 && address->host[0])
        return listener_refuse(e, "host %s: %s", address->host, gai_strerror(failure));
    for (struct addrinfo *at = found; at && l->fd < 0; at = at->ai_next) {
        l->fd = listener_listen(at->ai_addr, at->ai_addrlen, write_timeout);
        // The first address is the one people mean.
        if (l->fd < 0 && at == found) code = errno;
    }
    if (found) freeaddrinfo(found);
    bool lacks_ipv6 = code == EAFNOSUPPORT || code == EADDRNOTAVAIL;
    if (l->fd < 0 && !address->host[0] && lacks_ipv6) {
        l->fd = listener_listen_ipv4(address, write_timeout);
        if (l->fd < 0) code = errno;
    }
    return l->fd >= 0 || listener_refuse_errno(e, code);
}

// Whether somebody answers at the socket. A full queue is an answer too.
static bool listener_is_alive(const struct sockaddr_un *name)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return true;
    int failed = connect(fd, (const struct sockaddr *)name, sizeof(*name));
    bool is_alive = failed == 0 || errno != ECONNREFUSED;
    close(fd);
    return is_alive;
}

static bool listener_bind_unix(struct listener *l, const struct listener_address *address,
                               const struct listener_error *e)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct stat there;
    memcpy(name.sun_path, address->path, sizeof(name.sun_path));
    if (lstat(address->path, &there) == 0) {
        if (!S_ISSOCK(there.st_mode))
            return listener_refuse(e, "the file exists and is no socket; choose another path");
        if (listener_is_alive(&name)) return listener_refuse_errno(e, EADDRINUSE);
        unlink(address->path);
    }
    l->fd = listener_listen((const struct sockaddr *)&name, sizeof(name), 0);
    if (l->fd < 0) return listener_refuse_errno(e, errno);
    l->is_unix = true;
    memcpy(l->path, address->path, sizeof(l->path));
    return true;
}

const char *listener_check_address(struct slice address)
{
    struct listener_address parsed;
    return listener_address_read(&parsed, address);
}

bool listener_bind(struct listener *l, struct slice address, uint32_t write_timeout, char *error,
                   size_t size)
{
    struct listener_error e = {address, error, size};
    struct listener_address parsed;
    *l = (struct listener){.fd = -1, .owner = l->owner};
    const char *problem = listener_address_read(&parsed, address);
    if (problem) return listener_refuse(&e, "%s", problem);
    bool is_bound = parsed.path[0] ? listener_bind_unix(l, &parsed, &e)
                                   : listener_bind_tcp(l, &parsed, write_timeout, &e);
    if (is_bound) listener_address_url(l->fd, l->url, sizeof(l->url));
    return is_bound;
}

bool listener_adopt(struct listener *l, int fd, char *error, size_t size)
{
    int is_listening = 0, type = 0;
    socklen_t len = sizeof(int);
    *l = (struct listener){.fd = -1, .owner = l->owner};
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_STREAM ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &len) != 0 || !is_listening ||
        !listener_address_url(fd, l->url, sizeof(l->url))) {
        snprintf(error, size, "inherited descriptor %d is not a listening stream socket", fd);
        return false;
    }
    l->fd = fd;
    l->is_unix = l->url[0] == 'u';
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    if (!l->is_unix) listener_set_tcp_options(fd, 0);
    return true;
}

// Errors of the one connection that was to be accepted, not of accepting.
static bool listener_is_passing(int code)
{
    return code == EINTR || code == ECONNABORTED || code == EPROTO || code == EPERM ||
           code == ENETDOWN || code == ENETUNREACH || code == EHOSTDOWN || code == EHOSTUNREACH ||
           code == ENONET || code == ENOPROTOOPT;
}

int listener_accept(struct listener *l, struct peer *peer)
{
    struct sockaddr_storage name;
    socklen_t len;
    int fd;
    do {
        len = sizeof(name);
        name.ss_family = AF_UNIX;
        fd = accept4(l->fd, (struct sockaddr *)&name, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (fd < 0 && listener_is_passing(errno));
    if (fd < 0) return errno == EAGAIN ? -1 : -2;
    listener_address_peer(peer, &name);
    return fd;
}

static void listener_on_poll(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;
    (void)status, (void)events; // an error shows in accept
    if (!l) return;
    loop_refresh(l->loop);
    l->on_readable(l);
}

static void listener_on_poll_closed(uv_handle_t *poll)
{
    mem_free(poll);
}

bool listener_watch(struct listener *l, struct loop *loop, void (*on_readable)(struct listener *l))
{
    listener_unwatch(l);
    uv_poll_t *poll = mem_zalloc(sizeof(*poll));
    if (!poll || uv_poll_init(&loop->uv, poll, l->fd) != 0) {
        mem_free(poll);
        return false;
    }
    l->poll = poll;
    l->loop = loop;
    l->on_readable = on_readable;
    poll->data = l;
    return uv_poll_start(poll, UV_READABLE, listener_on_poll) == 0;
}

void listener_unwatch(struct listener *l)
{
    if (!l->poll) return;
    l->poll->data = NULL;
    uv_close((uv_handle_t *)l->poll, listener_on_poll_closed);
    l->poll = NULL;
}

void listener_close(struct listener *l)
{
    listener_unwatch(l);
    if (l->fd >= 0) close(l->fd);
    l->fd = -1;
    if (l->path[0]) unlink(l->path);
    l->path[0] = 0;
}

bool listener_shed(struct listener *l, int *spare)
{
    int fd = -1;
    if (*spare >= 0) {
        close(*spare);
        fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) close(fd);
    }
    *spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

#include "wire/listener_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/un.h>

static bool listener_copy(char *to, size_t room, struct slice from)
{
    if (from.len >= room || memchr(from.ptr, 0, from.len)) return false;
    memcpy(to, from.ptr, from.len);
    to[from.len] = 0;
    return true;
}

static bool listener_port_is_good(struct slice port)
{
    unsigned value = 0;
    for (size_t i = 0; i < port.len; i++) {
        if (port.ptr[i] < '0' || port.ptr[i] > '9') return false;
        value = value * 10 + (unsigned)(port.ptr[i] - '0');
    }
    return port.len > 0 && port.len <= 5 && value <= 65535;
}

// The host before the last colon: in brackets when it has colons of its own.
static bool listener_host_strip(struct slice *host)
{
    bool has_bracket = host->len && host->ptr[0] == '[';
    if (!has_bracket) return !host->len || !memchr(host->ptr, ':', host->len);
    if (host->len < 4 || host->ptr[host->len - 1] != ']') return false;
    *host = slice_of(host->ptr + 1, host->len - 2);
    return true;
}

const char *listener_address_read(struct listener_address *to, struct slice text)
{
    *to = (struct listener_address){0};
    if (text.len >= 5 && memcmp(text.ptr, "unix:", 5) == 0) {
        if (text.len == 5) return "the path after unix: is missing";
        return listener_copy(to->path, sizeof(to->path), slice_from(text, 5))
                   ? NULL
                   : "the path of a unix socket has at most 107 bytes";
    }
    const char *colon = text.len ? memrchr(text.ptr, ':', text.len) : NULL;
    if (!colon) return "write host:port, :port, [::1]:port or unix:/path.sock";
    struct slice host = {text.ptr, (size_t)(colon - text.ptr)};
    struct slice port = slice_from(text, host.len + 1);
    if (!listener_port_is_good(port)) return "the port is a number from 0 (any free one) to 65535";
    if (!listener_host_strip(&host)) return "an IPv6 address stands in brackets, like [::1]:8080";
    listener_copy(to->port, sizeof(to->port), port);
    return listener_copy(to->host, sizeof(to->host), host) ? NULL : "the host name is too long";
}

// Names such as localhost stand for both families, and most clients try IPv4 at least.
static void listener_prefer_ipv4(struct addrinfo **found)
{
    for (struct addrinfo **at = found; *at; at = &(*at)->ai_next) {
        struct addrinfo *one = *at;
        if (one->ai_family != AF_INET) continue;
        *at = one->ai_next;
        one->ai_next = *found;
        *found = one;
        return;
    }
}

int listener_address_resolve(const struct listener_address *address, struct addrinfo **found)
{
    // For every interface IPv6 comes first: its socket takes IPv4 too.
    bool is_everywhere = address->host[0] == 0;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
                             .ai_family = is_everywhere ? AF_INET6 : AF_UNSPEC};
    const char *host = is_everywhere ? NULL : address->host;
    int failure = getaddrinfo(host, address->port, &hints, found);
    if (failure == 0 && !is_everywhere) listener_prefer_ipv4(found);
    return failure;
}

bool listener_address_url(int fd, char *url, size_t size)
{
    struct sockaddr_storage name = {0};
    socklen_t len = sizeof(name);
    char ip[INET6_ADDRSTRLEN];
    if (getsockname(fd, (struct sockaddr *)&name, &len) != 0) return false;
    if (name.ss_family == AF_UNIX) {
        const struct sockaddr_un *un = (const struct sockaddr_un *)&name;
        bool has_path = len > offsetof(struct sockaddr_un, sun_path) && un->sun_path[0];
        snprintf(url, size, "unix:%.*s", LISTENER_PATH_ROOM, has_path ? un->sun_path : "");
    } else if (name.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&name;
        inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
        snprintf(url, size, "http://%s:%u", ip, ntohs(in->sin_port));
    } else if (name.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&name;
        inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
        snprintf(url, size, "http://[%s]:%u", ip, ntohs(in6->sin6_port));
    } else {
        return false;
    }
    return true;
}

void listener_address_peer(struct peer *to, const struct sockaddr_storage *from)
{
    *to = (struct peer){.family = AF_UNIX};
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)from;
        to->family = AF_INET;
        to->port = ntohs(in->sin_port);
        memcpy(to->ip, &in->sin_addr, 4);
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
        bool is_mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);
        to->family = is_mapped ? AF_INET : AF_INET6;
        to->port = ntohs(in6->sin6_port);
        memcpy(to->ip, in6->sin6_addr.s6_addr + (is_mapped ? 12 : 0), is_mapped ? 4 : 16);
    }
}

// Listening sockets: addresses, refusals, what accepted sockets inherit, and running out of
// descriptors.
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "wire/listener.h"
#include "wire_probe.h"

static char error[256], folder[] = "/tmp/photon-listener-XXXXXX", path[64], address[80];

static bool bind_text(struct listener *l, const char *text)
{
    error[0] = 0;
    *l = (struct listener){0};
    return listener_bind(l, slice_of_text(text), 7000, error, sizeof(error));
}

static void refused(const char *text, const char *wanted)
{
    struct listener l;
    char what[400];
    CHECK(!bind_text(&l, text));
    snprintf(what, sizeof(what), "the refusal of %s is: %s", text, error);
    report_check(strcmp(error, wanted) == 0, what, __FILE__, __LINE__);
    EQUAL(l.fd, -1);
}

#define WRITE "write host:port, :port, [::1]:port or unix:/path.sock"
#define PORT  "the port is a number from 0 (any free one) to 65535"

static void bad_addresses(void)
{
    refused("", "cannot listen on : " WRITE);
    refused("8080", "cannot listen on 8080: " WRITE);
    refused("localhost", "cannot listen on localhost: " WRITE);
    refused("127.0.0.1:", "cannot listen on 127.0.0.1:: " PORT);
    refused("127.0.0.1:http", "cannot listen on 127.0.0.1:http: " PORT);
    refused("127.0.0.1:65536", "cannot listen on 127.0.0.1:65536: " PORT);
    refused("127.0.0.1:-1", "cannot listen on 127.0.0.1:-1: " PORT);
    refused("::1:80",
            "cannot listen on ::1:80: an IPv6 address stands in brackets, like [::1]:8080");
    refused("[::1:80",
            "cannot listen on [::1:80: an IPv6 address stands in brackets, like [::1]:8080");
    refused("unix:", "cannot listen on unix:: the path after unix: is missing");
    refused("192.0.2.1:0", "cannot listen on 192.0.2.1:0: address not available; no interface has "
                           "this address, :PORT means all of them");
    refused("unix:/nonexistent/a.sock",
            "cannot listen on unix:/nonexistent/a.sock: no such file or "
            "directory; the folder of the socket must exist");
}

static void long_path(void)
{
    char text[200] = "unix:/", wanted[300];
    memset(text + 6, 'x', 107);
    snprintf(wanted, sizeof(wanted),
             "cannot listen on %s: the path of a unix socket has at most 107 bytes", text);
    refused(text, wanted);
}

static void address_in_use(void)
{
    struct listener l;
    char wanted[500];
    if (!CHECK(bind_text(&l, "127.0.0.1:0"))) return;
    const char *host = l.url + strlen("http://");
    snprintf(wanted, sizeof(wanted),
             "cannot listen on %s: address already in use; is another server running? choose "
             "another --listen",
             host);
    refused(host, wanted);
    listener_close(&l);
}

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

static void urls(void)
{
    struct listener l;
    CHECK(bind_text(&l, "127.0.0.1:0"));
    CHECK(begins(l.url, "http://127.0.0.1:") && !strstr(l.url, ":0"));
    listener_close(&l);
    CHECK(bind_text(&l, "localhost:0"));
    CHECK(begins(l.url, "http://127.0.0.1:"));
    listener_close(&l);
    CHECK(bind_text(&l, ":0"));
    CHECK(begins(l.url, "http://[::]:") || begins(l.url, "http://0.0.0.0:"));
    listener_close(&l);
    if (bind_text(&l, "[::1]:0")) CHECK(begins(l.url, "http://[::1]:"));
    listener_close(&l);
}

// Connects to the listener's port over IPv4 and accepts.
static int connect_to(struct listener *l, int *accepted, struct peer *peer)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    name.sin_port = htons((uint16_t)atoi(strrchr(l->url, ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0);
    *accepted = listener_accept(l, peer);
    socklen_t len = sizeof(name);
    getsockname(fd, (struct sockaddr *)&name, &len);
    EQUAL(peer->port, ntohs(name.sin_port));
    return fd;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);
    getsockopt(fd, level, name, &value, &len);
    return value;
}

static void accepted_sockets(void)
{
    struct listener l;
    struct peer peer;
    int fd;
    char text[46];
    if (!CHECK(bind_text(&l, ":0"))) return;
    EQUAL(listener_accept(&l, &peer), -1);
    int client = connect_to(&l, &fd, &peer);
    CHECK(fd >= 0);
    EQUAL(peer.family, AF_INET);
    text[conn_peer_text(&peer, text)] = 0;
    CHECK(strcmp(text, "127.0.0.1") == 0);
    EQUAL(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
    EQUAL(option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT), 16384);
    EQUAL(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 7000);
    CHECK(fcntl(fd, F_GETFL) & O_NONBLOCK);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    close(client);
    listener_close(&l);
}

static int connect_unix(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    strcpy(name.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0);
    return fd;
}

static void unix_sockets(void)
{
    struct listener l, second;
    struct peer peer;
    char wanted[300], text[46];
    if (!CHECK(bind_text(&l, address))) return;
    CHECK(strcmp(l.url, address) == 0 && l.is_unix);
    snprintf(wanted, sizeof(wanted),
             "cannot listen on %s: address already in use; is another server running? choose "
             "another --listen",
             address);
    refused(address, wanted);
    int first = listener_accept(&l, &peer); // the look whether somebody answers
    close(first);
    int client = connect_unix(), fd = listener_accept(&l, &peer);
    CHECK(fd >= 0);
    EQUAL(peer.family, AF_UNIX);
    text[conn_peer_text(&peer, text)] = 0;
    CHECK(strcmp(text, "unix") == 0);
    close(fd);
    close(client);
    close(l.fd); // dies without a farewell, and leaves its file
    CHECK(bind_text(&second, address));
    close(connect_unix());
    listener_close(&second);
    CHECK(access(path, F_OK) != 0);
    FILE *file = fopen(path, "w");
    if (file) fclose(file);
    snprintf(wanted, sizeof(wanted),
             "cannot listen on %s: the file exists and is no socket; choose another path", address);
    refused(address, wanted);
    CHECK(access(path, F_OK) == 0);
    unlink(path);
}

static void adopted(void)
{
    struct listener l, heir = {0};
    if (!CHECK(bind_text(&l, "127.0.0.1:0"))) return;
    int fd = dup(l.fd);
    CHECK(listener_adopt(&heir, fd, error, sizeof(error)));
    CHECK(strcmp(heir.url, l.url) == 0);
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    listener_close(&heir);
    listener_close(&l);
    CHECK(bind_text(&l, address));
    CHECK(listener_adopt(&heir, dup(l.fd), error, sizeof(error)));
    CHECK(heir.is_unix && strcmp(heir.url, address) == 0);
    listener_close(&heir);
    CHECK(access(path, F_OK) == 0); // it is not the heir's
    listener_close(&l);
    CHECK(!listener_adopt(&heir, 0, error, sizeof(error)));
    CHECK(strcmp(error, "inherited descriptor 0 is not a listening stream socket") == 0);
    int other = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(!listener_adopt(&heir, other, error, sizeof(error)));
    close(other);
}

static unsigned readable;

static void on_readable(struct listener *l)
{
    readable++;
    struct peer peer;
    int fd = listener_accept(l, &peer);
    if (fd >= 0) close(fd);
    listener_unwatch(l);
}

static void watched(void)
{
    struct listener *l = calloc(1, sizeof(*l));
    struct peer peer;
    int fd;
    memset(&loop, 0, sizeof(loop));
    loop_open(&loop, &counters);
    CHECK(bind_text(l, "127.0.0.1:0"));
    CHECK(listener_watch(l, &loop, on_readable));
    loop_run_once(&loop, 1);
    EQUAL(readable, 0);
    int first = connect_to(l, &fd, &peer);
    close(fd);
    close(first);
    for (int i = 0; i < 2; i++) {
        first = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in name = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        name.sin_port = htons((uint16_t)atoi(strrchr(l->url, ':') + 1));
        CHECK(connect(first, (struct sockaddr *)&name, sizeof(name)) == 0);
        close(first);
    }
    for (int i = 0; i < 5; i++) loop_run_once(&loop, 1);
    EQUAL(readable, 1); // then it was not watched any more
    CHECK(listener_watch(l, &loop, on_readable));
    for (int i = 0; i < 5; i++) loop_run_once(&loop, 1);
    EQUAL(readable, 2);
    CHECK(listener_watch(l, &loop, on_readable));
    listener_close(l);
    free(l); // the handle closes by itself
    loop_close(&loop);
}

static void shed(void)
{
    struct listener l;
    struct peer peer;
    struct rlimit before, now;
    char c;
    int spare = -1, held[64], count = 0;
    if (!CHECK(bind_text(&l, address))) return;
    CHECK(!listener_shed(&l, &spare));
    CHECK(spare >= 0);
    int client = connect_unix();
    getrlimit(RLIMIT_NOFILE, &before);
    now = before;
    now.rlim_cur = 40;
    setrlimit(RLIMIT_NOFILE, &now);
    while (count < 64 && (held[count] = dup(0)) >= 0) count++;
    EQUAL(listener_accept(&l, &peer), -2);
    EQUAL(errno, EMFILE);
    CHECK(listener_shed(&l, &spare));
    CHECK(spare >= 0);
    EQUAL(read(client, &c, 1), 0);
    CHECK(!listener_shed(&l, &spare)); // nobody waits any more
    CHECK(spare >= 0);
    while (count) close(held[--count]);
    setrlimit(RLIMIT_NOFILE, &before);
    close(spare);
    close(client);
    listener_close(&l);
}

int main(void)
{
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof(path), "%s/a.sock", folder);
    snprintf(address, sizeof(address), "unix:%s", path);
    int status = report_run((const struct report_case[]){
        {"bad addresses are refused with what to do", bad_addresses},
        {"the path of a unix socket may be too long", long_path},
        {"an address in use is refused", address_in_use},
        {"the url has the real port", urls},
        {"accepted sockets inherit the options", accepted_sockets},
        {"a stale unix socket is replaced, a live one and a file are not", unix_sockets},
        {"inherited sockets are adopted, others are not", adopted},
        {"a listener is watched, unwatched and freed at once", watched},
        {"a connection is shed when descriptors run out", shed},
        {0},
    });
    rmdir(folder);
    return status;
}

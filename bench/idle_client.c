// idle_client PORT COUNT: opens COUNT connections, has one request answered on each, says "ready N"
// and keeps them open until its input ends.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static const char request[] = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

static void raise_descriptors(int count)
{
    struct rlimit limit = {count + 64, count + 64};

    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

// Ten thousand connections per source address, as one address has no more ports than 28,000.
static int open_one(int port, int number)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = 3};
    char answer[4096];
    int yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number / 10000);
    if (fd < 0) return -1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0) return -1;
    if (connect(fd, (struct sockaddr *)&to, sizeof to) < 0) return -1;
    if (send(fd, request, sizeof request - 1, MSG_NOSIGNAL) < 0) return -1;
    return recv(fd, answer, sizeof answer, 0) > 0 ? fd : -1;
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: idle_client PORT COUNT\n"), 2;
    int count = atoi(argv[2]), opened = 0;
    raise_descriptors(count);
    while (opened < count && open_one(atoi(argv[1]), opened) >= 0) opened++;
    if (opened < count) perror("idle_client");
    printf("ready %d\n", opened);
    fflush(stdout);
    while (getchar() != EOF) continue;
    return 0;
}

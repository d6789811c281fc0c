#include "sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SOCKETS_FIRST_FD = 3 }; // SD_LISTEN_FDS_START

// How many descriptors are inherited. The variables may be meant for another process.
static int sockets_inherited(void)
{
    const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
    bool is_ours = fds && pid && strtol(pid, NULL, 10) == (long)getpid();
    int count = is_ours ? (int)strtol(fds, NULL, 10) : 0;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    return count < 0 ? 0 : count;
}

static bool sockets_adopt(struct sockets *s, char *error, size_t size)
{
    int count = sockets_inherited();
    if (count > SOCKETS_INHERITED) {
        snprintf(error, size, "LISTEN_FDS is %d; at most %d sockets can be inherited", count,
                 SOCKETS_INHERITED);
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (!listener_adopt(&s->listeners[s->count], SOCKETS_FIRST_FD + i, error, size))
            return false;
        s->count++;
    }
    return true;
}

// Whether an inherited socket stands for this address already.
static bool sockets_has(const struct sockets *s, const char *address)
{
    for (unsigned i = 0; i < s->count; i++) {
        const char *url = s->listeners[i].url;
        if (strncmp(url, "http://", 7) == 0) url += 7;
        if (strcmp(url, address) == 0) return true;
    }
    return false;
}

bool sockets_open(struct sockets *s, const struct config *c, uint32_t write_timeout, char *error,
                  size_t size)
{
    static const char *const otherwise[] = {"127.0.0.1:8080"};
    *s = (struct sockets){0};
    bool is_open = sockets_adopt(s, error, size);
    const char *const *addresses = c->listen_count ? c->listen : otherwise;
    unsigned count = c->listen_count ? c->listen_count : s->count == 0;
    for (unsigned i = 0; is_open && i < count; i++) {
        if (sockets_has(s, addresses[i])) continue;
        is_open = listener_bind(&s->listeners[s->count], slice_of_text(addresses[i]), write_timeout,
                                error, size);
        if (is_open) s->count++;
    }
    if (!is_open) sockets_close(s);
    return is_open;
}

void sockets_close(struct sockets *s)
{
    for (unsigned i = 0; i < s->count; i++) listener_close(&s->listeners[i]);
    s->count = 0;
}

#include "acceptor_refusal.h"

#include <sys/socket.h>
#include <unistd.h>
#include "base/slice.h"

enum { REFUSALS_LINGER_MS = 500 };

static void refusals_close_oldest(struct refusals *r)
{
    char unread[4096];
    int fd = r->fds[r->first];
    r->first = (r->first + 1) % REFUSALS;
    r->count--;
    // Unread bytes would make close send a reset.
    while (recv(fd, unread, sizeof(unread), MSG_DONTWAIT) == (ssize_t)sizeof(unread)) continue;
    close(fd);
}

void refusals_reset(struct refusals *r)
{
    timer_stop(&r->timer);
    while (r->count > 0) refusals_close_oldest(r);
}

static void refusals_on_time(struct timer *timer)
{
    refusals_reset(list_entry(timer, struct refusals, timer));
}

void refusals_add(struct refusals *r, struct loop *loop, int fd)
{
    static const struct slice answer = SLICE_INIT("HTTP/1.1 503 Service Unavailable\r\n"
                                                  "retry-after: 1\r\n"
                                                  "content-length: 0\r\n"
                                                  "connection: close\r\n\r\n");
    if (send(fd, answer.ptr, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        close(fd);
        return;
    }
    shutdown(fd, SHUT_WR);
    if (r->count == REFUSALS) refusals_close_oldest(r);
    r->fds[(r->first + r->count++) % REFUSALS] = fd;
    if (!timer_is_running(&r->timer))
        timer_start(loop, &r->timer, REFUSALS_LINGER_MS, refusals_on_time);
}

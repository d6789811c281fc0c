// Where the control sockets stand, and what is done while there are no descriptors.
#include "control_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"

enum { CONTROL_RETRY_MS = 100 };

void control_keep_spare(struct control *c)
{
    if (c->spare < 0) c->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void control_give_spare(struct control *c)
{
    if (c->spare >= 0) close(c->spare);
    c->spare = -1;
}

static void control_on_readable(struct listener *l);

static void control_on_retry(struct timer *timer)
{
    struct control *c = list_entry(timer, struct control, retry);
    bool is_watching = true;
    control_keep_spare(c);
    for (unsigned i = 0; i < c->count; i++)
        is_watching &= listener_watch(&c->listeners[i], c->loop, control_on_readable);
    if (!is_watching) timer_start(c->loop, timer, CONTROL_RETRY_MS, control_on_retry);
}

static void control_pause(struct control *c)
{
    for (unsigned i = 0; i < c->count; i++) listener_unwatch(&c->listeners[i]);
    timer_start(c->loop, &c->retry, CONTROL_RETRY_MS, control_on_retry);
}

static void control_on_readable(struct listener *l)
{
    struct control *c = l->owner;
    struct peer peer;
    int fd;
    while ((fd = listener_accept(l, &peer)) >= 0) control_accept(c, fd, &peer);
    if (fd == -1) return;
    control_give_spare(c);
    if ((fd = listener_accept(l, &peer)) >= 0) control_accept(c, fd, &peer);
    control_pause(c);
}

// Only the user may connect.
bool control_listen(struct control *c, const char *path, char *error, size_t size)
{
    char address[CONTROL_PATH + 8];
    struct listener *l = &c->listeners[c->count];
    snprintf(address, sizeof(address), "unix:%s", path);
    mode_t old = umask(0177);
    bool is_bound = listener_bind(l, slice_of_text(address), 0, error, size);
    umask(old);
    if (!is_bound) return false;
    l->owner = c;
    if (!listener_watch(l, c->loop, control_on_readable)) {
        snprintf(error, size, "cannot watch %s: not enough memory", path);
        listener_close(l);
        return false;
    }
    c->count++;
    return true;
}

// What is bound and does not listen yet looks stale to others; names with a dot they leave alone.
static bool control_listen_in(struct control *c, const char *folder, const char *key, char *error,
                              size_t size)
{
    struct listener *l = &c->listeners[c->count];
    char hidden[sizeof(l->path)], name[64];
    snprintf(name, sizeof(name), "%s-%ld.sock", key, (long)getpid());
    if (snprintf(hidden, sizeof(hidden), "%s/.%s", folder, name) >= (int)sizeof(hidden)) {
        snprintf(error, size, "the path of its folder, %.300s, is too long for a socket", folder);
        return false;
    }
    if (!control_listen(c, hidden, error, size)) return false;
    bool is_named = snprintf(l->path, sizeof(l->path), "%s/%s", folder, name) > 0 &&
                    rename(hidden, l->path) == 0;
    if (is_named) return true;
    snprintf(error, size, "%.300s: %s", hidden, strerror(errno));
    unlink(hidden);
    return false;
}

void control_listen_by_app(struct control *c, const char *app)
{
    char folder[CONTROL_PATH], key[CONTROL_KEY], error[512];
    const char *why = "no folder for it can be made";
    if (control_make_folder(folder)) {
        bool is_listening = true;
        control_sweep(folder);
        for (unsigned i = 0; is_listening && control_key(app, i, key); i++)
            is_listening = control_listen_in(c, folder, key, error, sizeof(error));
        if (is_listening) return;
        why = error;
    }
    log_write(LOG_WARN, "photon reload cannot find this server by its app: %s", why);
}

void control_stop_listening(struct control *c)
{
    timer_stop(&c->retry);
    for (unsigned i = 0; i < c->count; i++) listener_close(&c->listeners[i]);
    c->count = 0;
    control_give_spare(c);
}

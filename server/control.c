#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"

enum {
    CONTROL_LINE = 64,
    CONTROL_WAIT_MS = 2000,
    CONTROL_RETRY_MS = 100,                        // without descriptors
    CONTROL_MOST_PATH = 107 - sizeof(".sock") + 1, // so that the socket's path is not too long
};

struct control_client {
    struct list node;
    struct control *control;
    struct conn *conn;
    struct reload_ask ask;
    struct timer timer; // until it has sent its line
    bool has_asked;
};

static void control_answer(struct control_client *client, const char *word, const char *message)
{
    struct buf *out = conn_stage(client->conn);
    if (buf_append_format(out, "%s %s\n", word, message)) conn_flush(client->conn);
    conn_close_gracefully(client->conn);
}

static void control_on_reloaded(struct reload_ask *ask, bool is_done, const char *message)
{
    control_answer(list_entry(ask, struct control_client, ask), is_done ? "ok" : "failed", message);
}

static size_t control_on_bytes(struct conn *conn, char *bytes, size_t len)
{
    struct control_client *client = conn->state;
    char *end = memchr(bytes, '\n', len);
    if (client->has_asked) return len;
    if (!end && len < CONTROL_LINE) return 0;
    client->has_asked = true;
    timer_stop(&client->timer);
    if (end && slice_equals(slice_of(bytes, (size_t)(end - bytes)), SLICE("reload")))
        reload_begin(client->control->reload, &client->ask);
    else
        control_answer(client, "failed", "the control socket knows only \"reload\"");
    return len;
}

static void control_on_eof(struct conn *conn)
{
    struct control_client *client = conn->state;
    if (!client->has_asked) conn_close(conn);
}

static void control_on_close(struct conn *conn, enum conn_end how)
{
    struct control_client *client = conn->state;
    (void)how;
    timer_stop(&client->timer);
    list_remove(&client->ask.node);
    list_remove(&client->node);
    mem_free(client);
}

static void control_on_time(struct timer *timer)
{
    conn_close(list_entry(timer, struct control_client, timer)->conn);
}

static void control_accept(struct control *c, int fd, const struct peer *peer)
{
    static const struct conn_protocol protocol = {
        .on_bytes = control_on_bytes, .on_eof = control_on_eof, .on_close = control_on_close};
    struct control_client *client = mem_zalloc(sizeof(*client));
    if (!client) {
        close(fd);
        return;
    }
    client->control = c;
    client->ask.on_done = control_on_reloaded;
    client->conn = conn_open(c->loop, fd, peer, &protocol, client);
    if (!client->conn) {
        mem_free(client);
        return;
    }
    conn_limit_in(client->conn, CONTROL_LINE);
    list_append(&c->clients, &client->node);
    timer_start(c->loop, &client->timer, CONTROL_WAIT_MS, control_on_time);
}

static void control_keep_spare(struct control *c)
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
static bool control_listen(struct control *c, const char *path, char *error, size_t size)
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

static void control_listen_by_app(struct control *c, const char *app)
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

static bool control_refuse_pid(const char *file, int code, char *error, size_t size)
{
    const char *advice = "";
    if (code == ENOENT || code == ENOTDIR) advice = "; make its folder, or name another --pid FILE";
    if (code == EISDIR) advice = "; --pid takes the path of a file";
    if (code == ENAMETOOLONG)
        advice = " for its control socket, FILE.sock; name a shorter --pid FILE";
    if (code == EACCES || code == EPERM || code == EROFS)
        advice = "; name a --pid FILE in a folder that may be written to";
    snprintf(error, size, "cannot write the pid file %s: %s%s", file, strerror(code), advice);
    return false;
}

// What would come out as an error of the socket beside it.
static int control_find_obstacle(const char *file)
{
    char folder[CONTROL_PATH];
    struct stat there;
    if (strlen(file) > CONTROL_MOST_PATH) return ENAMETOOLONG;
    if (stat(file, &there) == 0 && S_ISDIR(there.st_mode)) return EISDIR;
    snprintf(folder, sizeof(folder), "%s", file);
    char *slash = strrchr(folder, '/');
    if (slash) slash[1] = '\0';
    return access(slash ? folder : ".", W_OK | X_OK) == 0 ? 0 : errno;
}

// Readers see the old file or the new one, never half of it.
static bool control_write_pid(const char *file, char *error, size_t size)
{
    char next[CONTROL_PATH + 8];
    snprintf(next, sizeof(next), "%s.new", file);
    FILE *f = fopen(next, "we");
    bool is_written = f && fprintf(f, "%ld\n", (long)getpid()) > 0;
    if (f && fclose(f) != 0) is_written = false;
    if (is_written && rename(next, file) == 0) return true;
    control_refuse_pid(file, errno, error, size);
    unlink(next);
    return false;
}

static bool control_take_pid_file(struct control *c, const char *file, char *error, size_t size)
{
    char path[CONTROL_PATH];
    int obstacle = control_find_obstacle(file);
    if (obstacle) return control_refuse_pid(file, obstacle, error, size);
    snprintf(path, sizeof(path), "%s.sock", file);
    int fd = control_connect(path);
    if (fd >= 0) {
        close(fd);
        snprintf(error, size,
                 "the pid file %s belongs to a server that runs; stop that one, or "
                 "name another --pid FILE",
                 file);
        return false;
    }
    if (!control_listen(c, path, error, size)) return false;
    snprintf(c->pid_file, sizeof(c->pid_file), "%s", file);
    return control_write_pid(file, error, size);
}

bool control_open(struct control *c, struct loop *loop, struct reload *reload,
                  const struct config *config, char *error, size_t size)
{
    *c = (struct control){.loop = loop, .reload = reload, .spare = -1};
    list_init(&c->clients);
    control_keep_spare(c);
    bool is_open = !config->has_pid_file || control_take_pid_file(c, config->pid_file, error, size);
    if (is_open) control_listen_by_app(c, config->app);
    return is_open;
}

void control_stop(struct control *c)
{
    if (!c->loop) return;
    timer_stop(&c->retry);
    for (unsigned i = 0; i < c->count; i++) listener_close(&c->listeners[i]);
    c->count = 0;
    control_give_spare(c);
}

static void control_remove_pid(const char *file)
{
    char text[32] = "";
    FILE *f = fopen(file, "re");
    if (!f) return;
    bool is_ours = fgets(text, sizeof(text), f) && strtol(text, NULL, 10) == (long)getpid();
    fclose(f);
    if (is_ours) unlink(file);
}

void control_close(struct control *c)
{
    if (!c->loop) return;
    control_stop(c);
    for (struct list *n = c->clients.next; n != &c->clients; n = n->next)
        conn_close(list_entry(n, struct control_client, node)->conn);
    if (c->pid_file[0]) control_remove_pid(c->pid_file);
    c->pid_file[0] = '\0';
}

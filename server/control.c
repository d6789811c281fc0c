#include "control_private.h"

#include <string.h>
#include <unistd.h>
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

void control_accept(struct control *c, int fd, const struct peer *peer)
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
    control_stop_listening(c);
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

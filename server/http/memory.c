#include "http/memory_private.h"

#include "base/mem.h"

enum {
    MEMORY_PIECE = 16384, // of the request's body, given at a time
    MEMORY_TICK = 10,     // ms between two reads of a slow client
};

static void memory_on_time(struct timer *timer);

void memory_host_init(struct memory_host *host, struct loop *loop, const struct limits *limits,
                      struct handler *handler)
{
    *host = (struct memory_host){.loop = loop, .limits = limits, .handler = handler};
    list_init(&host->open);
}

void memory_go_on(struct memory *m)
{
    loop_next_turn(m->host->loop, &m->turn);
}

static void memory_tell(struct memory *m)
{
    if (m->on_news && !m->is_closed) m->on_news(m);
}

static void memory_free(struct memory *m)
{
    list_remove(&m->node);
    loop_forget(&m->turn);
    timer_stop(&m->timer);
    buf_reset(&m->staged);
    buf_reset(&m->queue);
    buf_reset(&m->received);
    arena_reset(&m->arena);
    mem_free(m);
}

static void memory_watch_reader(struct memory *m)
{
    uint32_t stalled = m->x.limits->write_timeout;
    if (m->queue.len == 0 || timer_is_running(&m->timer)) return;
    m->read_at = m->host->loop->now;
    if (m->rate > 0)
        timer_start(m->host->loop, &m->timer, MEMORY_TICK, memory_on_time);
    else if (stalled)
        timer_start(m->host->loop, &m->timer, stalled, memory_on_time);
}

// No memory for the reply is like a socket that fails.
static bool memory_receive(struct memory *m, struct slice bytes)
{
    if (buf_append_slice(&m->received, bytes)) return true;
    memory_drop(m);
    return false;
}

static void memory_read(struct memory *m)
{
    uint64_t now = m->host->loop->now;
    m->allowance += m->rate * (double)(now - m->read_at) / 1000;
    m->read_at = now;
    size_t len = m->queue.len;
    if (m->allowance < (double)len) len = (size_t)m->allowance;
    if (!memory_receive(m, slice_of(m->queue.ptr, len))) return;
    m->allowance -= (double)len;
    buf_consume(&m->queue, len);
    if (len) memory_go_on(m);
}

static void memory_on_time(struct timer *timer)
{
    struct memory *m = list_entry(timer, struct memory, timer);
    if (m->rate > 0)
        memory_read(m);
    else
        memory_drop(m); // write_timeout: nothing was read for so long
    if (!m->is_dropped) memory_watch_reader(m);
}

void memory_send(struct memory *m)
{
    if (m->rate < 0 && m->queue.len == 0) {
        memory_receive(m, buf_slice(&m->staged));
    } else if (!buf_append_slice(&m->queue, buf_slice(&m->staged))) {
        memory_drop(m);
    }
    m->staged.len = 0;
    m->was_full = m->queue.len > 0;
    memory_watch_reader(m);
    memory_go_on(m);
}

void memory_slow(struct memory *m, double rate)
{
    timer_stop(&m->timer);
    m->rate = rate;
    m->allowance = 0;
    if (rate < 0 && memory_receive(m, buf_slice(&m->queue))) m->queue.len = 0;
    memory_watch_reader(m);
    memory_go_on(m);
}

// One piece of the request's body, when there is credit for it.
static void memory_upload(struct memory *m)
{
    struct slice piece = m->upload;
    if (m->x.is_body_complete || m->x.body_error || m->credit == 0) return;
    if (piece.len > MEMORY_PIECE) piece.len = MEMORY_PIECE;
    if (piece.len > m->credit) piece.len = (size_t)m->credit;
    m->upload = slice_from(m->upload, piece.len);
    m->credit -= piece.len;
    exchange_take_body(&m->x, piece, m->upload.len == 0);
    if (m->upload.len && m->credit) memory_go_on(m);
}

static void memory_serve(struct memory *m)
{
    m->is_served = true;
    m->host->handler->serve(m->host->handler, &m->x);
    if (!m->is_ended && !exchange_hold(&m->x)) exchange_abort(&m->x);
}

// How the exchange has ended, once it has.
static bool memory_has_ended(const struct memory *m, enum exchange_end *how)
{
    *how = m->is_ended ? EXCHANGE_DONE : m->is_aborted ? EXCHANGE_ABORTED : EXCHANGE_GONE;
    return m->is_ended || m->is_aborted || m->is_dropped;
}

static void memory_on_turn(struct loop_turn *turn)
{
    struct memory *m = list_entry(turn, struct memory, turn);
    enum exchange_end how;
    if (!m->is_served && !m->is_dropped) memory_serve(m);
    if (!memory_has_ended(m, &how)) memory_upload(m);
    if (m->was_full && m->queue.len == 0) {
        m->was_full = false;
        if (m->x.phase != EXCHANGE_OVER) exchange_notify_drain(&m->x);
    }
    // The end of one that was never served concerns nobody.
    if (memory_has_ended(m, &how) && m->x.phase != EXCHANGE_OVER) exchange_over(&m->x, how);
    memory_tell(m);
    if (m->is_closed && m->x.phase == EXCHANGE_OVER) memory_free(m);
}

static bool memory_copy_request(struct memory *m, const struct memory_request *from)
{
    struct request *r = &m->x.request;
    struct slice target = arena_copy(&m->arena, from->target);
    const char *mark = target.ptr ? memchr(target.ptr, '?', target.len) : NULL;
    const struct header *host = headers_find(&from->headers, SLICE("host"));
    struct request request = {
        .method = message_method(from->method),
        .method_name = arena_copy(&m->arena, from->method),
        .target = target,
        .path = slice_of(target.ptr, mark ? (size_t)(mark - target.ptr) : target.len),
        .headers = from->headers,
        .content_length = from->is_chunked ? -1 : (int64_t)from->body.len,
        .keep_alive = true,
    };
    if (mark) request.query = slice_from(target, (size_t)(mark - target.ptr) + 1);
    if (host) request.host = host->value;
    m->upload = arena_copy(&m->arena, from->body);
    if (!target.ptr || !request.method_name.ptr || !m->upload.ptr) return false;
    return message_copy_request(r, &request, &m->arena);
}

struct memory *memory_open(struct memory_host *host, const struct memory_request *request)
{
    struct memory *m = mem_zalloc(sizeof *m);
    if (!m) return NULL;
    m->host = host;
    m->rate = -1;
    m->content_length = -1;
    m->peer = request->peer;
    m->turn.on_turn = memory_on_turn;
    exchange_init(&m->x, &memory_ops, host->loop, host->limits);
    m->x.peer = &m->peer;
    m->x.serial = request->serial;
    m->x.is_head_request = message_method(request->method) == METHOD_HEAD;
    m->x.is_body_complete = !request->is_chunked && request->body.len == 0;
    if (!memory_copy_request(m, request)) {
        memory_free(m);
        return NULL;
    }
    list_append(&host->open, &m->node);
    memory_go_on(m);
    return m;
}

void memory_drop(struct memory *m)
{
    m->is_dropped = true;
    memory_go_on(m);
}

void memory_close(struct memory *m)
{
    m->is_closed = true;
    m->on_news = NULL;
    memory_drop(m);
}

void memory_host_close(struct memory_host *host)
{
    struct list *node;
    while ((node = list_take(&host->open)) != NULL) {
        struct memory *m = list_entry(node, struct memory, node);
        exchange_over(&m->x, EXCHANGE_GONE);
        memory_free(m);
    }
}

enum memory_state memory_state(const struct memory *m)
{
    if (m->x.phase != EXCHANGE_OVER) return MEMORY_OPEN;
    if (m->is_ended && m->queue.len == 0) return MEMORY_DONE;
    if (m->is_dropped) return MEMORY_LOST;
    return m->is_ended ? MEMORY_OPEN : MEMORY_BROKEN;
}

void memory_take(struct memory *m)
{
    m->received.len = 0;
}

#include "serve/stream.h"

#include <stdlib.h>
#include "base/mem.h"

static struct slice stream_content_type(const struct stream_spec *spec)
{
    if (spec->content_type.len) return spec->content_type;
    if (spec->type == STREAM_SSE) return SLICE("text/event-stream");
    return spec->type == STREAM_NDJSON ? SLICE("application/x-ndjson")
                                       : SLICE("application/octet-stream");
}

static bool stream_add_default(struct reply *reply, struct arena *a, struct slice name,
                               struct slice value)
{
    return headers_find(&reply->headers, name) || headers_add(&reply->headers, a, name, value);
}

static bool stream_is_compressed(const struct exchange *x, const struct stream_spec *spec,
                                 const struct headers *headers)
{
    return spec->compresses && compress_is_accepted(&x->request.headers) &&
           !(headers && headers_find(headers, SLICE("content-encoding")));
}

static bool stream_add_coding(struct exchange *x, const struct stream_spec *spec,
                              const struct headers *headers, struct reply *reply)
{
    struct arena *a = &x->arena;
    if (!spec->compresses) return true;
    return headers_add(&reply->headers, a, SLICE("vary"), SLICE("accept-encoding")) &&
           (!stream_is_compressed(x, spec, headers) ||
            headers_add(&reply->headers, a, SLICE("content-encoding"), SLICE("gzip")));
}

// The given headers, then the stream's own where they say nothing. Proxies and caches must pass
// every event on at once: no-transform and x-accel-buffering ask for that.
bool stream_make_reply(struct exchange *x, const struct stream_spec *spec, int status,
                       const struct headers *headers, struct reply *reply)
{
    struct arena *a = &x->arena;
    *reply = (struct reply){.status = status ? status : 200, .content_length = -1};
    for (uint32_t i = 0; headers && i < headers->count; i++) {
        struct slice name = arena_copy(a, headers->items[i].name);
        struct slice value = arena_copy(a, headers->items[i].value);
        if (!name.ptr || !value.ptr || !headers_add(&reply->headers, a, name, value)) return false;
    }
    struct slice type = arena_copy(a, stream_content_type(spec));
    char *id = arena_alloc(a, EXCHANGE_ID);
    if (!id || !type.ptr) return false;
    exchange_id(x, id);
    return stream_add_coding(x, spec, headers, reply) &&
           stream_add_default(reply, a, SLICE("x-request-id"), slice_of(id, EXCHANGE_ID)) &&
           stream_add_default(reply, a, SLICE("content-type"), type) &&
           stream_add_default(reply, a, SLICE("cache-control"), SLICE("no-store, no-transform")) &&
           stream_add_default(reply, a, SLICE("x-accel-buffering"), SLICE("no"));
}

static void stream_free(struct stream *s)
{
    list_remove(&s->node);
    s->host->count--;
    atomic_fetch_sub_explicit(s->host->total, 1, memory_order_relaxed);
    timer_stop(&s->heartbeat);
    timer_stop(&s->limit);
    buf_reset(&s->pending);
    buf_reset(&s->compressed);
    compress_free(s->compress);
    mem_free(s);
}

static void stream_on_watch_over(struct exchange_watch *w, enum exchange_end how)
{
    struct stream *s = list_entry(w, struct stream, watch);
    (void)how;
    counters_add(&s->x->loop->counters->streams, -1);
    s->x = NULL;
    if (s->on_over) s->on_over(s);
    stream_free(s);
}

static void stream_on_watch_drain(struct exchange_watch *w)
{
    struct stream *s = list_entry(w, struct stream, watch);
    if (s->on_drain) s->on_drain(s);
}

// Looks whether the stream has been silent long enough; pushes only note the time.
static void stream_on_heartbeat(struct timer *timer)
{
    struct stream *s = list_entry(timer, struct stream, heartbeat);
    struct loop *loop = s->x->loop;
    uint64_t due = s->last_push + s->spec.heartbeat;
    if (s->is_ended) return;
    if (loop->now >= due) {
        due = loop->now + s->spec.heartbeat;
        // A peer that has not taken the last bytes learns nothing from more of them.
        if (exchange_backlog(s->x) == 0 && stream_write(s, SLICE(":\n\n"))) stream_push(s);
    }
    if (s->x && !s->is_ended) timer_start(loop, timer, due - loop->now, stream_on_heartbeat);
}

static void stream_on_limit(struct timer *timer)
{
    stream_end(list_entry(timer, struct stream, limit), -1);
}

static void stream_start_timers(struct stream *s)
{
    struct loop *loop = s->x->loop;
    s->last_push = loop->now;
    if (s->spec.type == STREAM_SSE && s->spec.heartbeat) {
        timer_start(loop, &s->heartbeat, s->spec.heartbeat, stream_on_heartbeat);
    }
    if (s->spec.max_duration) timer_start(loop, &s->limit, s->spec.max_duration, stream_on_limit);
}

bool stream_is_refused(_Atomic uint32_t *total, struct exchange *x)
{
    struct header retry = {SLICE("retry-after"), SLICE("5")};
    struct headers extra = {&retry, 1, 1};
    if (atomic_load_explicit(total, memory_order_relaxed) < x->limits->max_streams) {
        return false;
    }
    counters_add(&x->loop->counters->streams_refused, 1);
    exchange_error(x, 503, "too many open streams (max_streams)", &extra);
    return true;
}

struct stream *stream_open(struct stream_host *host, struct exchange *x,
                           const struct stream_spec *spec, int status,
                           const struct headers *headers)
{
    struct stream *s;
    struct reply reply;
    if (stream_is_refused(host->total, x)) return NULL;
    s = mem_zalloc(sizeof *s);
    bool is_compressed = stream_is_compressed(x, spec, headers);
    struct compress *compress = is_compressed ? compress_new() : NULL;
    if (!s || (is_compressed && !compress) ||
        !stream_make_reply(x, spec, status, headers, &reply)) {
        compress_free(compress);
        mem_free(s);
        exchange_error(x, 503, NULL, NULL);
        return NULL;
    }
    *s = (struct stream){.host = host, .x = x, .spec = *spec, .reply = reply, .compress = compress};
    list_append(&host->streams, &s->node);
    host->count++;
    atomic_fetch_add_explicit(host->total, 1, memory_order_relaxed);
    s->watch.on_over = stream_on_watch_over;
    s->watch.on_drain = stream_on_watch_drain;
    exchange_watch(x, &s->watch);
    x->is_stream = true;
    counters_add(&x->loop->counters->streams, 1);
    counters_add(&x->loop->counters->streams_opened, 1);
    stream_start_timers(s);
    if (spec->type == STREAM_SSE && spec->retry >= 0) {
        stream_send_event(s, &(struct sse_event){.retry = spec->retry});
    }
    return s;
}

void stream_answer_head(struct exchange *x, const struct stream_spec *spec, int status,
                        const struct headers *headers)
{
    struct reply reply;
    if (!stream_make_reply(x, spec, status, headers, &reply)) {
        exchange_error(x, 503, NULL, NULL);
        return;
    }
    exchange_head(x, &reply);
    exchange_end(x);
}

// The processor's own counter, where there is one: it ticks at a GHz or more and costs a third of a
// clock. It only says when the clock is worth asking.
static inline uint64_t stream_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return uv_hrtime();
#endif
}

// Whether the oldest pending byte has waited too long. Half a million ticks are at most half a
// millisecond, and then the clock is asked.
static bool stream_is_old(struct stream *s)
{
    uint64_t ticks = stream_ticks();
    if (ticks - s->pending_ticks < STREAM_OLD_NS / 2) return false;
    s->pending_ticks = ticks;
    return uv_hrtime() - s->pending_since > STREAM_OLD_NS;
}

// What may be pending until there is enough, or too much. The backlog only grows by pushes.
static size_t stream_room(const struct stream *s)
{
    size_t backlog = exchange_backlog(s->x);
    size_t room = s->spec.buffer > backlog ? s->spec.buffer - backlog : 0;
    return room < STREAM_FULL ? room : STREAM_FULL;
}

// Notes the first pending byte, or pushes when there is enough or it is old enough.
static bool stream_noted(struct stream *s, bool ok, bool was_empty)
{
    if (!ok) {
        stream_abort(s);
        return false;
    }
    counters_add(&s->x->loop->counters->stream_events, 1);
    if (was_empty) {
        s->pending_since = uv_hrtime();
        s->pending_ticks = stream_ticks();
        s->pending_most = stream_room(s);
    } else if (s->pending.len >= STREAM_FULL || stream_is_old(s)) {
        stream_push(s);
    }
    return true;
}

static inline bool stream_is_open(const struct stream *s)
{
    return s->x && !s->is_ended;
}

bool stream_send(struct stream *s, struct slice event, struct slice data)
{
    bool was_empty = s->pending.len == 0;
    if (!stream_is_open(s)) return false;
    return stream_noted(s, sse_write_data(&s->pending, event, data), was_empty);
}

// Whether more data is simply added: there is something pending, neither too old nor, with this,
// too much.
static bool stream_has_room(const struct stream *s, size_t len)
{
    return s->pending.len && s->pending.len + len < s->pending_most && stream_is_open(s) &&
           stream_ticks() - s->pending_ticks < STREAM_OLD_NS / 2;
}

bool stream_append(struct stream *s, struct slice data)
{
    if (s->spec.type != STREAM_SSE || !stream_has_room(s, data.len)) return false;
    if (!sse_write_data(&s->pending, (struct slice){0}, data)) return false;
    counters_add(&s->x->loop->counters->stream_events, 1);
    return true;
}

bool stream_send_event(struct stream *s, const struct sse_event *e)
{
    bool was_empty = s->pending.len == 0;
    if (!stream_is_open(s)) return false;
    return stream_noted(s, sse_write(&s->pending, e), was_empty);
}

bool stream_write(struct stream *s, struct slice bytes)
{
    bool was_empty = s->pending.len == 0;
    if (!stream_is_open(s)) return false;
    return stream_noted(s, buf_append_slice(&s->pending, bytes), was_empty);
}

bool stream_write_line(struct stream *s, struct slice line)
{
    bool was_empty = s->pending.len == 0;
    if (!stream_is_open(s)) return false;
    bool ok = buf_reserve(&s->pending, line.len + 1) && buf_append_slice(&s->pending, line) &&
              buf_append(&s->pending, "\n", 1);
    return stream_noted(s, ok, was_empty);
}

// What is pending, compressed when the client accepts that. A stream whose bytes cannot be
// compressed for want of memory is aborted: the client could make nothing of what comes after.
static bool stream_give_body(struct stream *s, bool is_end)
{
    if (!s->compress) {
        exchange_body(s->x, buf_slice(&s->pending));
        return true;
    }
    if (s->pending.len == 0 && !is_end) return true;
    s->compressed.len = 0;
    if (!compress_write(s->compress, buf_slice(&s->pending), is_end, &s->compressed)) return false;
    exchange_body(s->x, buf_slice(&s->compressed));
    return true;
}

static void stream_give(struct stream *s, bool is_end)
{
    if (!s->is_headed) {
        s->is_headed = true;
        exchange_head(s->x, &s->reply);
    }
    if (!stream_give_body(s, is_end)) stream_abort(s);
    s->pending.len = 0;
    s->last_push = s->x->loop->now;
}

void stream_push(struct stream *s)
{
    if (!stream_is_open(s)) return;
    stream_give(s, false);
    exchange_flush(s->x);
    if (s->pending.cap > 4 * STREAM_FULL) buf_reset(&s->pending);
}

bool stream_is_full(struct stream *s)
{
    if (!stream_is_open(s)) return false;
    if (s->pending.len + exchange_backlog(s->x) <= s->spec.buffer) return false;
    stream_push(s);
    return exchange_backlog(s->x) > s->spec.buffer;
}

void stream_end(struct stream *s, int64_t retry)
{
    if (!stream_is_open(s)) return;
    if (retry >= 0 && s->spec.type == STREAM_SSE) {
        stream_send_event(s, &(struct sse_event){.retry = retry});
        if (!stream_is_open(s)) return;
    }
    stream_give(s, true);
    if (s->is_ended) return;
    s->is_ended = true;
    exchange_end(s->x);
}

void stream_abort(struct stream *s)
{
    if (!stream_is_open(s)) return;
    s->is_ended = true;
    exchange_abort(s->x);
}

void stream_host_end_all(struct stream_host *host, uint32_t spread)
{
    struct list ending, *node;
    list_init(&ending);
    list_move_all(&ending, &host->streams);
    while ((node = list_take(&ending)) != NULL) {
        struct stream *s = list_entry(node, struct stream, node);
        list_append(&host->streams, node);
        stream_end(s, spread ? (int64_t)(random() % spread) : -1);
    }
}

#include "serve/server.h"

void server_sum(const struct server *s, struct counters *sum)
{
    *sum = (struct counters){0};
    for (unsigned i = 0; i < s->worker_count; i++) {
        if (s->counters[i]) counters_sum(sum, s->counters[i]);
    }
    counters_sum(sum, &s->own);
    counters_add(&sum->log_dropped, (int64_t)log_dropped());
    if (!s->channels) return;
    struct channel_totals totals = channel_registry_totals(s->channels);
    counters_add(&sum->channels, (int64_t)totals.channels);
    counters_add(&sum->channels_refused, (int64_t)totals.refused);
    counters_add(&sum->channel_events, (int64_t)totals.events);
    counters_add(&sum->channel_log_errors, (int64_t)totals.log_errors);
}

struct metrics_gauges server_gauges(const struct server *s)
{
    struct metrics_gauges g = {
        .workers = s->worker_count,
        .generations = atomic_load_explicit(&s->generations, memory_order_relaxed),
        .generation = atomic_load_explicit(&s->generation, memory_order_relaxed),
        .uptime = (double)(uv_hrtime() - s->started) / 1e9,
        .reload_pause = (double)atomic_load_explicit(&s->reload_pause, memory_order_relaxed) / 1e9,
        .version = SERVER_VERSION,
    };
    for (unsigned i = 0; i < s->worker_count; i++)
        g.vm_bytes += atomic_load_explicit(&s->vm_bytes[i], memory_order_relaxed);
    return g;
}

// What is told is true only now, so that nobody may keep it.
static void server_reply(struct exchange *x, int status, struct slice type, struct slice text)
{
    struct header items[] = {
        {SLICE("content-type"), type},
        {SLICE("cache-control"), SLICE("no-store")},
    };
    struct reply reply = {.status = status, .headers = {items, 2, 2}};
    exchange_reply(x, &reply, text);
}

void server_serve_metrics(struct server *s, struct exchange *x)
{
    struct counters sum;
    struct buf text = {0};
    struct metrics_gauges gauges = server_gauges(s);
    server_sum(s, &sum);
    if (metrics_write(&text, s->metrics, &sum, &gauges)) {
        server_reply(x, 200, SLICE("text/plain; version=0.0.4; charset=utf-8"), buf_slice(&text));
    } else {
        exchange_error(x, 503, "not enough memory for the metrics", NULL);
    }
    buf_reset(&text);
}

void server_serve_health(struct server *s, struct exchange *x)
{
    struct buf text = {0};
    struct metrics_gauges g = server_gauges(s);
    bool is_draining = atomic_load_explicit(&s->is_draining, memory_order_relaxed);
    if (buf_append_format(&text,
                          "{\"status\":\"%s\",\"workers\":%u,\"generation\":%u,\"uptime\":%.3f}\n",
                          is_draining ? "draining" : "ok", g.workers, g.generation, g.uptime)) {
        server_reply(x, is_draining ? 503 : 200, SLICE("application/json"), buf_slice(&text));
    } else {
        exchange_error(x, 503, "not enough memory", NULL);
    }
    buf_reset(&text);
}

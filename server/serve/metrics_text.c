// The text that Prometheus reads (exposition format 0.0.4): for each metric a line of help, one
// with its type, and its samples.
#include "serve/metrics_private.h"

#include "base/buf.h"

static bool metrics_head(struct buf *to, const char *name, const char *type, const char *help)
{
    return buf_append_format(to, "# HELP photon_%s %s\n# TYPE photon_%s %s\n", name, help, name,
                             type);
}

// The names in counters.h are without the suffix that counters bear.
static bool metrics_write_counter(struct buf *to, const char *name, bool is_gauge, const char *help,
                                  const _Atomic uint64_t *value)
{
    const char *suffix = is_gauge ? "" : "_total", *type = is_gauge ? "gauge" : "counter";
    int64_t n = (int64_t)atomic_load_explicit(value, memory_order_relaxed);
    // A sum that was read while its parts moved on.
    if (is_gauge && n < 0) n = 0;
    return buf_append_format(to, "# HELP photon_%s%s %s\n# TYPE photon_%s%s %s\nphoton_%s%s %llu\n",
                             name, suffix, help, name, suffix, type, name, suffix,
                             (unsigned long long)n);
}

// `requests` is told by route instead, under the same name.
static bool metrics_write_counters(struct buf *to, const struct counters *sum)
{
    enum { counter, gauge };
    bool ok = true;
#define METRICS_WRITE(name, kind, help)                                                            \
    if (ok && &sum->name != &sum->requests)                                                        \
        ok = metrics_write_counter(to, #name, kind == gauge, help, &sum->name);
    COUNTERS_EACH(METRICS_WRITE)
#undef METRICS_WRITE
    return ok;
}

static bool metrics_write_label(struct buf *to, struct slice value)
{
    bool ok = true;
    for (size_t i = 0; i < value.len && ok; i++) {
        char c = value.ptr[i];
        if (c == '\n')
            ok = buf_append(to, "\\n", 2);
        else
            ok = ((c != '\\' && c != '"') || buf_append(to, "\\", 1)) && buf_append(to, &c, 1);
    }
    return ok;
}

static bool metrics_write_sample(struct buf *to, const struct metrics_route_sum *route, int class)
{
    return buf_append_slice(to, SLICE("photon_requests_total{method=\"")) &&
           metrics_write_label(to, route->method) && buf_append_slice(to, SLICE("\",route=\"")) &&
           metrics_write_label(to, route->pattern) &&
           buf_append_format(to, "\",status=\"%s\"} %llu\n", metrics_class_name(class),
                             (unsigned long long)route->by_class[class]);
}

static bool metrics_write_route(struct buf *to, const struct metrics_route_sum *route)
{
    bool ok = true;
    for (int class = 0; class < METRICS_CLASSES && ok; class ++)
        ok = !route->by_class[class] || metrics_write_sample(to, route, class);
    return ok;
}

static bool metrics_write_requests(struct buf *to, struct metrics *m)
{
    uint32_t count = metrics_route_count(m);
    bool ok = metrics_head(to, "requests_total", "counter",
                           "requests by method and pattern of their route, and class of status");
    for (uint32_t i = 0; i < count && ok; i++) {
        struct metrics_route_sum route = metrics_read_route(m, i);
        ok = metrics_write_route(to, &route);
    }
    return ok;
}

static bool metrics_write_histogram(struct buf *to, const struct metrics_totals *totals)
{
    bool ok = metrics_head(to, "request_seconds", "histogram",
                           "time from a request's head to the end of its reply, without streams");
    for (int b = 0; b <= METRICS_BUCKETS && ok; b++) {
        ok = buf_append_format(to, "photon_request_seconds_bucket{le=\"%s\"} %llu\n",
                               b < METRICS_BUCKETS ? metrics_bounds[b].text : "+Inf",
                               (unsigned long long)totals->up_to[b]);
    }
    return ok && buf_append_format(to,
                                   "photon_request_seconds_sum %.9f\n"
                                   "photon_request_seconds_count %llu\n",
                                   (double)totals->nanoseconds / 1e9,
                                   (unsigned long long)totals->up_to[METRICS_BUCKETS]);
}

static bool metrics_write_bytes(struct buf *to, const struct metrics_totals *totals)
{
    return metrics_head(to, "reply_body_bytes_total", "counter",
                        "bytes of the bodies of replies that are over") &&
           buf_append_format(to, "photon_reply_body_bytes_total %llu\n",
                             (unsigned long long)totals->body_bytes);
}

static bool metrics_write_gauge(struct buf *to, const char *name, const char *help, double value)
{
    return metrics_head(to, name, "gauge", help) &&
           buf_append_format(to, "photon_%s %.15g\n", name, value);
}

static bool metrics_write_gauges(struct buf *to, const struct metrics_gauges *g)
{
    return metrics_write_gauge(to, "lua_heap_bytes", "heap of all living virtual machines",
                               (double)g->vm_bytes) &&
           metrics_write_gauge(to, "workers", "worker threads", g->workers) &&
           metrics_write_gauge(to, "generations", "loads of the app that are alive",
                               g->generations) &&
           metrics_write_gauge(to, "generation", "number of the load that serves", g->generation) &&
           metrics_write_gauge(to, "reload_pause_seconds",
                               "CPU time that reloads have kept a worker's loop at once, at most",
                               g->reload_pause) &&
           metrics_write_gauge(to, "uptime_seconds", "time since the start", g->uptime) &&
           metrics_head(to, "build_info", "gauge", "the version that runs") &&
           buf_append_slice(to, SLICE("photon_build_info{version=\"")) &&
           metrics_write_label(to, slice_of_text(g->version)) &&
           buf_append_slice(to, SLICE("\"} 1\n"));
}

bool metrics_write(struct buf *to, struct metrics *m, const struct counters *sum,
                   const struct metrics_gauges *g)
{
    struct metrics_totals totals = metrics_read_totals(m);
    return metrics_write_requests(to, m) && metrics_write_histogram(to, &totals) &&
           metrics_write_bytes(to, &totals) && metrics_write_counters(to, sum) &&
           metrics_write_gauges(to, g);
}

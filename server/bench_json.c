#include "bench_report.h"

#include <stdio.h>
#include "text/date.h"
#include "text/json.h"

// Appends ,"name": before a value; the comma where one is needed.
static bool json_name(struct buf *b, const char *name)
{
    char last = b->len ? b->ptr[b->len - 1] : 0;
    return (last == '{' || last == '[' || buf_append(b, ",", 1)) &&
           buf_append_format(b, "\"%s\":", name);
}

static bool json_number(struct buf *b, const char *name, double value)
{
    char text[JSON_NUMBER];
    return json_name(b, name) && buf_append(b, text, json_write_number(text, value));
}

static bool json_bool(struct buf *b, const char *name, bool value)
{
    return json_name(b, name) && buf_append_slice(b, value ? SLICE("true") : SLICE("false"));
}

// Text that is not UTF-8 is left out.
static bool json_text(struct buf *b, const char *name, struct slice value)
{
    size_t before = b->len;
    if (!json_name(b, name)) return false;
    enum json_result result = json_write_string(b, value);
    if (result == JSON_BAD_UTF8) b->len = before;
    return result != JSON_NO_MEMORY;
}

static bool json_open(struct buf *b, const char *name, char bracket)
{
    return json_name(b, name) && buf_append(b, &bracket, 1);
}

static bool json_close(struct buf *b, char bracket)
{
    return buf_append(b, &bracket, 1);
}

static double json_ms(double nanoseconds)
{
    return nanoseconds / 1e6;
}

static bool json_run(struct buf *b, const struct bench_options *o, const struct bench_result *r)
{
    char date[DATE_LEN];
    date_format(date, r->started);
    return json_number(b, "photon_bench", 1) && json_text(b, "url", slice_of_text(o->url)) &&
           json_text(b, "method", o->method) &&
           json_text(b, "mode", r->mode == BENCH_SSE ? SLICE("sse") : SLICE("http")) &&
           json_number(b, "connections", o->connections) &&
           (o->rate == 0 || json_number(b, "rate", o->rate)) &&
           json_text(b, "started", slice_of(date, sizeof(date))) &&
           json_number(b, "seconds", r->seconds);
}

static bool json_streams(struct buf *b, const struct bench_options *o, const struct bench_result *r)
{
    return json_open(b, "streams", '{') && json_number(b, "opened", (double)r->streams) &&
           json_number(b, "ended", (double)r->responses) &&
           json_number(b, "open", (double)r->streams_open) && json_close(b, '}') &&
           json_number(b, "events", (double)r->events) &&
           json_number(b, "events_per_second", bench_per_second(r, (double)r->events)) &&
           json_number(b, "comments", (double)r->comments) &&
           json_number(b, "stalls", (double)r->stalls) && json_number(b, "stall_seconds", o->stall);
}

static bool json_amounts(struct buf *b, const struct bench_options *o, const struct bench_result *r)
{
    bool ok = r->mode == BENCH_SSE ? json_streams(b, o, r)
                                   : json_number(b, "requests", (double)r->responses) &&
                                         json_number(b, "requests_per_second",
                                                     bench_per_second(r, (double)r->responses));
    return ok && json_number(b, "bytes", (double)r->bytes) &&
           json_number(b, "bytes_per_second", bench_per_second(r, (double)r->bytes)) &&
           json_open(b, "unfinished", '{') && json_number(b, "count", (double)r->unfinished) &&
           json_number(b, "oldest_ms", json_ms((double)r->oldest)) && json_close(b, '}');
}

static bool json_errors(struct buf *b, const struct bench_result *r)
{
    bool ok = json_open(b, "errors", '{') && json_number(b, "total", (double)bench_errors(r));
    for (unsigned i = 0; ok && i < BENCH_ERRORS; i++)
        ok = json_number(b, bench_error_names[i], (double)r->errors[i]);
    ok = ok && json_close(b, '}') && json_open(b, "error_examples", '{');
    for (unsigned i = 0; ok && i < BENCH_ERRORS; i++)
        if (r->errors[i]) ok = json_text(b, bench_error_names[i], slice_of_text(r->examples[i]));
    return ok && json_close(b, '}');
}

static bool json_statuses(struct buf *b, const struct bench_result *r)
{
    char name[8];
    bool ok = json_open(b, "statuses", '{');
    for (unsigned i = 0; ok && i < BENCH_MAX_STATUS; i++) {
        snprintf(name, sizeof(name), "%u", i);
        if (r->statuses[i]) ok = json_number(b, name, (double)r->statuses[i]);
    }
    return ok && json_close(b, '}');
}

static bool json_time(struct buf *b, const struct bench_times *t)
{
    char name[32];
    const struct histogram *h = t->h;
    snprintf(name, sizeof(name), "%s_ms", t->name);
    return json_open(b, name, '{') && json_number(b, "count", (double)h->count) &&
           json_number(b, "mean", json_ms(histogram_mean(h))) &&
           json_number(b, "min", json_ms((double)h->min)) &&
           json_number(b, "p50", json_ms((double)histogram_at(h, 0.5))) &&
           json_number(b, "p90", json_ms((double)histogram_at(h, 0.9))) &&
           json_number(b, "p99", json_ms((double)histogram_at(h, 0.99))) &&
           json_number(b, "p999", json_ms((double)histogram_at(h, 0.999))) &&
           json_number(b, "max", json_ms((double)h->max)) && json_close(b, '}');
}

static bool json_times(struct buf *b, const struct bench_options *o, const struct bench_result *r)
{
    struct bench_times times[BENCH_TIMES];
    unsigned count = bench_times(o, r, times);
    bool ok = true;
    for (unsigned i = 0; ok && i < count; i++) ok = json_time(b, &times[i]);
    return ok;
}

static bool json_histogram(struct buf *b, const struct bench_result *r)
{
    struct bench_row rows[BENCH_ROWS];
    unsigned count = bench_rows(bench_spread(r), rows);
    bool ok = json_open(b, "histogram", '[');
    for (unsigned i = 0; ok && i < count; i++)
        ok = (i == 0 || buf_append(b, ",", 1)) && buf_append(b, "{", 1) &&
             json_number(b, "from_ms", json_ms((double)rows[i].low)) &&
             json_number(b, "to_ms", json_ms((double)rows[i].high)) &&
             json_number(b, "count", (double)rows[i].count) && json_close(b, '}');
    return ok && json_close(b, ']');
}

static bool json_series(struct buf *b, const struct bench_result *r)
{
    const struct bench_series *s = &r->series;
    unsigned count = bench_series_count(s, (uint64_t)(r->seconds * 1e9));
    bool ok = json_number(b, "slot_seconds", (double)bench_series_width(s) / 1e9) &&
              json_open(b, "series", '[');
    for (unsigned i = 0; ok && i < count; i++)
        ok = (i == 0 || buf_append(b, ",", 1)) && buf_append(b, "{", 1) &&
             json_number(b, bench_unit(r), (double)s->slots[i].units) &&
             json_number(b, "bytes", (double)s->slots[i].bytes) &&
             json_number(b, "errors", (double)s->slots[i].errors) &&
             json_number(b, "longest_ms", json_ms((double)s->slots[i].longest)) &&
             json_close(b, '}');
    return ok && json_close(b, ']');
}

static bool json_client(struct buf *b, const struct bench_result *r)
{
    return json_open(b, "client", '{') && json_number(b, "cpu_seconds", r->cpu_seconds) &&
           json_number(b, "cpu_percent", 100 * bench_per_second(r, r->cpu_seconds)) &&
           json_bool(b, "is_limit", bench_is_limit(r)) && json_close(b, '}');
}

bool bench_json_write(struct buf *to, const struct bench_options *o, const struct bench_result *r)
{
    return buf_append(to, "{", 1) && json_run(to, o, r) && json_amounts(to, o, r) &&
           json_errors(to, r) && json_statuses(to, r) && json_times(to, o, r) &&
           json_histogram(to, r) && json_series(to, r) && json_client(to, r) &&
           buf_append_slice(to, SLICE("}\n"));
}

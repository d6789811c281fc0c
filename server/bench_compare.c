#include "bench_compare.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include "bench.h"
#include "bench_words.h"
#include "text/json.h"

enum { COMPARE_NAME = 48, COMPARE_TEXT = 200, COMPARE_DEEP = 4 };

enum compare_better { MORE, LESS, NEITHER };
enum compare_kind { COUNT, BYTES, MS };

// What is compared: a name in the file, and which way is better.
struct compare_line {
    const char *path;
    enum compare_better better;
    enum compare_kind kind;
};

static const struct compare_line compare_lines[] = {
    {"connections", NEITHER, COUNT},
    {"rate", NEITHER, COUNT},
    {"seconds", NEITHER, COUNT},
    {"requests", NEITHER, COUNT},
    {"requests_per_second", MORE, COUNT},
    {"streams.opened", NEITHER, COUNT},
    {"events", NEITHER, COUNT},
    {"events_per_second", MORE, COUNT},
    {"bytes_per_second", MORE, BYTES},
    {"errors.total", LESS, COUNT},
    {"stalls", LESS, COUNT},
    {"unfinished.oldest_ms", LESS, MS},
    {"connect_ms.p50", LESS, MS},
    {"connect_ms.p99", LESS, MS},
    {"first_byte_ms.p50", LESS, MS},
    {"first_byte_ms.p99", LESS, MS},
    {"first_event_ms.p50", LESS, MS},
    {"first_event_ms.p99", LESS, MS},
    {"gap_ms.mean", NEITHER, MS},
    {"gap_ms.p50", NEITHER, MS},
    {"gap_ms.p90", LESS, MS},
    {"gap_ms.p99", LESS, MS},
    {"gap_ms.p999", LESS, MS},
    {"gap_ms.max", LESS, MS},
    {"latency_ms.mean", LESS, MS},
    {"latency_ms.p50", LESS, MS},
    {"latency_ms.p90", LESS, MS},
    {"latency_ms.p99", LESS, MS},
    {"latency_ms.p999", LESS, MS},
    {"latency_ms.max", LESS, MS},
    {"service_ms.p50", LESS, MS},
    {"service_ms.p99", LESS, MS},
    {"client.cpu_percent", NEITHER, COUNT},
};
enum { COMPARE_LINES = sizeof(compare_lines) / sizeof(compare_lines[0]) };

// A file's numbers; NAN where it has none.
struct compare_run {
    const char *name;
    double values[COMPARE_LINES];
    char url[COMPARE_TEXT], mode[8];
    bool is_limit, is_bench;
};

static void compare_take_number(struct compare_run *run, const char *path, double value)
{
    if (strcmp(path, "photon_bench") == 0) run->is_bench = value == 1;
    for (unsigned i = 0; i < COMPARE_LINES; i++)
        if (strcmp(path, compare_lines[i].path) == 0) run->values[i] = value;
}

static void compare_take_text(struct compare_run *run, const char *path, struct slice value)
{
    int len = value.len < COMPARE_TEXT ? (int)value.len : COMPARE_TEXT - 1;
    if (strcmp(path, "url") == 0) snprintf(run->url, sizeof(run->url), "%.*s", len, value.ptr);
    if (strcmp(path, "mode") == 0) snprintf(run->mode, sizeof(run->mode), "%.*s", len, value.ptr);
}

// The path of names, "a.b", that leads to the value that is read.
struct compare_path {
    char text[COMPARE_DEEP * COMPARE_NAME];
    size_t ends[COMPARE_DEEP]; // where each level's name begins
    unsigned depth;
};

static void compare_enter(struct compare_path *p)
{
    size_t len = strlen(p->text);
    if (p->depth < COMPARE_DEEP) {
        if (p->depth > 0) snprintf(p->text + len, sizeof(p->text) - len, ".");
        p->ends[p->depth] = strlen(p->text);
    }
    p->depth++;
}

static void compare_leave(struct compare_path *p)
{
    p->depth--;
    if (p->depth > 0 && p->depth < COMPARE_DEEP) p->text[p->ends[p->depth] - 1] = 0;
}

static void compare_name(struct compare_path *p, struct slice name)
{
    if (p->depth == 0 || p->depth > COMPARE_DEEP) return;
    size_t at = p->ends[p->depth - 1];
    int len = name.len < COMPARE_NAME - 1 ? (int)name.len : COMPARE_NAME - 2;
    snprintf(p->text + at, sizeof(p->text) - at, "%.*s", len, name.ptr);
}

// NULL, or what is wrong with the text.
static const char *compare_parse(struct compare_run *run, struct slice text)
{
    struct json_reader reader;
    struct compare_path path = {.depth = 0};
    enum json_token token;
    json_read_init(&reader, text);
    while ((token = json_read_next(&reader)) != JSON_END && token != JSON_INVALID) {
        switch (token) {
        case JSON_OBJECT_OPEN:
        case JSON_ARRAY_OPEN: compare_enter(&path); break;
        case JSON_OBJECT_CLOSE:
        case JSON_ARRAY_CLOSE: compare_leave(&path); break;
        case JSON_KEY: compare_name(&path, reader.string); break;
        case JSON_STRING: compare_take_text(run, path.text, reader.string); break;
        case JSON_NUMBER_TOKEN: compare_take_number(run, path.text, reader.number); break;
        case JSON_TRUE: run->is_limit |= strcmp(path.text, "client.is_limit") == 0; break;
        default: break;
        }
    }
    const char *why = token == JSON_INVALID ? reader.error : NULL;
    json_read_reset(&reader);
    if (!why && !run->is_bench) why = "not written by photon bench --json";
    return why;
}

static bool compare_read(struct compare_run *run, const char *path, char *error, size_t size)
{
    struct buf text = {0};
    const char *why = NULL;
    *run = (struct compare_run){.name = path};
    for (unsigned i = 0; i < COMPARE_LINES; i++) run->values[i] = NAN;
    if (!bench_file_read(&text, path))
        why = strerror(errno);
    else
        why = compare_parse(run, buf_slice(&text));
    if (why) snprintf(error, size, "%s: %s", path, why);
    buf_reset(&text);
    return !why;
}

static void compare_word(char to[BENCH_WORD], double value, enum compare_kind kind)
{
    switch (kind) {
    case COUNT: bench_write_count(to, value); break;
    case BYTES: bench_write_bytes(to, value); break;
    case MS: bench_write_time(to, value * 1e6); break;
    }
}

// "+12.3 %  better"; what differs by less than 2 % is called the same.
static void compare_change(char to[BENCH_WORD], double a, double b, enum compare_better better)
{
    if (a == b) {
        snprintf(to, BENCH_WORD, "%9s", "=");
    } else if (a == 0) {
        snprintf(to, BENCH_WORD, "%9s%s", "new", better == LESS ? "    worse" : "");
    } else {
        double percent = 100 * (b - a) / a;
        bool is_better = better == MORE ? b > a : b < a;
        const char *word = better == NEITHER || fabs(percent) < 2 ? ""
                           : is_better                            ? "  better"
                                                                  : "  worse";
        snprintf(to, BENCH_WORD, "%+8.1f %%%s", percent, word);
    }
}

static bool compare_write_line(struct buf *to, const struct compare_line *line, double a, double b)
{
    char left[BENCH_WORD] = "–", right[BENCH_WORD] = "–", change[BENCH_WORD] = "";
    if (!isnan(a)) compare_word(left, a, line->kind);
    if (!isnan(b)) compare_word(right, b, line->kind);
    if (!isnan(a) && !isnan(b)) compare_change(change, a, b, line->better);
    return buf_append_format(to, "%-22s", line->path) && bench_write_cell(to, left, 14) &&
           bench_write_cell(to, right, 14) && buf_append_format(to, "  %s\n", change);
}

static bool compare_write_heads(struct buf *to, const struct compare_run *a,
                                const struct compare_run *b)
{
    const struct compare_run *runs[] = {a, b};
    bool ok = true;
    for (unsigned i = 0; ok && i < 2; i++)
        ok = buf_append_format(to, "%c  %s: %s (%s)%s\n", "ab"[i], runs[i] -> name, runs[i] -> url,
                               runs[i] -> mode,
                               runs[i] -> is_limit ? ", limited by its client" : "");
    return ok && buf_append_format(to, "\n%-22s%14s%14s  %9s\n", "", "a", "b", "change");
}

bool bench_compare_write(struct buf *to, const char *a, const char *b, char *error, size_t size)
{
    struct compare_run left, right;
    if (!compare_read(&left, a, error, size) || !compare_read(&right, b, error, size)) return false;
    bool ok = compare_write_heads(to, &left, &right);
    for (unsigned i = 0; ok && i < COMPARE_LINES; i++) {
        double x = left.values[i], y = right.values[i];
        bool is_empty = (isnan(x) || x == 0) && (isnan(y) || y == 0);
        if (!is_empty) ok = compare_write_line(to, &compare_lines[i], x, y);
    }
    if (!ok) snprintf(error, size, "not enough memory");
    return ok;
}

#include "bench_report.h"

#include "bench_words.h"

enum { REPORT_BAR = 40 };

static bool report_head(struct buf *b, const struct bench_options *o, const struct bench_result *r)
{
    bool ok = buf_append_format(b, "%.*s %s  (%s, %u connection%s, %.1f s", (int)o->method.len,
                                o->method.ptr, o->url, r->mode == BENCH_SSE ? "sse" : "http",
                                o->connections, o->connections == 1 ? "" : "s", r->seconds);
    if (ok && o->rate > 0) ok = buf_append_format(b, ", %g a second wanted", o->rate);
    return ok && buf_append_slice(b, SLICE(")\n\n"));
}

static bool report_amount(struct buf *b, const char *name, double amount,
                          const struct bench_result *r)
{
    char all[BENCH_WORD], rate[BENCH_WORD];
    bench_write_count(all, amount);
    bench_write_count(rate, bench_per_second(r, amount));
    return buf_append_format(b, "  %-12s %s  (%s/s)\n", name, all, rate);
}

static bool report_bytes(struct buf *b, const struct bench_result *r)
{
    char all[BENCH_WORD], rate[BENCH_WORD];
    bench_write_bytes(all, (double)r->bytes);
    bench_write_bytes(rate, bench_per_second(r, (double)r->bytes));
    return buf_append_format(b, "  %-12s %s  (%s/s)\n", "received", all, rate);
}

static bool report_streams(struct buf *b, const struct bench_result *r)
{
    char opened[BENCH_WORD], ended[BENCH_WORD], open[BENCH_WORD];
    bench_write_count(opened, (double)r->streams);
    bench_write_count(ended, (double)r->responses);
    bench_write_count(open, (double)r->streams_open);
    return buf_append_format(b, "  %-12s %s opened, %s ended well, %s still open\n", "streams",
                             opened, ended, open);
}

static bool report_stalls(struct buf *b, const struct bench_options *o,
                          const struct bench_result *r)
{
    return buf_append_format(b, "  %-12s %llu over %g s\n", "stalls", (unsigned long long)r->stalls,
                             o->stall);
}

static bool report_errors(struct buf *b, const struct bench_result *r)
{
    char count[BENCH_WORD];
    bench_write_count(count, (double)bench_errors(r));
    bool ok = buf_append_format(b, "  %-12s %s\n", "errors", count);
    for (unsigned i = 0; ok && i < BENCH_ERRORS; i++) {
        if (r->errors[i] == 0) continue;
        bench_write_count(count, (double)r->errors[i]);
        ok = buf_append_format(b, "    %-10s %s  (first: %s)\n", bench_error_names[i], count,
                               r->examples[i]);
    }
    return ok;
}

static bool report_unfinished(struct buf *b, const struct bench_options *o,
                              const struct bench_result *r)
{
    char count[BENCH_WORD], oldest[BENCH_WORD];
    bool is_usual = r->unfinished <= o->connections && r->oldest < 1000000000;
    if (is_usual) return true;
    bench_write_count(count, (double)r->unfinished);
    bench_write_time(oldest, (double)r->oldest);
    return buf_append_format(b, "  %-12s %s without an answer at the end, for up to %s\n",
                             "unfinished", count, oldest);
}

static bool report_amounts(struct buf *b, const struct bench_options *o,
                           const struct bench_result *r)
{
    bool ok = r->mode == BENCH_SSE
                  ? report_streams(b, r) && report_amount(b, "events", (double)r->events, r)
                  : report_amount(b, "requests", (double)r->responses, r);
    if (ok && r->comments) ok = report_amount(b, "comments", (double)r->comments, r);
    ok = ok && report_bytes(b, r) && report_errors(b, r) && report_unfinished(b, o, r);
    return ok && (r->mode != BENCH_SSE || report_stalls(b, o, r));
}

static bool report_time_row(struct buf *b, const struct bench_times *t)
{
    static const double shares[] = {0.5, 0.9, 0.99, 0.999, 1};
    char word[BENCH_WORD];
    bool ok = buf_append_format(b, "  %-20s", t->words);
    for (unsigned i = 0; ok && i < sizeof(shares) / sizeof(shares[0]); i++) {
        bench_write_time(word, (double)histogram_at(t->h, shares[i]));
        ok = bench_write_cell(b, word, 10);
    }
    bench_write_time(word, histogram_mean(t->h));
    return ok && bench_write_cell(b, word, 10) && buf_append(b, "\n", 1);
}

static bool report_times(struct buf *b, const struct bench_options *o, const struct bench_result *r)
{
    struct bench_times times[BENCH_TIMES];
    unsigned count = bench_times(o, r, times);
    if (count == 0) return true;
    bool ok = buf_append_format(b, "\n  %-20s%10s%10s%10s%10s%10s%10s\n", "", "p50", "p90", "p99",
                                "p99.9", "max", "mean");
    for (unsigned i = 0; ok && i < count; i++) ok = report_time_row(b, &times[i]);
    return ok;
}

// A bar of `eighths` eighths of a character.
static bool report_bar(struct buf *b, unsigned eighths)
{
    static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    bool ok = true;
    for (; ok && eighths >= 8; eighths -= 8) ok = buf_append_slice(b, SLICE("█"));
    return ok && buf_append_slice(b, slice_of_text(parts[eighths]));
}

static bool report_row(struct buf *b, const struct bench_row *row, uint64_t most, uint64_t all)
{
    char low[BENCH_WORD], high[BENCH_WORD], count[BENCH_WORD];
    unsigned eighths = (unsigned)((double)row->count / (double)most * REPORT_BAR * 8);
    if (row->count && eighths == 0) eighths = 1;
    bench_write_tick(low, (double)row->low);
    bench_write_tick(high, (double)row->high);
    bench_write_count(count, (double)row->count);
    return bench_write_cell(b, low, 10) && buf_append_slice(b, SLICE(" –")) &&
           bench_write_cell(b, high, 7) && bench_write_cell(b, count, 13) &&
           buf_append_format(b, " %5.1f %% ", 100 * (double)row->count / (double)all) &&
           report_bar(b, eighths) && buf_append(b, "\n", 1);
}

static bool report_histogram(struct buf *b, const struct bench_result *r)
{
    struct bench_row rows[BENCH_ROWS];
    const struct histogram *h = bench_spread(r);
    unsigned count = bench_rows(h, rows);
    uint64_t most = 1;
    if (count == 0) return true;
    for (unsigned i = 0; i < count; i++) most = rows[i].count > most ? rows[i].count : most;
    bool ok = buf_append_format(b, "\n  %s\n", bench_spread_name(r));
    for (unsigned i = 0; ok && i < count; i++) {
        bool is_dull = rows[i].count == 0, was_dull = i > 0 && rows[i - 1].count == 0;
        if (!is_dull)
            ok = report_row(b, &rows[i], most, h->count);
        else if (!was_dull)
            ok = buf_append_slice(b, SLICE("          ⋮\n"));
    }
    return ok;
}

static bool report_client(struct buf *b, const struct bench_result *r)
{
    double percent = 100 * bench_per_second(r, r->cpu_seconds);
    bool ok =
        buf_append_format(b, "\n  photon bench itself used %.0f %% of one processor.\n", percent);
    if (!ok || !bench_is_limit(r)) return ok;
    return buf_append_slice(b, SLICE("  Warning: that is the limit of this client, so the server "
                                     "may be able to do more;\n  run several at once, or spread "
                                     "them over machines.\n"));
}

bool bench_report_write(struct buf *to, const struct bench_options *o, const struct bench_result *r)
{
    return report_head(to, o, r) && report_amounts(to, o, r) && report_times(to, o, r) &&
           report_histogram(to, r) && report_client(to, r);
}

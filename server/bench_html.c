#include <stdio.h>
#include "bench_page.h"
#include "bench_plot.h"
#include "bench_report.h"
#include "bench_words.h"
#include "text/date.h"

static void html_tile(struct bench_page *p, const char *name, const char *value, const char *kind)
{
    bench_page_add(p, "<div><dt>%s</dt><dd%s>%s</dd></div>\n", name, kind, value);
}

static void html_tile_rate(struct bench_page *p, const struct bench_result *r)
{
    char word[BENCH_WORD];
    bench_write_count(word, bench_per_second(r, (double)bench_units(r)));
    html_tile(p, r->mode == BENCH_SSE ? "Events a second" : "Requests a second", word, "");
}

static void html_tile_time(struct bench_page *p, const char *name, const struct histogram *h,
                           double share)
{
    char word[BENCH_WORD];
    if (h->count == 0) return;
    bench_write_time(word, (double)histogram_at(h, share));
    html_tile(p, name, word, "");
}

static void html_tiles(struct bench_page *p, const struct bench_result *r)
{
    char word[BENCH_WORD];
    bool is_sse = r->mode == BENCH_SSE;
    bench_page_add(p, "<dl class=\"tiles\">\n");
    html_tile_rate(p, r);
    html_tile_time(p, is_sse ? "Gap, p50" : "Latency, p50", bench_spread(r), 0.5);
    html_tile_time(p, is_sse ? "Gap, p99" : "Latency, p99", bench_spread(r), 0.99);
    if (is_sse) html_tile_time(p, "First event, p50", &r->first_event, 0.5);
    if (!is_sse) html_tile_time(p, "Latency, max", &r->latency, 1);
    bench_write_bytes(word, bench_per_second(r, (double)r->bytes));
    html_tile(p, "Received a second", word, "");
    bench_write_count(word, (double)bench_errors(r));
    html_tile(p, "Errors", word, bench_errors(r) ? " class=\"bad\"" : "");
    bench_page_add(p, "</dl>\n");
}

static void html_head(struct bench_page *p, const struct bench_options *o,
                      const struct bench_result *r)
{
    char amount[BENCH_WORD], unit[16] = "requests";
    bench_page_add(p, "<h1>%.*s ", (int)o->method.len, o->method.ptr);
    bench_page_text(p, slice_of_text(o->url));
    bench_write_count(amount, (double)(r->mode == BENCH_SSE ? r->streams : r->responses));
    if (r->mode == BENCH_SSE) snprintf(unit, sizeof(unit), "streams");
    bench_page_add(p, "</h1>\n<p class=\"about\">%s %s over %u connection%s in %.1f s", amount,
                   unit, o->connections, o->connections == 1 ? "" : "s", r->seconds);
    if (o->rate > 0) bench_page_add(p, ", %g a second wanted", o->rate);
    bench_page_add(p, "</p>\n");
}

static void html_warning(struct bench_page *p, const struct bench_result *r)
{
    if (!bench_is_limit(r)) return;
    bench_page_add(p,
                   "<section class=\"warn\"><p><b>The client was the limit.</b> It used %.0f %% "
                   "of one processor, so the server may be able to do more.</p></section>\n",
                   100 * bench_per_second(r, r->cpu_seconds));
}

static void html_plots(struct bench_page *p, const struct bench_result *r)
{
    bool is_sse = r->mode == BENCH_SSE;
    bench_page_add(p, "<div class=\"plots\">\n");
    bench_plot_spread(p, bench_spread(r), is_sse ? "Gaps between events" : "Latency");
    bench_plot_percentiles(p, bench_spread(r),
                           is_sse ? "Gap by percentile" : "Latency by percentile");
    bench_plot_rate(p, r);
    bench_plot_longest(p, r);
    if (is_sse) bench_plot_spread(p, &r->first_event, "Time to the first event");
    if (is_sse) bench_plot_spread(p, &r->connect, "Time to connect");
    bench_page_add(p, "</div>\n");
}

static void html_time(struct bench_page *p, const struct bench_times *t)
{
    static const double shares[] = {0.5, 0.9, 0.99, 0.999, 1};
    char word[BENCH_WORD];
    bench_page_add(p, "<tr><td>%s", t->words);
    for (unsigned i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        bench_write_time(word, (double)histogram_at(t->h, shares[i]));
        bench_page_add(p, "<td>%s", word);
    }
    bench_write_time(word, histogram_mean(t->h));
    bench_page_add(p, "<td>%s", word);
    bench_write_count(word, (double)t->h->count);
    bench_page_add(p, "<td>%s\n", word);
}

static void html_times(struct bench_page *p, const struct bench_options *o,
                       const struct bench_result *r)
{
    struct bench_times times[BENCH_TIMES];
    unsigned count = bench_times(o, r, times);
    if (count == 0) return;
    bench_page_add(p, "<section><h2>Times</h2><div class=\"wide\"><table>\n<tr><th><th>p50<th>p90"
                      "<th>p99<th>p99.9<th>max<th>mean<th>values\n");
    for (unsigned i = 0; i < count; i++) html_time(p, &times[i]);
    bench_page_add(p, "</table></div></section>\n");
}

static void html_amount(struct bench_page *p, const char *name, double amount)
{
    char word[BENCH_WORD];
    bench_write_count(word, amount);
    bench_page_add(p, "<tr><td>%s<td>%s\n", name, word);
}

static void html_amounts(struct bench_page *p, const struct bench_options *o,
                         const struct bench_result *r)
{
    char word[BENCH_WORD];
    bench_page_add(p, "<section><h2>Amounts</h2><table>\n");
    if (r->mode == BENCH_SSE) {
        html_amount(p, "streams opened", (double)r->streams);
        html_amount(p, "streams that ended well", (double)r->responses);
        html_amount(p, "streams still open", (double)r->streams_open);
        html_amount(p, "events", (double)r->events);
        html_amount(p, "comments", (double)r->comments);
        snprintf(word, sizeof(word), "stalls over %g s", o->stall);
        html_amount(p, word, (double)r->stalls);
    } else {
        html_amount(p, "requests", (double)r->responses);
        html_amount(p, "unfinished at the end", (double)r->unfinished);
    }
    bench_write_bytes(word, (double)r->bytes);
    bench_page_add(p, "<tr><td>received<td>%s\n</table></section>\n", word);
}

static void html_errors(struct bench_page *p, const struct bench_result *r)
{
    char word[BENCH_WORD];
    if (bench_errors(r) == 0) return;
    bench_page_add(p, "<section><h2>Errors</h2><div class=\"wide\"><table>\n"
                      "<tr><th>kind<th>count<th style=\"text-align:left\">first\n");
    for (unsigned i = 0; i < BENCH_ERRORS; i++) {
        if (r->errors[i] == 0) continue;
        bench_write_count(word, (double)r->errors[i]);
        bench_page_add(p, "<tr><td>%s<td>%s<td class=\"long\">", bench_error_names[i], word);
        bench_page_text(p, slice_of_text(r->examples[i]));
        bench_page_add(p, "\n");
    }
    bench_page_add(p, "</table></div></section>\n");
}

bool bench_html_write(struct buf *to, const struct bench_options *o, const struct bench_result *r)
{
    struct bench_page page = {.to = to}, *p = &page;
    char date[DATE_LEN];
    date_format(date, r->started);
    bench_page_begin(p, slice_of_text(o->url));
    html_head(p, o, r);
    html_warning(p, r);
    html_tiles(p, r);
    html_plots(p, r);
    html_times(p, o, r);
    html_errors(p, r);
    html_amounts(p, o, r);
    bench_page_add(p,
                   "<footer>Measured by photon bench, which used %.0f %% of one processor, on "
                   "%.*s.</footer>\n",
                   100 * bench_per_second(r, r->cpu_seconds), DATE_LEN, date);
    bench_page_end(p);
    return !page.has_failed;
}

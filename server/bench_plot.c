#include "bench_plot.h"

#include <math.h>
#include <stdio.h>
#include "bench_words.h"

enum { PLOT_WIDE = 1000, PLOT_HIGH = 200, PLOT_BINS = 60, PLOT_TICKS = 5, PLOT_SPAN = 96 };

typedef void plot_word(char to[BENCH_WORD], double value);

static void plot_open(struct bench_page *p, const char *title, const char *note)
{
    bench_page_add(p,
                   "<figure><figcaption><b>%s</b><span>%s</span></figcaption>\n"
                   "<div class=\"plot\"><svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                   "role=\"img\" aria-label=\"%s\">\n",
                   title, note, PLOT_WIDE, PLOT_HIGH, title);
}

static void plot_line(struct bench_page *p, const char *kind, double x1, double y1, double x2,
                      double y2)
{
    bench_page_add(p, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", kind,
                   x1, y1, x2, y2);
}

// The smallest round step of which PLOT_TICKS reach `most`.
static double plot_step(double most)
{
    double wanted = most / PLOT_TICKS, power = pow(10, floor(log10(wanted)));
    if (wanted <= power) return power;
    if (wanted <= 2 * power) return 2 * power;
    return wanted <= 5 * power ? 5 * power : 10 * power;
}

// Where the plot ends at the top: a whole number of steps.
static double plot_top(double most)
{
    double step = plot_step(most > 0 ? most : 1);
    return ceil((most > 0 ? most : 1) / step) * step;
}

static void plot_y_grid(struct bench_page *p, double top)
{
    double step = plot_step(top);
    for (double y = step; y <= top * 1.001; y += step)
        plot_line(p, "grid", 0, PLOT_HIGH * (1 - y / top), PLOT_WIDE, PLOT_HIGH * (1 - y / top));
    plot_line(p, "axis", 0, PLOT_HIGH, PLOT_WIDE, PLOT_HIGH);
}

static void plot_y_labels(struct bench_page *p, double top, plot_word *write)
{
    char word[BENCH_WORD];
    double step = plot_step(top);
    for (double y = 0; y <= top * 1.001; y += step) {
        write(word, y);
        bench_page_add(p, "<span class=\"y\" style=\"bottom:%.2f%%\">%s</span>", 100 * y / top,
                       word);
    }
}

static void plot_label(struct bench_page *p, const char *kind, double share, const char *text)
{
    bench_page_add(p, "<span class=\"%s\" style=\"left:%.2f%%\">%s</span>", kind, 100 * share,
                   text);
}

static void plot_close(struct bench_page *p)
{
    bench_page_add(p, "</div></figure>\n");
}

// The logarithmic scale of a spread. Values below a microsecond came together and stand at its left
// end.
struct plot_scale {
    double low, high; // of log10
};

static struct plot_scale plot_scale(const struct histogram *h)
{
    double min = h->min < 1000 ? 1000 : (double)h->min;
    double max = h->max < 1000 ? 1000 : (double)h->max;
    struct plot_scale s = {floor(3 * log10(min)) / 3, ceil(3 * log10(max) + 0.01) / 3};
    if (s.high - s.low < 0.99) s.high = s.low + 1;
    return s;
}

static double plot_at(struct plot_scale s, double value)
{
    double share = (log10(value < 1000 ? 1000 : value) - s.low) / (s.high - s.low);
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static uint64_t plot_bins(const struct histogram *h, struct plot_scale s, uint64_t bins[PLOT_BINS])
{
    uint64_t below = 0, most = 0;
    for (unsigned i = 0; i < PLOT_BINS; i++) {
        double end = pow(10, s.low + (s.high - s.low) * (i + 1) / PLOT_BINS);
        uint64_t until = i + 1 == PLOT_BINS ? h->count : histogram_count_below(h, (uint64_t)end);
        bins[i] = until - below;
        below = until;
        if (bins[i] > most) most = bins[i];
    }
    return most;
}

static void plot_bars(struct bench_page *p, const struct histogram *h, struct plot_scale s,
                      const uint64_t bins[PLOT_BINS], double top)
{
    char low[BENCH_WORD], high[BENCH_WORD], count[BENCH_WORD];
    double wide = (double)PLOT_WIDE / PLOT_BINS;
    for (unsigned i = 0; i < PLOT_BINS; i++) {
        double share = (double)bins[i] / (double)h->count;
        double tall = PLOT_HIGH * share * 100 / top;
        if (bins[i] == 0) continue;
        if (tall < 1) tall = 1;
        bench_write_time(low, pow(10, s.low + (s.high - s.low) * i / PLOT_BINS));
        bench_write_time(high, pow(10, s.low + (s.high - s.low) * (i + 1) / PLOT_BINS));
        bench_write_count(count, (double)bins[i]);
        bench_page_add(p,
                       "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
                       "<title>%s%s to %s: %s (%.2f %%)</title></rect>\n",
                       wide * i + 1, PLOT_HIGH - tall, wide - 2, tall,
                       i == 0 && h->min < 1000 ? "0, and " : "", low, high, count, 100 * share);
    }
}

// Percentiles in the order of their weight; one that would stand on another is left out.
static void plot_marks(struct bench_page *p, const struct histogram *h, struct plot_scale s,
                       bool is_label)
{
    static const struct {
        double share;
        const char *name;
    } marks[] = {{0.5, "p50"}, {0.99, "p99"}, {0.9, "p90"}, {0.999, "p99.9"}};
    double taken[4] = {0};
    unsigned count = 0;
    for (unsigned i = 0; i < 4; i++) {
        double at = plot_at(s, (double)histogram_at(h, marks[i].share));
        bool is_free = true;
        for (unsigned j = 0; j < count; j++) is_free &= fabs(taken[j] - at) > 0.12;
        if (!is_free) continue;
        taken[count++] = at;
        if (is_label)
            plot_label(p, "m", fmax(at, 0.06), marks[i].name); // not on the axis' label
        else
            plot_line(p, "mark", PLOT_WIDE * at, 0, PLOT_WIDE * at, PLOT_HIGH);
    }
}

static void plot_percent(char to[BENCH_WORD], double value)
{
    snprintf(to, BENCH_WORD, "%g %%", value);
}

static void plot_decades(struct bench_page *p, struct plot_scale s)
{
    static const double digits[] = {1, 2, 5};
    bool is_narrow = s.high - s.low < 2; // few decades: 2 and 5 as well
    char word[BENCH_WORD];
    for (int power = 3; power < 13; power++) {
        for (unsigned i = 0; i < (is_narrow ? 3 : 1); i++) {
            double value = digits[i] * pow(10, power);
            double share = (log10(value) - s.low) / (s.high - s.low);
            if (share < -0.001 || share > 1.001) continue;
            bench_write_tick(word, value);
            plot_label(p, "x", share, word);
        }
    }
}

void bench_plot_spread(struct bench_page *p, const struct histogram *h, const char *title)
{
    uint64_t bins[PLOT_BINS];
    char note[PLOT_SPAN], word[BENCH_WORD];
    if (h->count == 0) return;
    struct plot_scale s = plot_scale(h);
    double top = plot_top(100 * (double)plot_bins(h, s, bins) / (double)h->count);
    bench_write_count(word, (double)h->count);
    snprintf(note, sizeof(note), "share of %s values%s", word,
             h->min < 1000 ? ", those below 1 µs at the left" : "");
    plot_open(p, title, note);
    plot_y_grid(p, top);
    plot_bars(p, h, s, bins, top);
    plot_marks(p, h, s, false);
    bench_page_add(p, "</svg>\n");
    plot_y_labels(p, top, plot_percent);
    plot_decades(p, s);
    plot_marks(p, h, s, true);
    plot_close(p);
}

// Percentiles are spread by how rare what lies above them is: 90, 99, 99.9 are as far apart as 1,
// 10, 100, which shows the tail.
static double plot_rarity(double share, double most)
{
    return log10(1 / (1 - share)) / most;
}

void bench_plot_percentiles(struct bench_page *p, const struct histogram *h, const char *title)
{
    static const double ticks[] = {0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999};
    static const char *const names[] = {"0", "50", "90", "99", "99.9", "99.99", "99.999"};
    double most = log10((double)h->count), top = plot_top((double)h->max);
    if (h->count < 2) return;
    if (most > 5) most = 5;
    plot_open(p, title, "at each percentile; the rare ones are drawn apart");
    plot_y_grid(p, top);
    for (unsigned i = 1; i < 7; i++) {
        double x = PLOT_WIDE * plot_rarity(ticks[i], most);
        if (x <= PLOT_WIDE * 1.001) plot_line(p, "grid", x, 0, x, PLOT_HIGH);
    }
    bench_page_add(p, "<path class=\"curve\" d=\"M");
    for (unsigned i = 0; i <= 200; i++) {
        double share = 1 - pow(10, -most * i / 200);
        uint64_t value = i == 200 ? h->max : histogram_at(h, share);
        bench_page_add(p, "%s%.1f %.1f", i ? "L" : "", PLOT_WIDE * i / 200.0,
                       PLOT_HIGH * (1 - (double)value / top));
    }
    bench_page_add(p, "\"/></svg>\n");
    plot_y_labels(p, top, bench_write_tick);
    for (unsigned i = 1; i < 7; i++) {
        double x = plot_rarity(ticks[i], most);
        if (x <= 1.001) plot_label(p, "x", x, names[i]);
    }
    plot_close(p);
}

// One value for each slot of a series.
typedef double plot_slot(const struct bench_slot *slot, double width);

static double plot_slot_units(const struct bench_slot *slot, double width)
{
    return (double)slot->units / width;
}

static double plot_slot_longest(const struct bench_slot *slot, double width)
{
    (void)width;
    return (double)slot->longest;
}

// The seconds that a slot covers; the last one is cut off by the end.
static double plot_slot_width(const struct bench_result *r, unsigned i)
{
    double width = (double)bench_series_width(&r->series) / 1e9, rest = r->seconds - i * width;
    return rest < width && rest > 0 ? rest : width;
}

static void plot_series_path(struct bench_page *p, const struct bench_result *r, unsigned count,
                             double top, plot_slot *value, const char *kind)
{
    double wide = (double)PLOT_WIDE / count;
    bool is_area = kind[0] == 'a';
    bench_page_add(p, "<path class=\"%s\" d=\"M", kind);
    if (is_area) bench_page_add(p, "0 %dL", PLOT_HIGH);
    for (unsigned i = 0; i < count; i++) {
        double y = PLOT_HIGH * (1 - value(&r->series.slots[i], plot_slot_width(r, i)) / top);
        bench_page_add(p, "%s%.1f %.1fL%.1f %.1f", i ? "L" : "", wide * i, y, wide * (i + 1), y);
    }
    if (is_area) bench_page_add(p, "L%d %dZ", PLOT_WIDE, PLOT_HIGH);
    bench_page_add(p, "\"/>\n");
}

static void plot_series_titles(struct bench_page *p, const struct bench_result *r, unsigned count,
                               plot_slot *value, plot_word *write)
{
    char word[BENCH_WORD];
    double wide = (double)PLOT_WIDE / count;
    double width = (double)bench_series_width(&r->series) / 1e9;
    for (unsigned i = 0; i < count; i++) {
        write(word, value(&r->series.slots[i], plot_slot_width(r, i)));
        bench_page_add(p,
                       "<rect class=\"hit\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\">"
                       "<title>%g s: %s</title></rect>",
                       wide * i, wide, PLOT_HIGH, i * width, word);
    }
}

static void plot_seconds(struct bench_page *p, double seconds)
{
    char word[BENCH_WORD];
    double step = plot_step(seconds);
    for (double x = 0; x <= seconds * 1.001; x += step) {
        bench_write_tick(word, x * 1e9);
        plot_label(p, "x", x / seconds, word);
    }
}

static void plot_series(struct bench_page *p, const struct bench_result *r, plot_slot *value,
                        plot_word *write, const char *title, const char *note)
{
    unsigned count = bench_series_shown(&r->series, (uint64_t)(r->seconds * 1e9));
    double most = 0, end = r->seconds;
    for (unsigned i = 0; i < count; i++)
        most = fmax(most, value(&r->series.slots[i], plot_slot_width(r, i)));
    double top = plot_top(most);
    plot_open(p, title, note);
    plot_y_grid(p, top);
    plot_series_path(p, r, count, top, value, "area");
    plot_series_path(p, r, count, top, value, "curve");
    plot_series_titles(p, r, count, value, write);
    bench_page_add(p, "</svg>\n");
    plot_y_labels(p, top, write);
    double shown = count * (double)bench_series_width(&r->series) / 1e9;
    plot_seconds(p, shown < end ? shown : end);
    plot_close(p);
}

void bench_plot_rate(struct bench_page *p, const struct bench_result *r)
{
    bool is_sse = r->mode == BENCH_SSE;
    plot_series(p, r, plot_slot_units, bench_write_count,
                is_sse ? "Events a second" : "Requests a second", "over the time of the run");
}

void bench_plot_longest(struct bench_page *p, const struct bench_result *r)
{
    bool is_sse = r->mode == BENCH_SSE;
    plot_series(p, r, plot_slot_longest, bench_write_tick,
                is_sse ? "Longest gap" : "Longest latency",
                is_sse ? "between two events of a stream, over the time of the run"
                       : "over the time of the run");
}

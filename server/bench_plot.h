// bench_plot: plots as SVG within HTML. The shapes stretch with the page, the labels are HTML and
// do not, so that a plot is readable at any width.
#ifndef PHOTON_BENCH_PLOT_H
#define PHOTON_BENCH_PLOT_H

#include "bench.h"
#include "bench_page.h"

// How the values are spread, over a logarithmic scale, with its percentiles marked.
void bench_plot_spread(struct bench_page *page, const struct histogram *h, const char *title);

// The value of every percentile.
void bench_plot_percentiles(struct bench_page *page, const struct histogram *h, const char *title);

// Units a second, and the longest gap or latency, over the time of the run.
void bench_plot_rate(struct bench_page *page, const struct bench_result *r);
void bench_plot_longest(struct bench_page *page, const struct bench_result *r);

#endif

// bench_report: what a run has found, for people (report), for programs (json), for a browser
// (html).
#ifndef PHOTON_BENCH_REPORT_H
#define PHOTON_BENCH_REPORT_H

#include "bench.h"

// Each appends to `to`; false when there is no memory.
bool bench_report_write(struct buf *to, const struct bench_options *o,
                        const struct bench_result *r);
bool bench_json_write(struct buf *to, const struct bench_options *o, const struct bench_result *r);
bool bench_html_write(struct buf *to, const struct bench_options *o, const struct bench_result *r);

// One row of the distribution that is shown: values from `low` to below `high`.
struct bench_row {
    uint64_t low, high, count;
};

enum { BENCH_ROWS = 48 };

// Rows of a 1-2-5 scale that hold all values; the count of rows.
unsigned bench_rows(const struct histogram *h, struct bench_row rows[BENCH_ROWS]);

// The histograms of a run that have values, in the order in which they are shown.
struct bench_times {
    const char *name; // in JSON, with _ms
    const char *words;
    const struct histogram *h;
};

enum { BENCH_TIMES = 6 };

unsigned bench_times(const struct bench_options *o, const struct bench_result *r,
                     struct bench_times times[BENCH_TIMES]);

#endif

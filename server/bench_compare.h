// bench_compare: what differs between two runs, out of what bench_json has written.
#ifndef PHOTON_BENCH_COMPARE_H
#define PHOTON_BENCH_COMPARE_H

#include "base/buf.h"

// Appends a table of both files' numbers and the change from `a` to `b`. False with one line in
// `error`.
bool bench_compare_write(struct buf *to, const char *a, const char *b, char *error, size_t size);

#endif

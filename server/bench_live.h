// bench_live: the line that shows a running measurement on a terminal (standard error).
#ifndef PHOTON_BENCH_LIVE_H
#define PHOTON_BENCH_LIVE_H

#include "bench.h"

enum { BENCH_LIVE_MS = 200 };

// False when standard error is no terminal: then there is no line.
bool bench_live_is_wanted(void);

// Draws the line anew. `seconds` since the start, `bytes` received so far.
void bench_live_draw(const struct bench_options *o, const struct bench_result *r, double seconds,
                     uint64_t bytes);

void bench_live_erase(void);

#endif

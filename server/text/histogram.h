// histogram: how often each size of value came, in fixed memory. Log-linear: small values are
// exact, larger ones keep 128 steps an octave, so nothing is off by more than 0.8 %. Zero is the
// empty histogram. Pure.
#ifndef PHOTON_TEXT_HISTOGRAM_H
#define PHOTON_TEXT_HISTOGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HISTOGRAM_BITS = 7,
    HISTOGRAM_STEPS = 1 << HISTOGRAM_BITS,
    HISTOGRAM_TOP = 42, // values from 2^42 on (73 minutes in nanoseconds) share the last cell
    HISTOGRAM_CELLS = (HISTOGRAM_TOP - HISTOGRAM_BITS + 1) * HISTOGRAM_STEPS,
};

struct histogram {
    uint64_t count, sum, min, max; // min, max and sum are exact
    uint64_t cells[HISTOGRAM_CELLS];
};

void histogram_add(struct histogram *h, uint64_t value, uint64_t times);

// All of `from` besides what `h` has.
void histogram_merge(struct histogram *h, const struct histogram *from);

// The smallest value that is not exceeded by a `share` (0 to 1) of all values: 0.5 is the median.
// To the precision of a cell, never beyond min and max; 0 when there are no values.
uint64_t histogram_at(const struct histogram *h, double share);

// How many values are less than `value`, to the precision of a cell.
uint64_t histogram_count_below(const struct histogram *h, uint64_t value);

double histogram_mean(const struct histogram *h);

// The cell of a value, and the smallest value of a cell.
unsigned histogram_cell(uint64_t value);
uint64_t histogram_cell_low(unsigned cell);

#endif

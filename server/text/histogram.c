#include "text/histogram.h"

#include <assert.h>

unsigned histogram_cell(uint64_t value)
{
    if (value < HISTOGRAM_STEPS) return (unsigned)value;
    unsigned octave = 63 - (unsigned)__builtin_clzll(value) - HISTOGRAM_BITS;
    unsigned cell = octave * HISTOGRAM_STEPS + (unsigned)(value >> octave);
    return value >> HISTOGRAM_TOP ? HISTOGRAM_CELLS - 1 : cell;
}

uint64_t histogram_cell_low(unsigned cell)
{
    assert(cell <= HISTOGRAM_CELLS);
    if (cell < HISTOGRAM_STEPS) return cell;
    unsigned octave = cell / HISTOGRAM_STEPS - 1;
    return (uint64_t)(cell - octave * HISTOGRAM_STEPS) << octave;
}

void histogram_add(struct histogram *h, uint64_t value, uint64_t times)
{
    if (times == 0) return;
    if (h->count == 0 || value < h->min) h->min = value;
    if (value > h->max) h->max = value;
    h->count += times;
    h->sum += value * times;
    h->cells[histogram_cell(value)] += times;
}

void histogram_merge(struct histogram *h, const struct histogram *from)
{
    if (from->count == 0) return;
    if (h->count == 0 || from->min < h->min) h->min = from->min;
    if (from->max > h->max) h->max = from->max;
    h->count += from->count;
    h->sum += from->sum;
    for (unsigned i = 0; i < HISTOGRAM_CELLS; i++) h->cells[i] += from->cells[i];
}

static uint64_t histogram_rank(const struct histogram *h, double share)
{
    double exact = share * (double)h->count * (1 - 1e-12); // 0.07 of 100 is to be the seventh
    uint64_t rank = exact > 0 ? (uint64_t)exact : 0;
    if ((double)rank < exact) rank++;
    if (rank == 0) rank = 1;
    return rank < h->count ? rank : h->count;
}

uint64_t histogram_at(const struct histogram *h, double share)
{
    if (h->count == 0) return 0;
    uint64_t rank = histogram_rank(h, share), seen = 0;
    unsigned cell = 0;
    if (rank == h->count) return h->max;
    while ((seen += h->cells[cell]) < rank) cell++;
    uint64_t value = histogram_cell_low(cell + 1) - 1; // the largest that it may stand for
    if (cell == HISTOGRAM_CELLS - 1 || value > h->max) value = h->max;
    return value < h->min ? h->min : value;
}

uint64_t histogram_count_below(const struct histogram *h, uint64_t value)
{
    uint64_t seen = 0;
    if (value > h->max) return h->count;
    for (unsigned i = 0; i < HISTOGRAM_CELLS && histogram_cell_low(i) < value; i++)
        seen += h->cells[i];
    return seen;
}

double histogram_mean(const struct histogram *h)
{
    return h->count ? (double)h->sum / (double)h->count : 0;
}

#include "base/counters.h"

void counters_sum(struct counters *sum, const struct counters *one)
{
#define COUNTERS_SUM(name, kind, help)                                                             \
    counters_add(&sum->name, (int64_t)atomic_load_explicit(&one->name, memory_order_relaxed));
    COUNTERS_EACH(COUNTERS_SUM)
#undef COUNTERS_SUM
}

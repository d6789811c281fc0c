#include "bench_live.h"

#include <stdio.h>
#include <unistd.h>
#include "bench_words.h"

bool bench_live_is_wanted(void)
{
    return isatty(STDERR_FILENO);
}

void bench_live_draw(const struct bench_options *o, const struct bench_result *r, double seconds,
                     uint64_t bytes)
{
    char units[BENCH_WORD], rate[BENCH_WORD], size[BENCH_WORD], errors[BENCH_WORD], end[32] = "";
    double per = seconds > 0 ? 1 / seconds : 0;
    bench_write_count(units, (double)bench_units(r));
    bench_write_count(rate, (double)bench_units(r) * per);
    bench_write_bytes(size, (double)bytes * per);
    bench_write_count(errors, (double)bench_errors(r));
    if (o->seconds > 0) snprintf(end, sizeof(end), " of %g", o->seconds);
    fprintf(stderr, "\r\033[K%.1f%s s   %s %s   %s/s   %s/s   %s error%s", seconds, end, units,
            bench_unit(r), rate, size, errors, bench_errors(r) == 1 ? "" : "s");
    fflush(stderr);
}

void bench_live_erase(void)
{
    fputs("\r\033[K", stderr);
}

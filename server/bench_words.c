#include "bench_words.h"

#include <stdio.h>
#include <string.h>

// Three significant digits.
static int bench_decimals(double value)
{
    return value >= 100 ? 0 : value >= 10 ? 1 : 2;
}

static void bench_write_scaled(char to[BENCH_WORD], double value, double step,
                               const char *const *units, unsigned count)
{
    unsigned i = 0;
    while (i + 1 < count && value >= step * 0.9995) {
        value /= step;
        i++;
    }
    snprintf(to, BENCH_WORD, "%.*f %s", bench_decimals(value), value, units[i]);
}

void bench_write_count(char to[BENCH_WORD], double value)
{
    char digits[BENCH_WORD];
    bool is_whole = value >= 100 || value == (double)(long)value;
    int len = snprintf(digits, sizeof(digits), "%.*f", is_whole ? 0 : bench_decimals(value), value);
    const char *dot = strchr(digits, '.');
    int whole = dot ? (int)(dot - digits) : len, at = 0;
    if (value > 1e15) { // no room for commas
        snprintf(to, BENCH_WORD, "%.3g", value);
        return;
    }
    for (int i = 0; i < len; i++) {
        if (i && i < whole && (whole - i) % 3 == 0) to[at++] = ',';
        to[at++] = digits[i];
    }
    to[at] = 0;
}

void bench_write_bytes(char to[BENCH_WORD], double value)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB"};
    if (value < 1000)
        snprintf(to, BENCH_WORD, "%.0f B", value);
    else
        bench_write_scaled(to, value, 1000, units, 5);
}

static const char *const time_units[] = {"ns", "µs", "ms", "s"};

void bench_write_time(char to[BENCH_WORD], double nanoseconds)
{
    if (nanoseconds <= 0)
        snprintf(to, BENCH_WORD, "0");
    else
        bench_write_scaled(to, nanoseconds, 1000, time_units, 4);
}

void bench_write_tick(char to[BENCH_WORD], double nanoseconds)
{
    unsigned i = 0;
    while (i < 3 && nanoseconds >= 999.5) {
        nanoseconds /= 1000;
        i++;
    }
    if (nanoseconds <= 0)
        snprintf(to, BENCH_WORD, "0");
    else
        snprintf(to, BENCH_WORD, "%g %s", nanoseconds, time_units[i]);
}

bool bench_write_cell(struct buf *to, const char *text, int width)
{
    int shown = 0;
    for (const char *at = text; *at; at++) shown += (*at & 0xC0) != 0x80;
    return buf_append_format(to, "%*s%s", shown < width ? width - shown : 0, "", text);
}

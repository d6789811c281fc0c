// bench_words: numbers as people read them.
#ifndef PHOTON_BENCH_WORDS_H
#define PHOTON_BENCH_WORDS_H

#include "base/buf.h"

enum { BENCH_WORD = 40 };

// "1,234,567"; with up to two decimals below 100.
void bench_write_count(char to[BENCH_WORD], double value);

// "1.23 MB" (powers of 1000).
void bench_write_bytes(char to[BENCH_WORD], double value);

// Nanoseconds: "0", "12.3 µs", "4.56 ms", "7.89 s".
void bench_write_time(char to[BENCH_WORD], double nanoseconds);

// Nanoseconds of an axis, without needless decimals: "10 µs", "500 ms".
void bench_write_tick(char to[BENCH_WORD], double nanoseconds);

// Appends text at the right of a column of `width` letters, which may have more bytes. False when
// there is no memory.
bool bench_write_cell(struct buf *to, const char *text, int width);

#endif

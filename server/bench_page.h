// bench_page: writes HTML. Once there is no memory, nothing more is written.
#ifndef PHOTON_BENCH_PAGE_H
#define PHOTON_BENCH_PAGE_H

#include "base/buf.h"

struct bench_page {
    struct buf *to;
    bool has_failed;
};

// As printf; what it writes is HTML.
void bench_page_add(struct bench_page *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Text, escaped.
void bench_page_text(struct bench_page *p, struct slice text);

// Everything up to the page's content, and what follows it.
void bench_page_begin(struct bench_page *p, struct slice title);
void bench_page_end(struct bench_page *p);

#endif

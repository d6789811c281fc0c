// bench_request: from the words of the command line to what is sent, and where.
#ifndef PHOTON_BENCH_REQUEST_H
#define PHOTON_BENCH_REQUEST_H

#include "bench.h"

enum { BENCH_MAX_HEADERS = 64 };

struct bench_request {
    const char *method;                     // NULL: GET, or POST when there is a body
    const char *headers[BENCH_MAX_HEADERS]; // as given, "name: value"
    unsigned header_count;
    const char *body; // as given, "@file" or text; NULL: none
};

// Fills options->target, method and request from options->url and mode. False with one line in
// `error`.
bool bench_request_make(struct bench_options *options, const struct bench_request *request,
                        char *error, size_t size);

#endif

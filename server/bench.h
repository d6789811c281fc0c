// bench: what `photon bench` is asked and what it finds: the data that its rooms share.
// bench_request makes the options' request, bench_run (with one bench_client a connection)
// measures, bench_report, bench_json and bench_html tell, bench_compare compares what bench_json
// has written.
#ifndef PHOTON_BENCH_H
#define PHOTON_BENCH_H

#include "base/buf.h"
#include "bench_series.h"
#include "text/histogram.h"
#include "wire/connector.h"

enum bench_mode { BENCH_AUTO, BENCH_SSE, BENCH_HTTP };

// The kinds of errors. One failed request or stream is one error.
enum bench_error {
    BENCH_CONNECT,   // no connection
    BENCH_STATUS,    // http: 400 and above; sse: anything but 200
    BENCH_TYPE,      // not an event stream, where streams were measured before
    BENCH_RESET,     // the connection was reset
    BENCH_TRUNCATED, // the connection ended before the response did, or within an event
    BENCH_TIMEOUT,   // no response within the time limit
    BENCH_FRAMING,   // what came is not HTTP/1.1, or an event is larger than 1 MiB
    BENCH_ERRORS,
};

enum { BENCH_MAX_STATUS = 600, BENCH_EXAMPLE = 96 };

struct bench_options {
    const char *url;
    const char *html; // where the report goes; NULL: nowhere
    struct connector_target target;
    struct buf request; // what each connection sends
    struct slice method;
    unsigned connections;
    uint64_t count; // requests or streams; 0: no limit
    double seconds; // 0: no limit
    double rate;    // requests or streams a second; 0: as fast as possible
    double stall, timeout;
    enum bench_mode mode;
    bool json;
};

// Times are nanoseconds.
struct bench_result {
    enum bench_mode mode; // never BENCH_AUTO in the end
    int64_t started;      // seconds since 1970
    double seconds, cpu_seconds;
    uint64_t bytes;     // received, heads and framing included
    uint64_t responses; // complete ones; in sse mode streams that ended well
    uint64_t streams, streams_open;
    uint64_t events, comments, stalls;
    uint64_t unfinished, oldest; // requests that had no answer at the end, and for how long
    uint64_t errors[BENCH_ERRORS];
    uint64_t statuses[BENCH_MAX_STATUS];
    char examples[BENCH_ERRORS][BENCH_EXAMPLE]; // the first error of each kind
    struct histogram connect, first_byte, first_event, gap;
    struct histogram latency; // of responses, from when they were due
    struct histogram service; // the same from when they were sent; differs with a rate only
    struct bench_series series;
};

extern const char *const bench_error_names[BENCH_ERRORS];

uint64_t bench_errors(const struct bench_result *r); // all kinds together

// What a run counts and how it spreads: events and the gaps between them, or responses and their
// latency.
uint64_t bench_units(const struct bench_result *r);
const char *bench_unit(const struct bench_result *r); // "events" or "requests"
const struct histogram *bench_spread(const struct bench_result *r);
const char *bench_spread_name(const struct bench_result *r);

// Appends a whole file. False at an error, which errno tells.
bool bench_file_read(struct buf *to, const char *path);

static inline double bench_per_second(const struct bench_result *r, double amount)
{
    return r->seconds > 0 ? amount / r->seconds : 0;
}

// The client keeps one processor (nearly) busy, so that it may be what was measured.
static inline bool bench_is_limit(const struct bench_result *r)
{
    return r->seconds > 0 && r->cpu_seconds / r->seconds > 0.9;
}

#endif

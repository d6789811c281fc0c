// bench_client: one connection of a run: connects, sends, reads the response or stream, notes what
// it sees, and begins anew.
#ifndef PHOTON_BENCH_CLIENT_H
#define PHOTON_BENCH_CLIENT_H

#include "bench_run.h"
#include "text/http1_read_response.h"
#include "text/sse_read.h"

enum { BENCH_MAX_EVENT = 1 << 20, BENCH_MAX_FIELDS = 64 };

enum bench_client_state {
    CLIENT_PARKED,
    CLIENT_QUEUED,     // in run->queue
    CLIENT_CONNECTING, // `connector` is at work
    CLIENT_READY,      // connected, in run->ready
    CLIENT_WAITING,    // a request is under way
    CLIENT_RESTING,    // after a failure
};

struct bench_client {
    struct list node; // in run->queue or run->ready
    struct bench_run *run;
    struct connector *connector;
    struct conn *conn;
    struct timer timer; // the time limit of a response, or the rest
    struct http1_response_reader reader;
    struct sse_reader sse;
    uint64_t due, sent;              // of the request; due <= sent
    uint64_t connect_begun;          //
    uint64_t last_bytes, last_event; // of a stream; last_event 0: none yet
    uint16_t status, rest_ms;
    uint8_t state; // enum bench_client_state
    bool has_ticket, has_first_byte;
    bool is_stream; // the response is an event stream that is measured as one
};

void bench_client_init(struct bench_client *c, struct bench_run *run);

// Begins whatever comes next; each client's first call comes from the run.
void bench_client_go_on(struct bench_client *c);

void bench_client_connect(struct bench_client *c);
void bench_client_send(struct bench_client *c, uint64_t due);

// The run is over: notes what is unfinished and closes.
void bench_client_stop(struct bench_client *c, uint64_t now);

#endif

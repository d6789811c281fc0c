// bench_run: one measurement, from its start to its end, on a loop of its own. It hands its clients
// (one for each connection) what they are to do: tickets where the number of requests is limited,
// turns to connect, and times where there is a rate.
#ifndef PHOTON_BENCH_RUN_H
#define PHOTON_BENCH_RUN_H

#include "bench.h"
#include "bench_pace.h"

struct bench_client;

struct bench_run {
    const struct bench_options *options;
    struct bench_result *result;
    struct loop loop;
    struct counters counters;
    struct bench_pace pace;
    struct bench_client *clients;
    struct list queue;         // clients that wait for their turn to connect
    struct list ready;         // connected ones that wait until a request is due
    uint64_t begun;            // of uv_hrtime, as all times
    uint64_t left;             // tickets
    uint64_t bytes_told;       // bytes that stand in the series already
    unsigned connecting, busy; // clients
    struct timer end, live;
    uv_signal_t interrupt, terminate;
    bool is_over;
};

// Measures. False with one line in `error` when it cannot begin; a server that cannot be reached is
// a result.
bool bench_run(const struct bench_options *options, struct bench_result *result, char *error,
               size_t size);

// For bench_client alone ----------------------------------------------------------------------

// Leave for one more request. False when there is to be none.
bool bench_run_take_ticket(struct bench_run *run);

// The client has nothing more to do.
void bench_run_park(struct bench_run *run);

// Calls bench_client_connect, now or when fewer clients are connecting; which end by
// bench_run_connected, whatever came of it.
void bench_run_connect(struct bench_run *run, struct bench_client *c);
void bench_run_connected(struct bench_run *run);

// Calls bench_client_send, now or when a request is due.
void bench_run_pace(struct bench_run *run, struct bench_client *c);

// The slot of the series for `now`, brought up to date with the bytes received.
struct bench_slot *bench_run_slot(struct bench_run *run, uint64_t now);

#endif

// acceptor: takes connections from the listening sockets and gives each to the worker that has the
// fewest. A thread of its own where there are several workers; a single worker's loop does it in
// passing. Owns the listeners from acceptor_start on.
//
// Over max_connections a client gets a 503 with retry-after. Without descriptors, connections are
// taken and closed, or left to wait for a moment; it never spins.
#ifndef PHOTON_ACCEPTOR_H
#define PHOTON_ACCEPTOR_H

#include "acceptor_refusal.h"
#include "wire/listener.h"
#include "worker.h"

struct acceptor {
    struct server *server;
    struct worker *workers;
    unsigned worker_count;
    struct listener *listeners;
    unsigned listener_count;
    _Atomic uint32_t max_connections; // may be changed at any time

    struct loop *loop; // its own, or the only worker's
    struct loop own;
    struct counters idle_counters; // of `own`, which has no conns
    pthread_t thread;
    bool has_thread, is_watching;
    _Atomic bool is_stopping;
    struct refusals refusals;
    struct timer retry;                // accepts again after an error that shedding did not relieve
    uint64_t warned;                   // loop->now of the last warning
    int spare;                         // descriptor kept for shedding
    bool is_burst[SERVER_MAX_WORKERS]; // which workers got something in this burst
};

// Begins to accept. False when there is no thread or memory for it.
bool acceptor_start(struct acceptor *a);

// Takes what waits already, then closes the listeners. A thread has ended when this returns; a
// single worker does it before the orders that it is given later. Harmless when it has not started.
void acceptor_stop(struct acceptor *a);

// What max_connections can be at most: descriptors that may be opened, less those that are needed
// otherwise. Raises the soft limit to the hard one.
uint32_t acceptor_limit_connections(uint32_t max_connections, unsigned workers);

#endif

// worker: a thread with an event loop, its connections, and its share of the app. Others speak to
// it through an inbox only: connected descriptors, and orders (functions to be run on its thread).
// What others may read is atomic.
#ifndef PHOTON_WORKER_H
#define PHOTON_WORKER_H

#include <pthread.h>
#include "http/http1.h"
#include "script/app.h"
#include "script/guard.h"
#include "serve/channel_worker.h"

enum { WORKER_ORDERS = 16 };

enum worker_start {
    WORKER_STARTING, // on_start of its first part has not ended
    WORKER_STARTED,
    WORKER_FAILED, // worker->error says why
};

struct worker;

struct worker_order {
    void (*run)(struct worker *w, void *data);
    void *data;
};

struct worker_arrival {
    struct peer peer;
    int fd;
};

struct worker {
    struct loop loop;
    struct counters counters;
    struct http1_host http;
    struct channel_worker channels;
    struct app_host app;
    struct guard guard;
    struct server *server;
    struct loop *boss; // is woken when something changes that it may want to know
    pthread_t thread;
    unsigned index;
    bool is_open, has_thread;

    pthread_mutex_t lock; // of the inbox
    struct worker_order orders[WORKER_ORDERS];
    unsigned order_count;
    struct worker_arrival *arrivals;
    size_t arrival_count, arrival_cap;

    _Atomic uint32_t arriving;  // descriptors in the inbox
    _Atomic unsigned installed; // number of the generation that serves
    _Atomic int start;          // enum worker_start
    _Atomic bool is_over;       // nothing runs any more, the thread ends
    char error[APP_ERROR];

    struct worker_arrival *taken; // its own side of the double buffer
    size_t taken_cap;
    struct loop_turn turn;
    struct timer check;
    uint64_t done_at; // loop.now from which clients that do not close are not waited for
    unsigned turns_left;
    bool is_draining, is_retired, is_aborted;
};

// Opens loop and inbox; no thread yet. False when there is no memory or no descriptor.
bool worker_open(struct worker *w, struct server *server, unsigned index, struct loop *boss);

// Starts the thread. False when there is none to be had.
bool worker_start(struct worker *w);

// Waits for the end of the thread, if there is one.
void worker_join(struct worker *w);

// Frees everything; no thread runs any more. Harmless on a worker that was never opened.
void worker_close(struct worker *w);

// Has `run` called on the worker's thread, in the order of the calls. Any thread.
void worker_order(struct worker *w, void (*run)(struct worker *w, void *data), void *data);

// Hands over a connected descriptor; the caller wakes the worker (worker_wake) once for many. False
// when there is no memory: the descriptor is still the caller's. Any thread.
bool worker_give(struct worker *w, int fd, const struct peer *peer);
void worker_wake(struct worker *w);

// Serves a connected descriptor at once. Only on the worker's thread.
void worker_take(struct worker *w, int fd, const struct peer *peer);

// Connections that it has and that are on the way to it.
static inline uint64_t worker_load(const struct worker *w)
{
    return atomic_load_explicit(&w->counters.connections, memory_order_relaxed) +
           atomic_load_explicit(&w->arriving, memory_order_relaxed);
}

// Orders, to be given by worker_order.
void worker_install(struct worker *w, void *part); // struct app_part: it serves from now on
void worker_serve(struct worker *w, void *unused); // the app has started well: clients come now
void worker_drain(struct worker *w, void *unused); // finishes what runs, then ends
void worker_abort(struct worker *w, void *unused); // breaks off what still runs, then ends

#endif

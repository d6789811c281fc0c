// service: a running server, from the first load of its app to the end of its last thread. The main
// thread is its boss: it has a loop of its own for signals, reloads, the control socket and the
// watch, and serves no client.
#ifndef PHOTON_SERVICE_H
#define PHOTON_SERVICE_H

#include "acceptor.h"
#include "control.h"
#include "reload.h"
#include "sockets.h"
#include "watch.h"
#include "worker.h"

enum { SERVICE_SIGNALS = 3, SERVICE_ERROR = APP_ERROR + 512 };

enum service_phase {
    SERVICE_STARTING, // the workers run on_start
    SERVICE_SERVING,
    SERVICE_DRAINING,
    SERVICE_ABORTING,
};

struct service {
    struct config *config;
    struct server server;
    struct counters idle_counters; // of the boss's loop, which serves nobody
    struct loop loop;
    struct worker *workers;
    unsigned worker_count;
    struct sockets sockets;
    struct acceptor acceptor;
    struct reload reload;
    struct control control;
    struct watch watch;
    uv_signal_t signals[SERVICE_SIGNALS];
    enum service_phase phase;
    struct timer deadline;
    uint32_t drain; // milliseconds
    bool has_loop, has_signals, has_failed;
    char error[SERVICE_ERROR];
};

// Serves until a signal ends it. Returns the exit code: 0 after a stop that was asked for, 1 when
// it could not start; the error has then been written to standard error.
int service_run(struct config *config);

#endif

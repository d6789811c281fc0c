// app: a generation, that is what one load of an app yields: per worker a VM, and one immutable
// route table for all. Loaded off the serving loops, then swapped in by each worker between two
// requests.
#ifndef PHOTON_SCRIPT_APP_H
#define PHOTON_SCRIPT_APP_H

#include "http/exchange.h"
#include "script/vm.h"
#include "serve/router.h"
#include "serve/server.h"
#include "serve/stream.h"

enum { APP_ERROR = 4096 }; // room for a load error: file, line, message, maybe several lines

struct generation;

// One worker's share of a generation.
struct app_part {
    struct list node; // app_host->parts
    struct generation *generation;
    struct app_host *host;
    struct vm *vm;    // NULL when it was lost and could not be replaced
    unsigned index;   // of the worker
    uint32_t base;    // where its handlers begin in the VM's table: its fallback, then routes
    uint32_t busy;    // exchanges in progress
    bool has_started; // app:on_start has run, well or not
    bool has_failed;  // not well
    bool has_fallback, is_retired, is_closing, owns_vm;
    bool is_ending;    // luv's handles do not keep it alive any more
    uint64_t ended_at; // ms: when it was made to end, over max_generations
    bool ends_streams; // those that end at a reload have not all ended yet
};

struct channel_worker;
struct http1_host;

// What a worker keeps of the app: the current part, and older ones that still run something. Its
// handler is what protocols serve.
struct app_host {
    struct handler handler; // first
    struct server *server;
    struct loop *loop;
    struct counters *counters;
    struct guard *guard; // of the worker's thread
    unsigned worker;
    struct app_part *current;
    struct list parts;    // all alive, oldest first; `current` last
    struct limits limits; // in force: the current generation's
    struct timer check;   // looks which retired parts can be closed
    struct stream_host streams;
    struct channel_worker *channels; // the worker's; set by the owner
    struct http1_host *http1;        // learns new limits at a swap; may be NULL (tests)
    // on_start of the current part has ended: well (error is NULL) or not. May be NULL.
    void (*on_started)(struct app_host *host, const char *error);
};

void app_host_init(struct app_host *host, struct server *server, unsigned worker, struct loop *loop,
                   struct counters *counters);

// How an app is loaded. `path` as given to `photon serve`.
struct app_load {
    struct server *server;
    const char *path;
    struct loop *loops[SERVER_MAX_WORKERS]; // of each part's worker; NULL for checks
    struct counters *counters[SERVER_MAX_WORKERS];
    unsigned count;  // how many parts (VMs)
    unsigned number; // of the generation
    bool is_watching;
};

// Runs the app's files in `count` fresh VMs, compiles the routes, compares. NULL when anything
// fails: `error` then says file, line and message. Any thread; guarded, so that a loop that never
// ends at load is stopped.
struct generation *app_load(const struct app_load *load, char error[APP_ERROR]);

// The same for tests, in the VM that runs them: the app object is at the top of L's stack and stays
// there. NULL with `error`.
struct generation *app_load_here(lua_State *L, struct vm *vm, struct server *server,
                                 char error[APP_ERROR]);

const struct router *app_routes(const struct generation *g);
const struct limits *app_limits(const struct generation *g);
struct app_part *app_part(struct generation *g, unsigned index);
unsigned app_number(const struct generation *g);

// The files that the app has loaded (for --watch): calls `each` for every path.
void app_each_file(const struct generation *g, void (*each)(const char *path, void *data),
                   void *data);

// On the worker's thread: begins to serve with the part; what was current is retired: its unscoped
// tasks and timers stop, its running requests and streams go on. Runs on_start and starts
// app:every.
void app_install(struct app_host *host, struct app_part *part);

// On the worker's thread, at shutdown: retires the current part, too. Streams are ended by the
// caller (stream_host_end_all).
void app_retire_all(struct app_host *host);

// Ends everything that still runs in any part: after the drain time.
void app_abort_all(struct app_host *host);

// True when no part is alive any more.
bool app_is_empty(const struct app_host *host);

// Loads a fresh VM for a part whose VM was given up, on the calling thread.
struct app_part *app_reload_part(struct app_part *lost, char error[APP_ERROR]);

// Drops a generation that was never installed (a failed load of another part, `photon check`).
void app_discard(struct generation *g);

// Gives up the loader's hold on a generation that has been installed. Its parts hold it, too.
void app_release(struct generation *g);

// The thread that closes retired VMs; started once, stopped after all workers have ended. False
// when a finalizer of an app does not end: the thread runs on, and what it may use must stay.
bool app_reaper_start(void);
bool app_reaper_stop(void);

#endif

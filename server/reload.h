// reload: loads a new generation of the app on a thread of its own, then has every worker swap it
// in. One at a time: who asks while a load runs is answered by the next one, for that sees all
// changes. Belongs to the boss's thread.
#ifndef PHOTON_RELOAD_H
#define PHOTON_RELOAD_H

#include "worker.h"

// Somebody who wants to know how a reload went. Embedded in whoever asks.
struct reload_ask {
    struct list node;
    // The last word. On success `message` is "reloaded generation 7 in 12 ms (34 routes)".
    void (*on_done)(struct reload_ask *ask, bool is_done, const char *message);
};

enum reload_state { RELOAD_IDLE, RELOAD_LOADING, RELOAD_INSTALLING };

struct reload {
    struct server *server;
    struct loop *boss;
    struct worker *workers;
    unsigned worker_count;
    // A generation is loaded and about to be installed (also the first). May be NULL.
    void (*on_loaded)(struct reload *r, const struct generation *g);
    void *owner;

    enum reload_state state;
    struct app_load load;
    struct list asking, next; // of the present reload, of the one after it
    bool is_again;
    bool is_ending; // nothing is begun or installed any more
    pthread_t thread;
    _Atomic bool is_loaded; // the thread is done: `made`, or `error`
    struct generation *made;
    char error[APP_ERROR];
    uint64_t began; // uv_hrtime
    unsigned routes;
};

void reload_init(struct reload *r, struct server *server, struct loop *boss, struct worker *workers,
                 unsigned worker_count);

// The first load, on the calling thread; gives it to the workers. False with `r->error`.
bool reload_first(struct reload *r);

// Begins a reload, or joins in the next one. `ask` may be NULL.
void reload_begin(struct reload *r, struct reload_ask *ask);

// Looks whether the loader or the workers have got on; whenever the boss's loop is woken.
void reload_look(struct reload *r);

// No more reloads: whoever asks or waits is told that the server stops. A load that runs is still
// waited for: reload_is_idle tells when it has ended.
void reload_end(struct reload *r);
bool reload_is_idle(const struct reload *r);

#endif

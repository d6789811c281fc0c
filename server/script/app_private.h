// app_private: what the files of the app room share; for them alone.
#ifndef PHOTON_SCRIPT_APP_PRIVATE_H
#define PHOTON_SCRIPT_APP_PRIVATE_H

#include "script/app.h"

struct generation {
    atomic_uint refs; // one for each living part, one for whoever holds it
    struct server *server;
    struct router *router;
    uint32_t *numbers; // of each route in the metrics
    struct limits limits;
    char *path, *file, *dir;
    char **files;
    unsigned file_count;
    unsigned number, count;
    bool is_watching;
    struct app_part *parts[SERVER_MAX_WORKERS];
};

// A part with a fresh VM that has run the app's files; the first one makes the route table. NULL
// with `error`.
struct app_part *app_load_part(struct generation *g, unsigned index, struct loop *loop,
                               struct counters *counters, char error[APP_ERROR]);

// A copy of the text with its NUL; NULL when there is no memory.
char *app_copy(const char *text, size_t len);

// The rooms' functions and the app's own, for vm_new.
void app_open_functions(lua_State *L, struct vm *vm);

// Runs the app's files in the part's VM and takes what they compiled to. False when something
// failed; *is_lost when the VM must not be touched any more.
bool app_run_files(struct app_part *part, bool *is_lost, char error[APP_ERROR]);

// Frees the part, its VM (when it owns it), and its share of the generation. Any thread.
void app_part_free(struct app_part *part);

// Hands a part that runs nothing any more to the reaper, which frees it.
void app_reap(struct app_part *part);

// Publishes the heaps of the worker's living VMs, for metrics.
void app_note_memory(struct app_host *host);

// The handler's function: routes and serves one exchange.
void app_serve(struct handler *self, struct exchange *x);

// A vm's let_go: the exchange no longer counts as one of its generation. False when there is no
// memory.
bool app_let_go(struct exchange *x);

// Reads what the app compiled to (the loader's table on top of the stack) into the part and, when
// it is the first, into the generation's route table. Raises what is wrong.
void app_take_compiled(lua_State *L, struct app_part *part);

// Looks from now on whether retired parts can be closed.
void app_watch_retired(struct app_host *host);

// The guard has given up the VM of this part.
void app_on_abandoned(struct vm *vm);

// What the VM of this part keeps fills lua_memory.
void app_on_full(struct vm *vm);

#endif

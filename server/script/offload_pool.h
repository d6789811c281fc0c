// offload_pool: the threads behind photon.offload and the calls that go to them and come back. For
// offload alone.
#ifndef PHOTON_SCRIPT_OFFLOAD_POOL_H
#define PHOTON_SCRIPT_OFFLOAD_POOL_H

#include <pthread.h>
#include "script/offload.h"

struct task;

enum { OFFLOAD_THREADS = 4 }; // per VM

// One call. The loop's thread owns it, except between offload_pool_send and its coming back.
struct offload_job {
    struct list node; // where it is just now: waiting or done, under the lock
    struct list all;  // pool->jobs, loop's thread
    uint64_t id;
    struct task *task; // who waits for it; NULL when nobody does any more
    struct buf paths;  // package.path, NUL, package.cpath, NUL of the caller
    struct buf call;   // packed: module, function, count, arguments
    struct buf result; // packed: count, results; or the error's text
    bool is_ok, is_done, is_dropped;
};

struct offload {
    uv_async_t async; // tells the loop that something is done
    struct vm *vm;    // loop's thread; NULL once it is closed
    struct list jobs;
    uint64_t last_id;
    void (*core)(lua_State *L, struct vm *vm);
    struct server *server;
    struct limits limits;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct list waiting, done;
    unsigned threads, idle, refs; // refs: the threads, the loop's side
    bool is_closing;
};

// A pool for the VM, without threads yet. NULL when there is no memory.
struct offload *offload_pool_new(struct vm *vm, void (*core)(lua_State *L, struct vm *vm),
                                 uv_async_cb on_done);

// Hands the job to a thread, starting one when none is idle. False when there is none and none can
// be started.
bool offload_pool_send(struct offload *pool, struct offload_job *job);

// Takes the job back when no thread has begun it yet.
bool offload_pool_recall(struct offload *pool, struct offload_job *job);

// The next job that is done, NULL when none is.
struct offload_job *offload_pool_receive(struct offload *pool);

// The loop's side lets go: no thread begins anything more.
void offload_pool_close(struct offload *pool);

// One who used the pool lets go; the last one frees it.
void offload_pool_leave(struct offload *pool);

void offload_job_free(struct offload_job *job);

// One of the threads: runs jobs until it has been idle for long.
void *offload_thread(void *pool);

#endif

// guard: stops Lua that runs on without waiting. One watchdog thread per process looks at every
// guarded thread (a worker, a loader, one of offload's) and compares slice counter and thread CPU
// time.
//
// Over the budget it signals the thread. First step: a hook that raises an error at the line that
// runs, and stays armed until the slice is over (a pcall swallows one error only). Second step, for
// compiled loops and C string functions, which never look at hooks: when the whole stack from the
// program counter to the entry is LuaJIT's own (proved by unwinding, see guard_stack.h), the
// thread leaves by a jump. The Lua state is then lost: nothing may touch it any more.
//
// Entering costs two stores and a setjmp; no system call.
#ifndef PHOTON_SCRIPT_GUARD_H
#define PHOTON_SCRIPT_GUARD_H

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <lua.h>
#include "base/list.h"

enum {
    GUARD_ABANDONED = -1, // as a result beside LUA_OK, LUA_YIELD, LUA_ERR…
};

// One guarded thread. Embedded in the worker or on the loader's stack; zero until it has joined.
struct guard {
    struct list node; // the watchdog's list, under its lock
    pthread_t thread;
    clockid_t clock; // CPU time of the thread
    void *signal_stack;
    sigjmp_buf escape;

    // Written by the guarded thread, read by its own signal handler and by the watchdog.
    _Atomic uint64_t slice;   // odd: Lua runs
    _Atomic uint32_t budget;  // ms
    lua_State *volatile co;   // what was entered
    char *volatile floor;     // the stack pointer at the entry: above it the stack is not Lua's
    volatile bool is_task;    // the function at the base of `co` is ours and is not stopped
    volatile bool is_armed;   // the hook is set
    volatile bool is_stopped; // the hook has raised in this slice

    // The watchdog's.
    uint64_t seen, seen_cpu;  // the slice last looked at; CPU time (ns) when it was first seen
    _Atomic uint64_t accused; // the slice that is over its budget
    _Atomic unsigned step;    // 1: the hook, 2: the jump
    unsigned attempts;        // signals sent to that slice
};

// Starts the watchdog thread, once per process, and learns what of LuaJIT's layout step two needs.
// False when it cannot be started.
bool guard_start(void);

// Ends it. No thread is joined any more.
void guard_stop(void);

// Puts the calling thread under watch: the guard belongs to it until guard_leave_thread. False when
// there is no memory; the guard may then be used all the same, and never stops anything.
bool guard_join_thread(struct guard *g);
void guard_leave_thread(struct guard *g);

// lua_resume under guard, for the scheduler alone. `g` may be NULL: not guarded. Inside a guarded
// call a further one is not guarded by itself. GUARD_ABANDONED: the code could not be stopped; the
// whole VM of `co` must never be touched again (not even closed). The function at the base of `co`
// (the door's loop) and the library that it comes from are not stopped by the hook themselves, only
// what they call.
int guard_resume(struct guard *g, lua_State *co, int nargs, uint32_t budget_ms);

// lua_pcall under guard, for loading: the function and its arguments on top of the stack; `handler`
// is the stack index of a message handler or 0. The function must be Lua, or only its end is seen.
int guard_pcall(struct guard *g, lua_State *L, int nargs, int nresults, int handler,
                uint32_t budget_ms);

// Whether the present slice has been stopped by the hook: what it answers is a 503, not a 500.
static inline bool guard_is_stopped(const struct guard *g)
{
    return g && g->is_stopped;
}

// The calling thread's guard, or NULL.
struct guard *guard_here(void);

#endif

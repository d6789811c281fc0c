// task: Lua coroutines that may wait, and the one door into Lua. Only this room (and the guard for
// it) calls lua_resume and lua_pcall. A task belongs to a VM; it may serve an exchange.
//
// How a wait works: a C function called by the task checks (task_check_wait), parks the task
// (task_park) and returns to Lua, whose code then calls photon.wait, which yields. Whoever ends the
// wait calls task_wake; the task is resumed on the loop's next turn, never from inside the call.
#ifndef PHOTON_SCRIPT_TASK_H
#define PHOTON_SCRIPT_TASK_H

#include "http/exchange.h"
#include "script/vm.h"
#include "wire/timer.h"

enum task_state { TASK_IDLE, TASK_READY, TASK_RUNNING, TASK_PARKED };

enum task_kind {      // what the door does with it; the numbers are known to lua/photon/door.lua
    TASK_REQUEST = 1, // handler(req), then the reply
    TASK_CALL = 2,    // a task object of photon.task: function and arguments
    TASK_NAMED = 3,   // a function of the door, called by C
    TASK_DIED = 4,    // cleans up after a coroutine that was lost
};

struct task {
    struct list node;     // vm->tasks or vm->idle
    struct list ready;    // vm->ready
    struct list scoped;   // vm_slot.tasks: it ends with that exchange
    struct list children; // tasks spawned by this one, not detached
    struct list sibling;
    struct task *parent;
    struct vm *vm;
    lua_State *co;   // NULL: to be made
    int co_ref;      // anchors it in the registry
    int object_ref;  // TASK_CALL: the Lua task object
    uint32_t serial; // changes with each use
    uint8_t state, kind, deaths;
    bool is_cancelled, is_detached, has_defers;
    bool is_kept;         // goes on when its generation is retired
    bool is_closer;       // runs functions of req:on_close
    struct vm_slot *slot; // the exchange it belongs to, NULL when none
    struct exchange *x;   // TASK_REQUEST: what it has to answer; NULL once that is over
    uint32_t handler;     // TASK_REQUEST: where its function stands in VM_REF_HANDLERS
    int status;           // TASK_REQUEST to a fallback: what the server would answer; else 0
    struct slice allow;   // and the methods that the path knows, in the exchange's arena
    const char *name;     // TASK_NAMED
    double a, b;
    struct timer timer;                // of a sleep
    void (*on_cancel)(struct task *t); // undoes the present wait's registration
    void *wait_data;                   // the wait's own
    void (*on_end)(struct task *t);    // told once when it ends, however; outside of Lua
    void *end_data;
};

// Adds this room's functions to the core table.
void task_open(lua_State *L, struct vm *vm);

// Loads photon.door; once, after vm_new and before any task. May raise.
void task_load_door(lua_State *L, struct vm *vm);

// Answers the exchange by the function at `handler` in VM_REF_HANDLERS. An app's fallback is told
// the status (not 0) that the server would answer and the allowed methods (in the exchange's
// arena). Runs until the first wait. 503 when there are too many tasks or no memory.
void task_serve(struct vm *vm, struct exchange *x, uint32_t handler, int status,
                struct slice allow);

// A coarse clock in milliseconds, for slices: costs a few nanoseconds.
uint64_t task_clock(void);

// Runs photon.door's function `name` (a literal) as a task of its own. NULL when there is no
// memory.
struct task *task_call(struct vm *vm, const char *name, double a, double b);

// Starts a task object of photon.task (the first argument) on the next turn; one that a cancelled
// task starts is cancelled, unless it is detached. May raise; NULL when there are too many tasks.
struct task *task_spawn(lua_State *L, struct vm *vm, bool is_detached);

// Raises "<place of the app>: <what> <why>".
int task_refuse(lua_State *L, const char *what, const char *why);

// Raises in a VM whose tasks never run: that of a thread of photon.offload, and one that has ended,
// whose finalizers still run on another thread.
void task_check_loop(lua_State *L, const struct vm *vm, const char *what);

// The running task when it may wait here. Raises otherwise (outside a task, at load, across a C
// call), naming `what`, e.g. "photon.sleep". A cancelled task gets photon.cancelled raised.
struct task *task_check_wait(lua_State *L, struct vm *vm, const char *what);

// The same without raising for a cancelled task: NULL then.
struct task *task_check_quiet_wait(lua_State *L, struct vm *vm, const char *what);

// Parks the running task. `on_cancel` (may be NULL) must undo whatever could call task_wake; it is
// called when the wait is cancelled. Use right before returning to Lua, whose code calls wait.
void task_park(struct task *t, void *data, void (*on_cancel)(struct task *t));

// Ends the wait of a parked task; harmless otherwise. It is resumed on the next turn.
void task_wake(struct task *t);

// Cancels it and its children: the present wait ends with photon.cancelled, every later one raises
// it at once.
void task_cancel(struct task *t);

// What a request has spawned, when `t` answers it and has failed; detached tasks go on. Harmless
// for other tasks.
void task_cancel_spawned(struct task *t);

// Cancels all tasks of the VM but those that are spared.
enum task_spared {
    TASK_SPARE_NONE,
    TASK_SPARE_CLOSERS, // the functions of req:on_close
    TASK_SPARE_SCOPED,  // what serves an exchange, is kept, or was called by C (but on_start)
};
void task_cancel_all(struct vm *vm, enum task_spared spared);

// The exchange of the slot is over: the functions of req:on_close run, and unless it was done
// properly its tasks are cancelled.
void task_scope_over(struct vm_slot *slot, bool is_done);

// Runs a C function protected on the VM's main state, outside of any task: true, or false after
// logging what it raised.
bool task_protect(struct vm *vm, lua_CFunction fn, void *data);

// The VM is lost or full: its tasks never run again, their waits and timers end. Lua is not
// touched.
void task_abandon_all(struct vm *vm);

// Frees the VM and its tasks, whose handles its finalizers may still use. NULL is allowed.
void task_free_vm(struct vm *vm);

#endif

// vm: one Lua state with what belongs to it: its loop, its limits, the handles that Lua objects
// hold, its tasks. A VM is loaded on any one thread, then lives on one loop's thread.
#ifndef PHOTON_SCRIPT_VM_H
#define PHOTON_SCRIPT_VM_H

#include <lua.h>
#include <lauxlib.h>
#include "base/buf.h"
#include "base/counters.h"
#include "base/limits.h"
#include "base/list.h"
#include "http/exchange.h"
#include "wire/loop.h"

struct task;
struct route;
struct channel_registry;
struct channel_worker;
struct luv_state;
struct offload;
struct stream;
struct stream_host;
struct guard;
struct server;

enum { VM_OVERFLOW = 200 };

enum vm_phase {
    VM_LOADING,   // runs the app's files; nothing may wait, no loop-bound object may be made
    VM_SERVING,   // current or retired, its tasks run
    VM_CLOSING,   // loop-bound objects are being closed; no Lua runs but close callbacks
    VM_ABANDONED, // left by siglongjmp: never touched again
};

// Registry references kept per VM (vm->refs). Each is set by the room named.
enum vm_ref {
    VM_REF_DOOR,      // task: the coroutine body of photon.door
    VM_REF_HANDLERS,  // app: for each app of the VM its fallback or false, then its handlers
    VM_REF_REQUEST,   // request: metatable of requests
    VM_REF_RESPONSE,  // result: metatable of responses
    VM_REF_PROBLEM,   // result: metatable of problems, if it is another
    VM_REF_FAILURE,   // result: metatable of failures (message and trace)
    VM_REF_CANCELLED, // task: photon.cancelled
    VM_REF_WAIT,      // task: what a waiting coroutine yields
    VM_REF_CLOSED,    // task: the text "closed"
    VM_REF_ORIGINS,   // result: the app's function in each that photon.chain has made
    VM_REF_STREAM,    // stream: metatable of streams
    VM_REF_FIELDS,    // result: metatable of header tables
    VM_REF_PAGE,      // result: photon.page, the error page of --watch
    VM_REF_FAILURES,  // result: unhandled failures by request id, under test
    VM_REF_PARAMS,    // request: the string "params"
    VM_REF_TRUST,     // request: the trusted proxies
    VM_REF_COLLECT,   // task: collects all garbage
    VM_REFS
};

// What stands behind a handle number: an exchange (and its stream), until it is over. Slots are
// never moved nor freed while the VM lives, so that an old handle can be checked at any time.
struct vm_slot {
    struct exchange_watch watch; // its on_over makes the handle inert
    struct vm *vm;
    struct exchange *x;
    struct stream *stream; // script/stream's, or NULL
    struct list tasks;     // those that end with the exchange
    struct task *server;   // the task that answers, while it lives
    uint32_t serial;       // changes with each use, so that an old handle is inert
    uint32_t index, next;
    bool has_closers; // functions of req:on_close wait in the door
};

// Work at the end of a slice (a run of Lua until it waits or ends): streams flush what was sent.
struct vm_after {
    struct list node;
    void (*on_slice_end)(struct vm_after *after);
};

struct vm {
    lua_State *L;
    struct loop *loop; // NULL while loading for `photon check` and the like
    const struct limits *limits;
    struct counters *counters;
    struct server *server;           // what the whole process shares; opaque here
    struct stream_host *streams;     // of the worker
    struct channel_worker *channels; // of the worker
    unsigned load;                   // number of the load of the app, for the options of channels
    // The registry for the running code, when it is not the server's (tests).
    struct channel_registry *(*find_channels)(struct vm *vm);
    // The exchange goes on without this VM and its generation; false when it cannot.
    bool (*let_go)(struct exchange *x);
    void *part; // struct app_part: this VM's share of a generation
    unsigned worker_id, worker_count;
    uint8_t phase;    // enum vm_phase
    bool is_testing;  // in-process tests: errors are raised in the spec
    bool is_watching; // --watch: errors are shown to browsers

    struct vm_slot **slots;
    uint32_t slot_count, slot_cap, slot_free;

    struct list tasks;                   // all living tasks
    struct list ready;                   // tasks to be resumed, in order
    struct loop_turn turn;               // resumes them
    struct list idle;                    // finished tasks with their coroutines, kept for reuse
    unsigned idle_count, task_count;     // idle ones with a coroutine; living ones
    struct task *current;                // the task that runs now, NULL outside Lua
    unsigned closed_calls;               // of this slice, to streams that are closed
    uint64_t slice_began;                // task_clock, when the present slice began
    char overflow[VM_OVERFLOW];          // of this slice, the last error of a full stack
    struct list after;                   // what is to be done when the present slice ends
    int refs[VM_REFS];                   // registry references of what C needs often
    struct vm *next_lost;                // of the abandoned ones
    void (*on_abandoned)(struct vm *vm); // the guard has given this VM up
    void (*on_full)(struct vm *vm);      // what lives in it leaves no memory to serve with
    const struct route *route;           // of the present or last slice, NULL: none

    struct list scratches;      // Lua's buffers of JSON, freed without __gc when abandoned
    struct buf scratch;         // for encoders inside one call from Lua; survives a raised error
    size_t memory, memory_peak; // bytes of the Lua heap
    size_t memory_mark;         // growing over it makes LuaJIT collect, see vm_memory.c
    size_t memory_low;          // the least since the mark was last passed
    int stepmul;                // of the collector, while it is hurried
    bool is_hurried;            // the collector ends its cycle at its next step
    bool is_held;               // the collector is stopped for the handling of an error
    bool was_refused;           // memory, in the present slice
    bool is_stopping;           // a hook raises at the next line
    bool is_deep;               // what it complains of is the thread's stack, not the heap
    lua_Hook hook;              // what stood there before
    int hook_mask, hook_count;
    bool is_full;         // garbage is to be collected as soon as that may be done again:
    uint64_t collects_at; // uv_hrtime
    unsigned full_rounds; // collections in a row that have left hardly any memory
    lua_Alloc allocate;   // LuaJIT's own allocator behind ours
    void *allocate_data;
    struct list objects;     // C objects that Lua owns, given up without __gc when abandoned
    struct luv_state *luv;   // once `require "luv"` has been used
    struct offload *offload; // once photon.offload has been used
    struct guard *guard;     // of the thread that runs this VM; NULL: not guarded
};

// A new state with the standard libraries, cjson and photon's modules within reach. NULL when there
// is no memory. `core` adds the rooms' functions to the table at the top (photon.core); it runs
// protected.
struct vm *vm_new(struct loop *loop, const struct limits *limits, struct counters *counters,
                  void (*core)(lua_State *L, struct vm *vm));

// Closes the Lua state; no task lives and no loop-bound object is open. Any thread.
void vm_free(struct vm *vm);

// Takes from the debug library what could break C. May raise.
void vm_debug_tame(lua_State *L);

// Before an allocation fails, whoever asked for it; see vm_trace.c. Learning is done once, before
// any VM runs.
void vm_trace_learn(void);
void vm_trace_settle(lua_State *L);

// Whether compiled code runs, so far as that is known.
bool vm_trace_runs(lua_State *L);

// LuaJIT's allocator behind a counter and the limit lua_memory; `data` is the VM.
void *vm_allocate(void *data, void *ptr, size_t old_size, size_t new_size);

// lua_memory has changed: what the collector is hurried at is found anew.
void vm_memory_relimit(struct vm *vm);

// After a slice, outside of Lua: the collector goes at its own pace again. True when the slice met
// the limit: all garbage should be collected, so that the next one finds room.
bool vm_memory_settle(struct vm *vm);

// Nothing is collected, and so no finalizer runs, until the second is called, memory is refused, or
// the slice ends.
void vm_memory_hold(struct vm *vm);
void vm_memory_release(struct vm *vm);

// After all garbage has been collected: whether so little of lua_memory is left that what comes
// next will meet the limit as well.
bool vm_memory_is_short(const struct vm *vm);

// Whether no Lua runs in it any more, but finalizers.
static inline bool vm_is_over(const struct vm *vm)
{
    return vm->phase >= VM_CLOSING;
}

// The guard has given it up: its state is unknown. It is kept for ever, in a list, so that what
// still points to it stays valid.
void vm_abandon(struct vm *vm);

// The VM of a C function registered by vm_register.
static inline struct vm *vm_of(lua_State *L)
{
    return (struct vm *)lua_touserdata(L, lua_upvalueindex(1));
}

// Puts functions into the table at the top of the stack, each with the VM as its first upvalue.
void vm_register(lua_State *L, struct vm *vm, const luaL_Reg *functions);

// A slot for the exchange, watching it; NULL when there is no memory. The slot room closes it when
// the exchange is over: cancels its tasks, runs its closers, makes its handle inert.
struct vm_slot *vm_slot_open(struct vm *vm, struct exchange *x);
void vm_slot_close(struct vm_slot *slot);
double vm_slot_handle(const struct vm_slot *slot);
void vm_slots_reset(struct vm *vm); // frees all

// NULL when the handle is inert or no handle at all.
struct vm_slot *vm_slot_at(struct vm *vm, double handle);

// The handle in the Lua value at `index`: a number, or a table whose [1] is one (a request or a
// stream as Lua sees it). NULL when inert.
struct vm_slot *vm_slot_arg(lua_State *L, struct vm *vm, int index);

#endif

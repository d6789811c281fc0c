// A defect of LuaJIT before autumn 2023: when an allocation fails in compiled code, the error is
// raised with a stale frame, and the process ends. What later versions do about it is done here
// before the allocator says no: the frame is taken from where compiled code keeps it.
//
// That place, global_State.jit_base, is known to no header. It is found by a trial: a function is
// compiled and run, and whenever that allocates, the word is looked for that points to its frame.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <lualib.h>
#include "base/mem.h"
#include "script/vm.h"

enum {
    TRACE_GLOBAL = 16,   // where a lua_State has the address of its global_State
    TRACE_WORDS = 160,   // of that, to be looked at
    TRACE_ROOM = 4 << 20 // for the trial's heap; little of it is touched
};

// LuaJIT's own: with no steps to do, it only sets the frame. The build makes its name known.
int lj_gc_step_jit(void *global, uint32_t steps) __attribute__((weak));

struct trace_trial {
    char *room;
    size_t used;
    void **global;
    uintptr_t function; // what is compiled; 0 before it runs
    unsigned found;     // the word, 0: not found
};

static unsigned trace_word; // where jit_base is

static void trace_look(struct trace_trial *trial)
{
    uintptr_t from = (uintptr_t)trial->room + 16, to = (uintptr_t)trial->room + trial->used;
    for (unsigned i = 1; i < TRACE_WORDS && !trial->found; i++) {
        uintptr_t at = (uintptr_t)trial->global[i];
        if (at < from || at >= to || at % 8 != 0) continue;
        uintptr_t callee = ((uintptr_t *)at)[-2] & 0x7fffffffffff;
        if (callee == trial->function) trial->found = i;
    }
}

static void *trace_allocate(void *data, void *ptr, size_t old_size, size_t new_size)
{
    struct trace_trial *trial = data;
    if (new_size <= old_size) return new_size ? ptr : NULL;
    if (trial->function) trace_look(trial);
    if (TRACE_ROOM - trial->used < new_size + 16) return NULL;
    void *made = trial->room + trial->used;
    trial->used += (new_size + 15) & ~(size_t)15;
    if (ptr) memcpy(made, ptr, old_size);
    return made;
}

static int trace_try(lua_State *L)
{
    struct trace_trial *trial = lua_touserdata(L, 1);
    luaL_openlibs(L);
    if (luaL_dostring(L, "jit.opt.start('hotloop=2')\n"
                         "return function() local t = {} for i = 1, 500 do t[i] = i end end")) {
        return 0;
    }
    trial->global = *(void ***)((char *)L + TRACE_GLOBAL);
    trial->function = (uintptr_t)lua_topointer(L, -1);
    lua_call(L, 0, 0);
    return 0;
}

static void trace_learn(void)
{
    struct trace_trial trial = {.room = mem_zalloc(TRACE_ROOM)};
    lua_State *L = trial.room ? lua_newstate(trace_allocate, &trial) : NULL;
    if (L) {
        lua_cpcall(L, trace_try, &trial);
        trial.function = 0;
        lua_close(L);
    }
    mem_free(trial.room);
    trace_word = trial.found;
}

void vm_trace_learn(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (lj_gc_step_jit) pthread_once(&once, trace_learn);
}

static void **trace_global(lua_State *L)
{
    return *(void ***)((char *)L + TRACE_GLOBAL);
}

bool vm_trace_runs(lua_State *L)
{
    return trace_word && trace_global(L)[trace_word];
}

void vm_trace_settle(lua_State *L)
{
    if (vm_trace_runs(L)) lj_gc_step_jit(trace_global(L), 0);
}

// Another defect, of LuaJIT before 2024: where compiled code leaves because the stack is full, the
// message handler is called without the room that is kept for it, and what comes out is "error in
// error handling", without a place. The build has LuaJIT call this in place of lj_err_trace, which
// raises the error: it keeps the message, which has the place, for result_failure.
void lj_err_trace(lua_State *L, int code);
void __wrap_lj_err_trace(lua_State *L, int code);

void __wrap_lj_err_trace(lua_State *L, int code)
{
    void *data;
    bool is_ours = lua_getallocf(L, &data) == vm_allocate && lua_type(L, -1) == LUA_TSTRING;
    if (is_ours) snprintf(((struct vm *)data)->overflow, VM_OVERFLOW, "%s", lua_tostring(L, -1));
    lj_err_trace(L, code);
}

#include "script/guard.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <lauxlib.h>
#include "base/mem.h"
#include "script/guard_stack.h"
#include "script/guard_watch.h"

enum { SIGNAL_STACK = 128 * 1024 };

static _Thread_local struct guard *here;

struct guard *guard_here(void)
{
    return here;
}

// The part of a chunk's name that the modules of one library share: "@photon.door" and
// "@lua/photon/door.lua" give all up to "door".
static size_t family_length(const char *source)
{
    size_t len = strlen(source);
    if (len > 4 && strcmp(source + len - 4, ".lua") == 0) len -= 4;
    while (len > 0 && source[len - 1] != '.' && source[len - 1] != '/') len--;
    return len ? len : strlen(source);
}

// Whether nothing but the door's loop and its own library stands on the task's stack, which must
// live on to give the answer. Their stack is never deep.
static bool is_door(const struct guard *g, lua_State *L)
{
    enum { DEEP = 12 };
    lua_Debug at[DEEP + 1];
    int depth = 0;

    if (!g->is_task || L != g->co) return false;
    while (lua_getstack(L, depth, &at[depth])) {
        if (depth == DEEP || !lua_getinfo(L, "S", &at[depth])) return false;
        depth++;
    }
    if (depth == 0) return false;
    const char *door = at[depth - 1].source;
    size_t family = family_length(door);
    for (int i = 0; i < depth; i++) {
        if (at[i].what[0] != 'C' && strncmp(at[i].source, door, family) != 0) return false;
    }
    return true;
}

// Raises at the line that runs; not outside a slice (the hook is then about to be taken away).
static void on_hook(lua_State *L, lua_Debug *ar)
{
    struct guard *g = here;

    (void)ar;
    if (!g || !g->is_armed || is_door(g, L)) return;
    g->is_stopped = true;
    luaL_where(L, 0);
    lua_pushfstring(L, "handler ran over lua_budget (%f s) without waiting",
                    (double)atomic_load_explicit(&g->budget, memory_order_relaxed) / 1000);
    lua_concat(L, 2);
    lua_error(L);
}

static void set_hook(struct guard *g)
{
    // Taken away first: an interrupted change of the hook may have left LuaJIT half convinced.
    lua_sethook(g->co, NULL, 0, 0);
    lua_sethook(g->co, on_hook, LUA_MASKCOUNT | LUA_MASKLINE, 1);
    g->is_armed = true;
}

#ifdef __x86_64__
// Runs on the thread's normal stack, where the lost frames were, after the signal handler returned.
__attribute__((noreturn, used)) static void leave_slice(struct guard *g)
{
    siglongjmp(g->escape, 1);
}

static void try_jump(struct guard *g, ucontext_t *context)
{
    greg_t *reg = context->uc_mcontext.gregs;
    struct guard_registers r = {.pc = (uintptr_t)reg[REG_RIP],
                                .sp = (uintptr_t)reg[REG_RSP],
                                .bp = (uintptr_t)reg[REG_RBP]};

    if (!guard_stack_is_lua(r, (uintptr_t)g->floor)) return;
    uintptr_t top = ((uintptr_t)g->floor - 512) & ~(uintptr_t)15;
    reg[REG_RIP] = (greg_t)(uintptr_t)leave_slice;
    reg[REG_RDI] = (greg_t)(uintptr_t)g;
    reg[REG_RSP] = (greg_t)(top - 8); // as after a call
    reg[REG_EFL] &= ~(greg_t)0x400;   // string operations go up
}
#else
static void try_jump(struct guard *g, ucontext_t *context)
{
    (void)g, (void)context;
}
#endif

static void on_signal(int number, siginfo_t *info, void *context)
{
    struct guard *g = here;
    int saved = errno;

    (void)number, (void)info;
    if (g && atomic_load(&g->slice) == atomic_load(&g->accused)) {
        if (atomic_load(&g->step) == 1)
            set_hook(g);
        else
            try_jump(g, context);
    }
    errno = saved;
}

static void begin_slice(struct guard *g, lua_State *co, bool is_task, uint32_t budget_ms)
{
    uint64_t slice = atomic_load_explicit(&g->slice, memory_order_relaxed);
    g->co = co;
    g->is_task = is_task;
    g->is_stopped = false;
    atomic_store_explicit(&g->budget, budget_ms, memory_order_relaxed);
    atomic_store_explicit(&g->slice, slice + 1, memory_order_release);
}

// After this store the signal handler does nothing more; so a hook that it has set is taken away
// last.
static void end_slice(struct guard *g)
{
    uint64_t slice = atomic_load_explicit(&g->slice, memory_order_relaxed);
    atomic_store_explicit(&g->slice, slice + 1, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    if (!g->is_armed) return;
    g->is_armed = false;
    lua_sethook(g->co, NULL, 0, 0);
}

static int abandon_slice(struct guard *g)
{
    uint64_t slice = atomic_load_explicit(&g->slice, memory_order_relaxed);
    g->is_armed = false;
    g->co = NULL;
    atomic_store_explicit(&g->slice, slice + 1, memory_order_release);
    return GUARD_ABANDONED;
}

static bool is_guarding(const struct guard *g)
{
    return g && g == here && (atomic_load_explicit(&g->slice, memory_order_relaxed) & 1) == 0;
}

// The stack pointer of this function during its calls: where LuaJIT's frames end.
#ifdef __x86_64__
#define NOTE_FLOOR(g)                                                                              \
    do {                                                                                           \
        char *note_sp;                                                                             \
        __asm__ volatile("movq %%rsp, %0" : "=r"(note_sp));                                        \
        (g)->floor = note_sp;                                                                      \
    } while (0)
#else
#define NOTE_FLOOR(g) ((void)(g))
#endif

__attribute__((noinline)) int guard_resume(struct guard *g, lua_State *co, int nargs,
                                           uint32_t budget_ms)
{
    if (!is_guarding(g)) return lua_resume(co, nargs);
    if (sigsetjmp(g->escape, 0)) return abandon_slice(g);
    NOTE_FLOOR(g);
    begin_slice(g, co, true, budget_ms);
    int status = lua_resume(co, nargs);
    end_slice(g);
    return status;
}

__attribute__((noinline)) int guard_pcall(struct guard *g, lua_State *L, int nargs, int nresults,
                                          int handler, uint32_t budget_ms)
{
    if (!is_guarding(g)) return lua_pcall(L, nargs, nresults, handler);
    if (sigsetjmp(g->escape, 0)) return abandon_slice(g);
    NOTE_FLOOR(g);
    begin_slice(g, L, false, budget_ms);
    int status = lua_pcall(L, nargs, nresults, handler);
    end_slice(g);
    return status;
}

bool guard_join_thread(struct guard *g)
{
    stack_t stack = {.ss_size = SIGNAL_STACK};

    stack.ss_sp = g->signal_stack = mem_alloc(SIGNAL_STACK);
    if (!g->signal_stack) return false;
    g->thread = pthread_self();
    if (sigaltstack(&stack, NULL) != 0 || pthread_getcpuclockid(g->thread, &g->clock) != 0) {
        stack = (stack_t){.ss_flags = SS_DISABLE};
        sigaltstack(&stack, NULL);
        mem_free(g->signal_stack);
        g->signal_stack = NULL;
        return false;
    }
    here = g;
    guard_watch_add(g);
    return true;
}

void guard_leave_thread(struct guard *g)
{
    stack_t none = {.ss_flags = SS_DISABLE};

    if (!g->signal_stack) return;
    guard_watch_remove(g);
    here = NULL;
    sigaltstack(&none, NULL);
    mem_free(g->signal_stack);
    g->signal_stack = NULL;
}

bool guard_start(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};

    action.sa_sigaction = on_signal;
    sigfillset(&action.sa_mask);
    if (sigaction(guard_watch_signal(), &action, NULL) != 0) return false;
    guard_stack_learn();
    return guard_watch_start();
}

void guard_stop(void)
{
    guard_watch_stop();
}

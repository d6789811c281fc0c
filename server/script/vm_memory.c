// The limit of a VM's heap. LuaJIT collects when its heap has doubled, whatever there is to have,
// and never because an allocation has failed: a limit alone would refuse memory while there is
// plenty of garbage, and once reached it would leave nothing to recover with. So the collector is
// hurried when three quarters are in use, and a reserve above the limit lets errors be handled and
// cleaned up.
//
// Nor does every version of LuaJIT bear an allocation that fails in compiled code or while code is
// compiled. So over the limit little is still given, and a hook raises at the next line that is
// interpreted; only big blocks, which C functions ask for, and what is far over it are refused.
// Small blocks that grow never are: when a stack cannot, LuaJIT writes its error message behind the
// stack.
#include "base/mem.h"
#include "script/guard_thread.h"
#include "script/vm.h"

// More than the compiler ever asks for at once, and than a coroutine's stack grows to.
enum { MEMORY_BIG = 1024 * 1024 };

static size_t vm_memory_reserve(const struct vm *vm)
{
    return 128 * 1024 + (size_t)(vm->limits->lua_memory / 32);
}

// luv fills the main state before it calls back, where nothing catches an error: a refusal would
// end the process. The luv room looks at the limit afterwards.
static bool vm_is_unprotected(const struct vm *vm)
{
    return vm->luv && vm->loop && !vm->current && vm->phase != VM_LOADING;
}

// What is never passed.
static size_t vm_memory_cap(const struct vm *vm)
{
    size_t limit = (size_t)vm->limits->lua_memory;
    size_t cap = limit + limit / 8 + 1024 * 1024;
    return vm->current ? cap : cap + vm_memory_reserve(vm); // to collect, and to clean up
}

static void vm_set_mark(struct vm *vm, size_t memory)
{
    size_t limit = (size_t)vm->limits->lua_memory, least = limit - limit / 4;
    size_t room = memory < limit ? (limit - memory) / 2 : 0;
    if (room < limit / 32) room = limit; // so little is not worth a cycle: the limit may be met
    vm->memory_mark = memory + room > least ? memory + room : least;
}

// Nothing may be collected inside of an allocation, but the collector can be told to begin at its
// next check, and to end its cycle there. Compiled code is left for that.
static void vm_hurry(struct vm *vm, size_t memory)
{
    if (!vm->is_hurried) vm->stepmul = lua_gc(vm->L, LUA_GCSETSTEPMUL, 0);
    vm->is_hurried = true;
    if (!vm->is_held) lua_gc(vm->L, LUA_GCRESTART, 0); // else it begins with the release
    vm->memory_low = memory;
    vm_set_mark(vm, memory);
}

void vm_memory_relimit(struct vm *vm)
{
    vm->memory_mark = 0;
}

static void vm_pass_mark(struct vm *vm, size_t memory)
{
    vm_set_mark(vm, 0); // the limit may not have been known before
    if (memory > vm->memory_mark) vm_hurry(vm, memory);
}

// Half of what the cycle has left free is then to be used before the next is hurried.
static void vm_note_low(struct vm *vm)
{
    vm->memory_low = vm->memory;
    vm_set_mark(vm, vm->memory);
}

static void vm_end_stop(struct vm *vm)
{
    vm->is_stopping = false;
    lua_sethook(vm->L, vm->hook, vm->hook_mask, vm->hook_count);
}

static void vm_on_hook(lua_State *L, lua_Debug *ar)
{
    void *data;
    (void)ar;
    lua_getallocf(L, &data);
    struct vm *vm = data;
    if (!vm->is_stopping) return;
    vm_end_stop(vm);
    // Compiled code has gone on past the hook, and has failed with an error of its own since then.
    if (vm->is_deep && guard_thread_room() == GUARD_ROOM) return;
    luaL_error(L, vm->is_deep
                      ? "stack overflow (endless recursion through C functions or coroutines?)"
                      : "not enough memory (lua_memory)");
}

// The slice ends by an error at the next line.
static void vm_stop_slice(struct vm *vm, size_t memory)
{
    vm->was_refused = true;
    if (vm->is_stopping) return;
    if (vm_trace_runs(vm->L)) vm_hurry(vm, memory); // which brings it back to the interpreter
    vm->hook = lua_gethook(vm->L);
    vm->hook_mask = lua_gethookmask(vm->L);
    vm->hook_count = lua_gethookcount(vm->L);
    vm->is_stopping = true;
    lua_sethook(vm->L, vm_on_hook, LUA_MASKCOUNT | LUA_MASKLINE, 1);
}

// The reserve belongs to the slice that was stopped once, for what handles the error. Coroutines
// that resume one another are stopped here too: each takes a part of the C stack.
static bool vm_may_take(struct vm *vm, size_t memory, size_t more, bool may_grow)
{
    enum guard_room room = guard_thread_room();
    if (vm_is_unprotected(vm)) return true;
    size_t limit = (size_t)vm->limits->lua_memory;
    if (vm->was_refused) limit += vm_memory_reserve(vm);
    if (memory <= limit && room == GUARD_ROOM) return true;
    if (!vm->is_stopping) vm->is_deep = room != GUARD_ROOM;
    bool is_big = more >= MEMORY_BIG && !vm_trace_runs(vm->L);
    bool is_too_much = memory > vm_memory_cap(vm) || room == GUARD_NO_ROOM;
    if (is_big || (is_too_much && !may_grow)) {
        vm->was_refused = true;
        return false;
    }
    if (!vm->current) return true;
    vm_stop_slice(vm, memory);
    return true;
}

// Compiled code's frame is set, and what held the collector is not reached any more.
static void *vm_refuse(struct vm *vm)
{
    vm_trace_settle(vm->L);
    vm_memory_release(vm);
    return NULL;
}

void *vm_allocate(void *data, void *ptr, size_t old_size, size_t new_size)
{
    struct vm *vm = data;
    void *made;
    if (!ptr) old_size = 0;
    if (new_size > old_size) {
        size_t more = new_size - old_size, memory = vm->memory + more;
        bool may_grow = ptr && new_size <= MEMORY_BIG;
        bool fails = mem_fails() && !may_grow && !vm_is_unprotected(vm);
        if (fails || !vm_may_take(vm, memory, more, may_grow)) return vm_refuse(vm);
        if (memory > vm->memory_mark) vm_pass_mark(vm, memory);
    }
    made = vm->allocate(vm->allocate_data, ptr, old_size, new_size); // shrinking never fails
    if (!made && new_size > old_size) return vm_refuse(vm);
    if (made || new_size == 0) vm->memory += new_size - old_size;
    if (vm->memory > vm->memory_peak) vm->memory_peak = vm->memory;
    if (vm->memory < vm->memory_low) vm_note_low(vm);
    if (vm->full_rounds > 0 && !vm_memory_is_short(vm)) vm->full_rounds = 0;
    return made;
}

bool vm_memory_is_short(const struct vm *vm)
{
    size_t limit = (size_t)vm->limits->lua_memory;
    return vm->memory > limit - limit / 16;
}

void vm_memory_hold(struct vm *vm)
{
    if (vm->is_held || !lua_gc(vm->L, LUA_GCISRUNNING, 0)) return; // the app may have stopped it
    vm->is_held = true;
    lua_gc(vm->L, LUA_GCSTOP, 0);
}

void vm_memory_release(struct vm *vm)
{
    if (vm->is_held) lua_gc(vm->L, LUA_GCRESTART, 0);
    vm->is_held = false;
}

bool vm_memory_settle(struct vm *vm)
{
    bool was_refused = vm->was_refused;
    vm_memory_release(vm);
    if (vm->is_stopping) vm_end_stop(vm);
    if (vm->is_hurried) lua_gc(vm->L, LUA_GCSETSTEPMUL, vm->stepmul);
    vm->was_refused = vm->is_hurried = false;
    return was_refused;
}

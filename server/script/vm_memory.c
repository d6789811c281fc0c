// The limit of a VM's heap. LuaJIT collects when its heap has doubled, whatever there is to have,
// and never because an allocation has failed: a limit alone would refuse memory while there is
// plenty of garbage, and once reached it would leave nothing to recover with. So the collector is
// hurried when three quarters are in use, and a reserve above the limit lets errors be handled and
// cleaned up.
#include "base/mem.h"
#include "script/guard_thread.h"
#include "script/vm.h"

static size_t vm_memory_reserve(const struct vm *vm)
{
    return 128 * 1024 + (size_t)(vm->limits->lua_memory / 32);
}

// luv fills the main state before it calls back, where nothing catches an error: a refusal would
// end the process. The luv room looks at the limit afterwards.
static bool vm_is_unprotected(const struct vm *vm)
{
    return vm->luv && !vm->current && vm->phase != VM_LOADING;
}

// The reserve belongs to the slice that was refused once, for what handles the error. Half as much
// again is kept for C outside of tasks: for collecting, and for coroutines to run clean-ups in.
static bool vm_may_take(struct vm *vm, size_t memory)
{
    if (vm_is_unprotected(vm)) return true;
    size_t limit = (size_t)vm->limits->lua_memory, reserve = vm_memory_reserve(vm);
    if (memory <= limit) return true;
    if (!vm->current) return memory <= limit + reserve + reserve / 2;
    if (vm->was_refused && memory <= limit + reserve) return true;
    vm->was_refused = true;
    return false;
}

// Coroutines that resume one another have no other bound on the C stack. Each of them is allocated.
static bool vm_is_deep(struct vm *vm)
{
    if (!guard_thread_is_low()) return false;
    vm->was_refused = true;
    return true;
}

static void vm_set_mark(struct vm *vm, size_t memory)
{
    size_t limit = (size_t)vm->limits->lua_memory, least = limit - limit / 4;
    size_t mark = memory < limit ? memory + (limit - memory) / 2 : limit;
    vm->memory_mark = mark > least ? mark : least;
}

// The mark was passed. Nothing may be collected inside of an allocation, but the collector can be
// told to begin at its next check, and to end its cycle there.
static void vm_hurry(struct vm *vm, size_t memory)
{
    vm_set_mark(vm, 0); // the limit is only known once the app has been loaded
    if (memory <= vm->memory_mark) return;
    if (!vm->is_hurried) vm->stepmul = lua_gc(vm->L, LUA_GCSETSTEPMUL, 0);
    vm->is_hurried = true;
    lua_gc(vm->L, LUA_GCRESTART, 0);
    vm->memory_low = memory;
    vm_set_mark(vm, memory);
}

// Half of what the cycle has left free is then to be used before the next is hurried.
static void vm_note_low(struct vm *vm)
{
    vm->memory_low = vm->memory;
    vm_set_mark(vm, vm->memory);
}

void *vm_allocate(void *data, void *ptr, size_t old_size, size_t new_size)
{
    struct vm *vm = data;
    void *made;
    if (!ptr) old_size = 0;
    if (new_size > old_size) {
        size_t memory = vm->memory + (new_size - old_size);
        if (!vm_may_take(vm, memory) || vm_is_deep(vm)) return NULL;
        if (!vm_is_unprotected(vm) && mem_fails()) return NULL;
        if (memory > vm->memory_mark) vm_hurry(vm, memory);
    }
    made = vm->allocate(vm->allocate_data, ptr, old_size, new_size); // shrinking never fails
    if (made || new_size == 0) vm->memory += new_size - old_size;
    if (vm->memory > vm->memory_peak) vm->memory_peak = vm->memory;
    if (vm->memory < vm->memory_low) vm_note_low(vm);
    return made;
}

bool vm_memory_settle(struct vm *vm)
{
    bool was_refused = vm->was_refused;
    if (vm->is_hurried) lua_gc(vm->L, LUA_GCSETSTEPMUL, vm->stepmul);
    vm->was_refused = vm->is_hurried = false;
    return was_refused;
}

#include "base/mem.h"
#include "script/task.h"
#include "script/vm.h"

// A handle is serial * 2^20 + index + 1: an integer that a double holds exactly, never 0.
enum { VM_SLOT_BITS = 20, VM_SLOT_MAX = (1 << VM_SLOT_BITS) - 2, VM_SLOT_NONE = UINT32_MAX };

double vm_slot_handle(const struct vm_slot *slot)
{
    return (double)slot->serial * (1 << VM_SLOT_BITS) + slot->index + 1;
}

static struct vm_slot *vm_slot_new(struct vm *vm)
{
    struct vm_slot *slot;
    if (vm->slot_count == vm->slot_cap) {
        uint32_t cap = vm->slot_cap ? vm->slot_cap * 2 : 64;
        struct vm_slot **slots = NULL;
        if (cap <= VM_SLOT_MAX * 2) slots = mem_realloc(vm->slots, cap * sizeof *slots);
        if (!slots) return NULL;
        vm->slots = slots;
        vm->slot_cap = cap;
    }
    if (vm->slot_count == VM_SLOT_MAX || !(slot = mem_zalloc(sizeof *slot))) return NULL;
    slot->index = vm->slot_count;
    slot->vm = vm;
    vm->slots[vm->slot_count++] = slot;
    return slot;
}

static struct vm_slot *vm_slot_take(struct vm *vm)
{
    struct vm_slot *slot;
    if (vm->slot_free == 0) return vm_slot_new(vm);
    slot = vm->slots[vm->slot_free - 1];
    vm->slot_free = slot->next;
    return slot;
}

// The exchange is over: its tasks have no reason to go on, its handle means nothing any more.
static void vm_slot_on_over(struct exchange_watch *w, enum exchange_end how)
{
    struct vm_slot *slot = list_entry(w, struct vm_slot, watch);
    task_scope_over(slot, how == EXCHANGE_DONE);
    vm_slot_close(slot);
}

struct vm_slot *vm_slot_open(struct vm *vm, struct exchange *x)
{
    struct vm_slot *slot = vm_slot_take(vm);
    if (!slot) return NULL;
    slot->x = x;
    slot->serial++;
    list_init(&slot->tasks);
    slot->watch.on_over = vm_slot_on_over;
    exchange_watch(x, &slot->watch);
    return slot;
}

void vm_slot_close(struct vm_slot *slot)
{
    struct vm *vm = slot->vm;
    exchange_unwatch(&slot->watch);
    slot->x = NULL;
    slot->stream = NULL;
    slot->server = NULL;
    slot->has_closers = false;
    slot->serial++;
    slot->next = vm->slot_free;
    vm->slot_free = slot->index + 1;
}

struct vm_slot *vm_slot_at(struct vm *vm, double handle)
{
    uint64_t bits = handle > 0 && handle < 9e15 ? (uint64_t)handle : 0;
    uint64_t index = bits & ((1 << VM_SLOT_BITS) - 1);
    if (index == 0 || index > vm->slot_count) return NULL;
    struct vm_slot *slot = vm->slots[index - 1];
    return slot->x && slot->serial == bits >> VM_SLOT_BITS ? slot : NULL;
}

struct vm_slot *vm_slot_arg(lua_State *L, struct vm *vm, int index)
{
    double handle;
    if (lua_type(L, index) != LUA_TTABLE) return vm_slot_at(vm, lua_tonumber(L, index));
    lua_rawgeti(L, index, 1);
    handle = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return vm_slot_at(vm, handle);
}

void vm_slots_reset(struct vm *vm)
{
    for (uint32_t i = 0; i < vm->slot_count; i++) mem_free(vm->slots[i]);
    mem_free(vm->slots);
    vm->slots = NULL;
    vm->slot_count = vm->slot_cap = vm->slot_free = 0;
}

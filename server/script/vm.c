#include "script/vm.h"

#include <luajit.h>
#include <lualib.h>
#include <stdatomic.h>
#include "base/log.h"
#include "base/mem.h"
#include "script/json.h"
#include "script/library.h"

// Of the collector's steps, in percent of LuaJIT's unit of about a KB. LuaJIT's own 200 spreads a
// cycle over so many allocations that one event or request in ten meets a step while it lasts; in
// steps of some 20 us it meets one in a hundred, and the work is the same.
enum { VM_STEP_MULTIPLIER = 2000 };

static int vm_exit_refused(lua_State *L)
{
    return luaL_error(L, "os.exit would end the server for everyone: return from the handler, "
                         "or raise an error");
}

struct vm_opening {
    struct vm *vm;
    void (*core)(lua_State *L, struct vm *vm);
};

static int vm_open_core(lua_State *L)
{
    const struct vm_opening *opening = lua_touserdata(L, 1);
    luaL_openlibs(L);
#ifdef PHOTON_HOSTILE
    // LuaJIT's compiler does not bear that its allocations fail.
    luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
#endif
    lua_getglobal(L, "os");
    lua_pushcfunction(L, vm_exit_refused);
    lua_setfield(L, -2, "exit");
    lua_pop(L, 1);
    vm_debug_tame(L);
    library_open(L);
    // The registry's list of free references exists from now on, so that luaL_unref never allocates
    // and can be called outside of protection.
    lua_pushboolean(L, true);
    luaL_unref(L, LUA_REGISTRYINDEX, luaL_ref(L, LUA_REGISTRYINDEX));
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    lua_newtable(L);
    opening->core(L, opening->vm);
    lua_setfield(L, -2, "photon.core");
    return 0;
}

struct vm *vm_new(struct loop *loop, const struct limits *limits, struct counters *counters,
                  void (*core)(lua_State *L, struct vm *vm))
{
    struct vm *vm = mem_zalloc(sizeof *vm);
    struct vm_opening opening = {vm, core};
    if (!vm) return NULL;
    vm_trace_learn();
    *vm = (struct vm){.loop = loop, .limits = limits, .counters = counters};
    list_init(&vm->tasks);
    list_init(&vm->ready);
    list_init(&vm->idle);
    list_init(&vm->after);
    list_init(&vm->objects);
    list_init(&vm->scratches);
    for (int i = 0; i < VM_REFS; i++) vm->refs[i] = LUA_NOREF;
    vm->L = luaL_newstate();
    if (!vm->L) {
        mem_free(vm);
        return NULL;
    }
    vm->allocate = lua_getallocf(vm->L, &vm->allocate_data);
    lua_setallocf(vm->L, vm_allocate, vm);
    lua_gc(vm->L, LUA_GCSETSTEPMUL, VM_STEP_MULTIPLIER);
    if (lua_cpcall(vm->L, vm_open_core, &opening) != 0) {
        log_write(LOG_ERROR, "cannot open a Lua state: %s", lua_tostring(vm->L, -1));
        vm_free(vm);
        return NULL;
    }
    return vm;
}

// LuaJIT frees a heap of its own allocator at once, so that one is put back first.
void vm_free(struct vm *vm)
{
    if (!vm) return;
    lua_setallocf(vm->L, vm->allocate, vm->allocate_data);
    lua_close(vm->L);
    vm_slots_reset(vm);
    buf_reset(&vm->scratch);
    mem_free(vm);
}

void vm_abandon(struct vm *vm)
{
    static struct vm *_Atomic lost;
    vm->phase = VM_ABANDONED;
    json_abandon(&vm->scratches);
    vm->next_lost = atomic_exchange(&lost, vm);
}

void vm_register(lua_State *L, struct vm *vm, const luaL_Reg *functions)
{
    for (; functions->name; functions++) {
        lua_pushlightuserdata(L, vm);
        lua_pushcclosure(L, functions->func, 1);
        lua_setfield(L, -2, functions->name);
    }
}

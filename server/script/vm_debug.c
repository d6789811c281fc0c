// What of the debug library is kept from apps: whatever lets Lua change what C relies on. All the
// rest (tracebacks, hooks, locals and upvalues of Lua functions) is there.
#include "script/vm.h"

static int vm_debug_registry(lua_State *L)
{
    return luaL_error(L, "debug.getregistry is not available: the registry belongs to the server");
}

// debug.getupvalue, debug.setupvalue: those of C functions point to the server's own structures.
static int vm_debug_upvalue(lua_State *L)
{
    if (lua_iscfunction(L, 1)) return 0;
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

// debug.setmetatable: C tells kinds of userdata by their metatables.
static int vm_debug_metatable(lua_State *L)
{
    if (lua_type(L, 1) == LUA_TUSERDATA) {
        return luaL_error(L, "debug.setmetatable cannot change a userdata");
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

static void vm_debug_replace(lua_State *L, const char *name, lua_CFunction by)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, by, 1);
    lua_setfield(L, -2, name);
}

void vm_debug_tame(lua_State *L)
{
    lua_getglobal(L, "debug");
    vm_debug_replace(L, "getregistry", vm_debug_registry);
    vm_debug_replace(L, "getupvalue", vm_debug_upvalue);
    vm_debug_replace(L, "setupvalue", vm_debug_upvalue);
    vm_debug_replace(L, "setmetatable", vm_debug_metatable);
    lua_pop(L, 1);
}

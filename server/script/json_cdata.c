#include "script/json_cdata.h"

#include <inttypes.h>
#include <lauxlib.h>
#include <stdio.h>

enum { CDATA_ISTYPE = 1, CDATA_INT64, CDATA_UINT64 };

static char ffi_key;

static void keep_type(lua_State *L, int ffi, int to, const char *name)
{
    lua_getfield(L, ffi, "typeof");
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
    lua_rawseti(L, -2, to);
}

void json_cdata_open(lua_State *L)
{
    lua_getglobal(L, "require");
    lua_pushliteral(L, "ffi");
    lua_call(L, 1, 1);
    int ffi = lua_gettop(L);
    lua_pushlightuserdata(L, &ffi_key);
    lua_createtable(L, CDATA_UINT64, 0);
    lua_getfield(L, ffi, "istype");
    lua_rawseti(L, -2, CDATA_ISTYPE);
    keep_type(L, ffi, CDATA_INT64, "int64_t");
    keep_type(L, ffi, CDATA_UINT64, "uint64_t");
    lua_rawset(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
}

static bool is_type(lua_State *L, int kept, int type, int index)
{
    lua_rawgeti(L, kept, CDATA_ISTYPE);
    lua_rawgeti(L, kept, type);
    lua_pushvalue(L, index);
    lua_call(L, 2, 1);
    bool is = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return is;
}

size_t json_cdata_write(lua_State *L, int index, char to[JSON_CDATA_DIGITS])
{
    if (!lua_checkstack(L, 5)) return 0;
    lua_pushlightuserdata(L, &ffi_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
    int kept = lua_gettop(L), length = 0;
    const void *data = lua_topointer(L, index);
    if (is_type(L, kept, CDATA_INT64, index))
        length = snprintf(to, JSON_CDATA_DIGITS, "%" PRId64, *(const int64_t *)data);
    else if (is_type(L, kept, CDATA_UINT64, index))
        length = snprintf(to, JSON_CDATA_DIGITS, "%" PRIu64, *(const uint64_t *)data);
    lua_pop(L, 1);
    return (size_t)length;
}

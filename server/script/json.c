#include "script/json.h"

#include <lauxlib.h>
#include "script/json_cdata.h"

enum { JSON_KEEP = 64 << 10 };

static char array_key;

struct scratch {
    struct list node;
    struct buf buf;
};

static int free_scratch(lua_State *L)
{
    struct scratch *scratch = lua_touserdata(L, 1);
    list_remove(&scratch->node);
    buf_reset(&scratch->buf);
    return 0;
}

void json_abandon(struct list *scratches)
{
    struct list *node;
    while ((node = list_take(scratches)) != NULL) {
        buf_reset(&list_entry(node, struct scratch, node)->buf);
    }
}

static void new_scratch(lua_State *L)
{
    struct scratch *scratch = lua_newuserdata(L, sizeof *scratch);
    *scratch = (struct scratch){0};
    list_append(lua_touserdata(L, lua_upvalueindex(3)), &scratch->node);
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_setmetatable(L, -2);
}

// Pushes the buffer that encode writes to. It waits for the next call as an upvalue; Lua owns it,
// so that a raised error leaks nothing. Taking it out makes a call safe from finalizers that encode
// in its midst (pushing the result may run them): they find none and make their own.
static struct buf *take_scratch(lua_State *L)
{
    lua_pushvalue(L, lua_upvalueindex(1));
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        new_scratch(L);
    }
    lua_pushnil(L);
    lua_replace(L, lua_upvalueindex(1));
    return &((struct scratch *)lua_touserdata(L, -1))->buf;
}

static void give_scratch(lua_State *L, int index)
{
    struct buf *scratch = &((struct scratch *)lua_touserdata(L, index))->buf;
    scratch->len = 0;
    if (scratch->cap > JSON_KEEP) buf_reset(scratch);
    lua_pushvalue(L, index);
    lua_replace(L, lua_upvalueindex(1));
}

void json_push_array_metatable(lua_State *L)
{
    lua_pushlightuserdata(L, &array_key);
    lua_rawget(L, LUA_REGISTRYINDEX);
}

static int encode(lua_State *L)
{
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    struct buf *out = take_scratch(L);
    const char *error = json_encode(L, 1, out);
    if (!error) lua_pushlstring(L, out->ptr, out->len);
    give_scratch(L, 2);
    return error ? luaL_error(L, "%s", error) : 1;
}

static int decode(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TSTRING);
    lua_settop(L, 1);
    struct slice text;
    text.ptr = lua_tolstring(L, 1, &text.len);
    const char *error = json_decode(L, text);
    if (!error) return 1;
    lua_pushnil(L);
    lua_pushstring(L, error);
    return 2;
}

static int array(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    json_push_array_metatable(L);
    if (!lua_getmetatable(L, 1))
        lua_setmetatable(L, 1);
    else if (!lua_rawequal(L, 2, 3))
        return luaL_argerror(L, 1, "the table has a metatable, it cannot be marked as an array");
    lua_settop(L, 1);
    return 1;
}

int json_open(lua_State *L, struct list *scratches)
{
    static const luaL_Reg functions[] = {{"decode", decode}, {"array", array}, {NULL, NULL}};
    lua_pushlightuserdata(L, &array_key);
    lua_newtable(L);
    lua_rawset(L, LUA_REGISTRYINDEX);
    json_cdata_open(L);

    lua_newtable(L);
    luaL_register(L, NULL, functions);
    lua_pushnil(L);
    lua_newtable(L);
    lua_pushcfunction(L, free_scratch);
    lua_setfield(L, -2, "__gc");
    lua_pushlightuserdata(L, scratches);
    lua_pushcclosure(L, encode, 3);
    lua_setfield(L, -2, "encode");
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    return 1;
}

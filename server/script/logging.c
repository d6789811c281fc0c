#include "script/logging.h"

#include "base/log.h"

// As print would show them: through tostring, with a space between.
static void logging_convert(lua_State *L, int count)
{
    for (int i = 1; i <= count; i++) {
        if (lua_type(L, i) == LUA_TSTRING) continue;
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushvalue(L, i);
        lua_call(L, 1, 1);
        if (!lua_isstring(L, -1)) luaL_error(L, "'tostring' must return a string");
        lua_replace(L, i);
    }
}

static int logging_write(lua_State *L)
{
    int count = lua_gettop(L);
    struct slice text;
    luaL_checkstack(L, 2 * count + 4, "log");
    logging_convert(L, count);
    for (int i = 1; i <= count; i++) {
        if (i > 1) lua_pushliteral(L, " ");
        lua_pushvalue(L, i);
    }
    if (count)
        lua_concat(L, 2 * count - 1);
    else
        lua_pushliteral(L, "");
    text.ptr = lua_tolstring(L, -1, &text.len);
    log_write_slice((enum log_level)lua_tointeger(L, lua_upvalueindex(2)), text);
    return 0;
}

static void logging_add(lua_State *L, const char *name, enum log_level level)
{
    lua_getglobal(L, "tostring");
    lua_pushinteger(L, level);
    lua_pushcclosure(L, logging_write, 2);
    lua_setfield(L, -2, name);
}

void logging_open(lua_State *L, struct vm *vm)
{
    (void)vm;
    lua_newtable(L);
    logging_add(L, "debug", LOG_DEBUG);
    logging_add(L, "info", LOG_INFO);
    logging_add(L, "warn", LOG_WARN);
    logging_add(L, "error", LOG_ERROR);
    lua_setfield(L, -2, "log");
}

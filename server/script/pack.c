#include "script/pack.h"

#include <stdio.h>
#include <string.h>
#include <lauxlib.h>
#include "script/json.h"

enum {
    MAX_DEPTH = 100,
    STACK = 6,           // Lua stack slots that a level takes
    MAX_PREALLOC = 4096, // array slots made ahead
};

enum tag {
    TAG_NIL, // as a key: the end of the table
    TAG_FALSE,
    TAG_TRUE,
    TAG_NULL,
    TAG_NUMBER,
    TAG_STRING,
    TAG_TABLE,
    TAG_ARRAY, // a table marked as an array
};

struct packer {
    lua_State *L;
    struct buf *to;
    size_t end; // `to` must not become longer
    const void *array_mark;
    char *path; // grows to the left
};

static _Thread_local char message[256];
static _Thread_local char path[128];

static bool put_bytes(struct packer *p, const void *bytes, size_t len)
{
    return p->to->len + len <= p->end && buf_append(p->to, bytes, len);
}

static bool put_tag(struct packer *p, enum tag tag)
{
    char byte = (char)tag;
    return put_bytes(p, &byte, 1);
}

static bool put_sized(struct packer *p, enum tag tag, size_t size)
{
    return put_tag(p, tag) && put_bytes(p, &size, sizeof size);
}

static const char too_large[] = "is too large";

static const char *pack_any(struct packer *p, int at, int depth);

static const char *pack_string(struct packer *p, int at)
{
    size_t len;
    const char *text = lua_tolstring(p->L, at, &len);
    return put_sized(p, TAG_STRING, len) && put_bytes(p, text, len) ? NULL : too_large;
}

static const char *pack_number(struct packer *p, int at)
{
    double number = lua_tonumber(p->L, at);
    return put_tag(p, TAG_NUMBER) && put_bytes(p, &number, sizeof number) ? NULL : too_large;
}

// The key at `at` is put before what the path holds already; a path that becomes too long loses its
// beginning.
static void note_key(struct packer *p, int at)
{
    char piece[48];
    int len;

    if (lua_type(p->L, at) == LUA_TSTRING) {
        len = snprintf(piece, sizeof piece, ".%.40s", lua_tostring(p->L, at));
    } else if (lua_type(p->L, at) == LUA_TNUMBER) {
        len = snprintf(piece, sizeof piece, "[%.14g]", lua_tonumber(p->L, at));
    } else {
        len = snprintf(piece, sizeof piece, "[%s]", lua_toboolean(p->L, at) ? "true" : "false");
    }
    if (p->path - path < len) return;
    p->path -= len;
    memcpy(p->path, piece, (size_t)len);
}

// Whether the table has a metatable, which must be the mark of arrays.
static const char *check_metatable(struct packer *p, int at, bool *is_array)
{
    *is_array = false;
    if (!lua_getmetatable(p->L, at)) return NULL;
    const void *is = lua_topointer(p->L, -1);
    lua_pop(p->L, 1);
    *is_array = is == p->array_mark;
    return *is_array ? NULL : "is a table with a metatable";
}

static bool is_item(lua_State *L, int at, size_t items)
{
    if (lua_type(L, at) != LUA_TNUMBER) return false;
    double n = lua_tonumber(L, at);
    return n >= 1 && n <= (double)items && n == (double)(size_t)n;
}

static const char *pack_items(struct packer *p, int at, size_t items, int depth)
{
    for (size_t i = 1; i <= items; i++) {
        lua_rawgeti(p->L, at, (int)i);
        const char *error = pack_any(p, lua_gettop(p->L), depth + 1);
        lua_pop(p->L, 1);
        if (error) {
            lua_pushinteger(p->L, (lua_Integer)i);
            note_key(p, -1);
            lua_pop(p->L, 1);
            return error;
        }
    }
    return NULL;
}

static const char *pack_pair(struct packer *p, int depth)
{
    int key = lua_gettop(p->L) - 1;
    const char *error;

    switch (lua_type(p->L, key)) {
    case LUA_TBOOLEAN:
    case LUA_TNUMBER:
    case LUA_TSTRING: break;
    default: return "has a key that is neither string, number nor boolean";
    }
    error = pack_any(p, key, depth + 1);
    if (!error) error = pack_any(p, key + 1, depth + 1);
    if (error) note_key(p, key);
    return error;
}

static const char *pack_table(struct packer *p, int at, int depth)
{
    size_t items = lua_objlen(p->L, at);
    bool is_array;
    const char *error;

    if (depth >= MAX_DEPTH || !lua_checkstack(p->L, STACK))
        return "is nested too deeply, or contains itself";
    error = check_metatable(p, at, &is_array);
    if (error) return error;
    if (!put_sized(p, is_array ? TAG_ARRAY : TAG_TABLE, items)) return too_large;
    error = pack_items(p, at, items, depth);
    if (error) return error;
    lua_pushnil(p->L);
    while (lua_next(p->L, at)) {
        if (!is_item(p->L, lua_gettop(p->L) - 1, items)) error = pack_pair(p, depth);
        lua_pop(p->L, error ? 2 : 1);
        if (error) return error;
    }
    return put_tag(p, TAG_NIL) ? NULL : too_large;
}

static const char *pack_any(struct packer *p, int at, int depth)
{
    switch (lua_type(p->L, at)) {
    case LUA_TNIL: return put_tag(p, TAG_NIL) ? NULL : too_large;
    case LUA_TBOOLEAN:
        return put_tag(p, lua_toboolean(p->L, at) ? TAG_TRUE : TAG_FALSE) ? NULL : too_large;
    case LUA_TNUMBER: return pack_number(p, at);
    case LUA_TSTRING: return pack_string(p, at);
    case LUA_TTABLE: return pack_table(p, at, depth);
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(p->L, at)) return put_tag(p, TAG_NULL) ? NULL : too_large;
        return "is a pointer";
    case LUA_TFUNCTION: return "is a function";
    case LUA_TTHREAD: return "is a coroutine";
    case LUA_TUSERDATA: return "is a userdata";
    default: return "is a cdata";
    }
}

const char *pack_value(lua_State *L, int index, size_t max, struct buf *to)
{
    size_t before = to->len;
    int top = lua_gettop(L);
    const char *error = "cannot be copied: no memory";
    struct packer p = {.L = L, .to = to, .end = max < SIZE_MAX - before ? before + max : SIZE_MAX};

    if (index < 0) index += top + 1;
    p.path = path + sizeof path - 1;
    if (lua_checkstack(L, STACK)) {
        json_push_array_metatable(L);
        p.array_mark = lua_topointer(L, -1);
        lua_pop(L, 1);
        error = pack_any(&p, index, 0);
    }
    lua_settop(L, top);
    if (!error) return NULL;
    to->len = before;
    snprintf(message, sizeof message, "value%s %s", p.path, error);
    return message;
}

static bool take(struct slice *from, void *to, size_t len)
{
    if (from->len < len) return false;
    memcpy(to, from->ptr, len);
    from->ptr += len;
    from->len -= len;
    return true;
}

static bool push_any(lua_State *L, struct slice *from, int depth);

static bool push_string(lua_State *L, struct slice *from)
{
    size_t len;
    if (!take(from, &len, sizeof len) || from->len < len) return false;
    lua_pushlstring(L, from->ptr, len);
    from->ptr += len;
    from->len -= len;
    return true;
}

static bool push_number(lua_State *L, struct slice *from)
{
    double number;
    if (!take(from, &number, sizeof number)) return false;
    lua_pushnumber(L, number);
    return true;
}

// A nil key ends the pairs.
static bool push_pairs(lua_State *L, struct slice *from, int depth)
{
    while (push_any(L, from, depth)) {
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            return true;
        }
        if (!push_any(L, from, depth)) return false;
        lua_rawset(L, -3);
    }
    return false;
}

static bool push_table(lua_State *L, struct slice *from, bool is_array, int depth)
{
    size_t items;

    if (depth >= MAX_DEPTH || !take(from, &items, sizeof items)) return false;
    luaL_checkstack(L, STACK, "no room to copy a table");
    lua_createtable(L, items < MAX_PREALLOC ? (int)items : MAX_PREALLOC, 0);
    for (size_t i = 1; i <= items; i++) {
        if (!push_any(L, from, depth + 1)) return false;
        lua_rawseti(L, -2, (int)i);
    }
    if (!push_pairs(L, from, depth + 1)) return false;
    if (is_array) {
        json_push_array_metatable(L);
        lua_setmetatable(L, -2);
    }
    return true;
}

static bool push_any(lua_State *L, struct slice *from, int depth)
{
    uint8_t tag;

    if (!take(from, &tag, sizeof tag)) return false;
    switch ((enum tag)tag) {
    case TAG_NIL: lua_pushnil(L); return true;
    case TAG_FALSE:
    case TAG_TRUE: lua_pushboolean(L, tag == TAG_TRUE); return true;
    case TAG_NULL: lua_pushlightuserdata(L, NULL); return true;
    case TAG_NUMBER: return push_number(L, from);
    case TAG_STRING: return push_string(L, from);
    case TAG_TABLE:
    case TAG_ARRAY: return push_table(L, from, tag == TAG_ARRAY, depth);
    }
    return false;
}

bool pack_push(lua_State *L, struct slice *from)
{
    int top = lua_gettop(L);
    luaL_checkstack(L, STACK, "no room to copy a value");
    if (push_any(L, from, 0)) return true;
    lua_settop(L, top);
    return false;
}

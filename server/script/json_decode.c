#include "script/json.h"

#include <stdio.h>
#include "text/json.h"

// DECODE_ROOM: tables are made with room for so many at once, unless they are empty.
enum { DECODE_ROOM = 4, DECODE_OBJECT = -1, DECODE_SCRATCH = 1024 };

struct decoder {
    lua_State *L;
    struct json_reader reader;
    int array; // where the metatable of arrays is on the stack
    int depth;
    int lengths[JSON_MAX_DEPTH + 1]; // of the open arrays; DECODE_OBJECT for objects
};

static _Thread_local char message[128];

// The value at the top goes where it belongs: the container is below it, or the key between them.
static void store(struct decoder *d)
{
    if (d->depth == 0) return;
    int *length = &d->lengths[d->depth];
    if (*length == DECODE_OBJECT)
        lua_rawset(d->L, -3);
    else
        lua_rawseti(d->L, -2, ++*length);
}

static bool is_next(const struct json_reader *r, char c)
{
    return r->at < r->text.len && r->text.ptr[r->at] == c;
}

static bool open_table(struct decoder *d, bool is_object)
{
    lua_State *L = d->L;
    if (!lua_checkstack(L, 4)) return false;
    int room = is_next(&d->reader, is_object ? '}' : ']') ? 0 : DECODE_ROOM;
    lua_createtable(L, is_object ? 0 : room, is_object ? room : 0);
    if (!is_object) {
        if (lua_isnil(L, d->array)) {
            json_push_array_metatable(L);
            lua_replace(L, d->array);
        }
        lua_pushvalue(L, d->array);
        lua_setmetatable(L, -2);
    }
    d->lengths[++d->depth] = is_object ? DECODE_OBJECT : 0;
    return true;
}

// Pushes what a token that is a whole value means.
static void push_scalar(struct decoder *d, enum json_token token)
{
    const struct json_reader *r = &d->reader;
    switch (token) {
    case JSON_STRING: lua_pushlstring(d->L, r->string.ptr, r->string.len); break;
    case JSON_NUMBER_TOKEN: lua_pushnumber(d->L, r->number); break;
    case JSON_NULL: lua_pushlightuserdata(d->L, NULL); break;
    default: lua_pushboolean(d->L, token == JSON_TRUE); break;
    }
    store(d);
}

static const char *explain(const struct json_reader *r)
{
    if (r->error == json_no_memory) return json_no_memory;
    snprintf(message, sizeof message, "invalid JSON: %s at byte %zu", r->error, r->at + 1);
    return message;
}

static const char *push_value(struct decoder *d)
{
    for (;;) {
        enum json_token token = json_read_next(&d->reader);
        switch (token) {
        case JSON_END: return NULL;
        case JSON_INVALID: return explain(&d->reader);
        case JSON_OBJECT_OPEN:
        case JSON_ARRAY_OPEN:
            if (!open_table(d, token == JSON_OBJECT_OPEN)) return json_no_memory;
            break;
        case JSON_OBJECT_CLOSE:
        case JSON_ARRAY_CLOSE:
            d->depth--;
            store(d);
            break;
        case JSON_KEY: lua_pushlstring(d->L, d->reader.string.ptr, d->reader.string.len); break;
        default: push_scalar(d, token);
        }
    }
}

// Strings that need unescaping never become longer than the text, so a scratch of its size is never
// grown, and Lua can own it: a raised error leaks nothing.
const char *json_decode(lua_State *L, struct slice text)
{
    int top = lua_gettop(L);
    char scratch[DECODE_SCRATCH];
    struct decoder d = {.L = L, .array = top + 1};
    if (!lua_checkstack(L, 6)) return json_no_memory;
    lua_pushnil(L);
    json_read_init(&d.reader, text);
    if (text.len <= sizeof scratch)
        d.reader.scratch = (struct buf){scratch, 0, sizeof scratch};
    else if (memchr(text.ptr, '\\', text.len))
        d.reader.scratch = (struct buf){lua_newuserdata(L, text.len), 0, text.len};
    const char *error = push_value(&d);
    if (error) {
        lua_settop(L, top);
        return error;
    }
    lua_replace(L, d.array);
    lua_settop(L, d.array);
    return NULL;
}

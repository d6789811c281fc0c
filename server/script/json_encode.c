#include "script/json.h"

#include <lauxlib.h>
#include <math.h>
#include <stdio.h>
#include "script/json_cdata.h"
#include "text/json.h"

// A table that contains another twice, and that a third twice, and so on, writes without end unless
// there is a most.
enum { ENCODE_MOST = 1 << 30, ENCODE_PATH = 300, ENCODE_NAME = 40 };

struct encoder {
    lua_State *L;
    struct buf *to;
    size_t start;
    unsigned depth;
    bool has_array;
    const void *array; // the metatable of arrays
};

// How a value was reached, for messages: under a key (on the Lua stack) or at a place of an array.
struct place {
    const struct place *up;
    int key; // 0: `number` counts
    int number;
};

static _Thread_local char message[128 + ENCODE_PATH + ENCODE_NAME];

static bool is_name(const char *s, size_t len)
{
    if (len == 0 || len > ENCODE_NAME || (*s >= '0' && *s <= '9')) return false;
    for (; len; s++, len--) {
        bool is_letter = (*s | 0x20) >= 'a' && (*s | 0x20) <= 'z';
        if (!is_letter && *s != '_' && (*s < '0' || *s > '9')) return false;
    }
    return true;
}

static size_t print_key(char *to, const char *s, size_t len)
{
    if (is_name(s, len)) return (size_t)sprintf(to, ".%.*s", (int)len, s);
    size_t n = (size_t)sprintf(to, "[\"");
    for (size_t i = 0; i < len && i < ENCODE_NAME - 8; i++)
        to[n++] = s[i] < 0x20 || s[i] > 0x7E || s[i] == '"' ? '?' : s[i];
    return n + (size_t)sprintf(to + n, len > ENCODE_NAME - 8 ? "...\"]" : "\"]");
}

// From the outside inwards; what does not fit is left away, as the beginning tells more.
static size_t print_path(lua_State *L, const struct place *place, char *to)
{
    if (!place) return 0;
    size_t n = print_path(L, place->up, to), len;
    if (n >= ENCODE_PATH) return n;
    if (!place->key) {
        n += (size_t)sprintf(to + n, "[%d]", place->number);
    } else {
        const char *key = lua_tolstring(L, place->key, &len);
        n += print_key(to + n, key, len);
    }
    if (n >= ENCODE_PATH) n += (size_t)sprintf(to + n, "...");
    return n;
}

static const char *refuse(struct encoder *e, const struct place *place, const char *what)
{
    char path[ENCODE_PATH + ENCODE_NAME + 16];
    path[print_path(e->L, place, path)] = 0;
    snprintf(message, sizeof message, "cannot encode %s%s%s", what, place ? " at " : "", path);
    return message;
}

static const char *refuse_key(struct encoder *e, const struct place *place, int key)
{
    char what[64];
    if (lua_type(e->L, key) == LUA_TNUMBER)
        snprintf(what, sizeof what, "a table with a number key other than 1 to n");
    else
        snprintf(what, sizeof what, "a table with a %s as key", luaL_typename(e->L, key));
    return refuse(e, place, what);
}

static const char *put(struct encoder *e, const char *bytes, size_t len)
{
    return buf_append(e->to, bytes, len) ? NULL : json_no_memory;
}

static const char *put_string(struct encoder *e, int at, const struct place *place)
{
    struct slice s;
    s.ptr = lua_tolstring(e->L, at, &s.len);
    switch (json_write_string(e->to, s)) {
    case JSON_OK: return NULL;
    case JSON_BAD_UTF8: return refuse(e, place, "a string that is not UTF-8");
    default: return json_no_memory;
    }
}

static const char *put_number(struct encoder *e, int at, const struct place *place)
{
    double value = lua_tonumber(e->L, at);
    if (isnan(value)) return refuse(e, place, "nan");
    if (isinf(value)) return refuse(e, place, value > 0 ? "inf" : "-inf");
    char *to = buf_reserve(e->to, JSON_NUMBER);
    if (!to) return json_no_memory;
    e->to->len += json_write_number(to, value);
    return NULL;
}

static const char *put_cdata(struct encoder *e, int at, const struct place *place)
{
    char digits[JSON_CDATA_DIGITS];
    size_t len = json_cdata_write(e->L, at, digits);
    if (len == 0) return refuse(e, place, "a cdata other than a 64-bit integer");
    return put(e, digits, len);
}

static const char *put_value(struct encoder *e, int at, const struct place *place);

static bool is_marked(struct encoder *e, int at)
{
    if (!lua_getmetatable(e->L, at)) return false;
    if (!e->has_array) {
        json_push_array_metatable(e->L);
        e->array = lua_topointer(e->L, -1);
        e->has_array = true;
        lua_pop(e->L, 1);
    }
    bool is = lua_topointer(e->L, -1) == e->array;
    lua_pop(e->L, 1);
    return is;
}

// Why the table is no array, or NULL and its length.
static const char *count_array(struct encoder *e, int at, const struct place *place, int *length)
{
    lua_State *L = e->L;
    double most = 0, count = 0;
    for (lua_pushnil(L); lua_next(L, at); count++) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING)
            return refuse(e, place, "a table that mixes an array with string keys");
        double key = lua_type(L, -1) == LUA_TNUMBER ? lua_tonumber(L, -1) : 0;
        if (key < 1 || key != floor(key)) return refuse_key(e, place, -1);
        if (key > most) most = key;
    }
    if (most != count) return refuse(e, place, "a sparse array");
    *length = (int)count;
    return NULL;
}

// The keys from `next` on do not come in order, or are none of an array's.
static const char *put_array_rest(struct encoder *e, int at, const struct place *place, int next)
{
    int length = 0;
    const char *error = count_array(e, at, place, &length);
    struct place inner = {place, 0, next};
    for (; !error && inner.number <= length; inner.number++) {
        error = put(e, inner.number == 1 ? "[" : ",", 1);
        lua_rawgeti(e->L, at, inner.number);
        if (!error) error = put_value(e, lua_gettop(e->L), &inner);
        lua_pop(e->L, 1);
    }
    return error ? error : put(e, "]", 1);
}

// The first key and value are on the stack. Arrays mostly come in order, and then one pass will do.
static const char *put_array(struct encoder *e, int at, const struct place *place)
{
    lua_State *L = e->L;
    int value = lua_gettop(L), key = value - 1;
    struct place inner = {place, 0, 1};
    do {
        if (lua_type(L, key) != LUA_TNUMBER || lua_tonumber(L, key) != inner.number) {
            lua_pop(L, 2);
            return put_array_rest(e, at, place, inner.number);
        }
        const char *error = put(e, inner.number == 1 ? "[" : ",", 1);
        if (!error) error = put_value(e, value, &inner);
        if (error) return error;
        lua_pop(L, 1);
        inner.number++;
    } while (lua_next(L, at));
    return put(e, "]", 1);
}

static const char *put_object(struct encoder *e, int at, const struct place *place)
{
    lua_State *L = e->L;
    int value = lua_gettop(L), key = value - 1;
    struct place inner = {place, key, 0};
    const char *before = "{";
    do {
        int type = lua_type(L, key);
        if (type == LUA_TNUMBER)
            return refuse(e, place, "a table that mixes string keys with number keys");
        if (type != LUA_TSTRING) return refuse_key(e, place, key);
        const char *error = put(e, before, 1);
        if (!error) error = put_string(e, key, &inner);
        if (!error) error = put(e, ":", 1);
        if (!error) error = put_value(e, value, &inner);
        if (error) return error;
        lua_pop(L, 1);
        before = ",";
    } while (lua_next(L, at));
    return put(e, "}", 1);
}

static const char *put_table(struct encoder *e, int at, const struct place *place)
{
    lua_State *L = e->L;
    if (e->depth == JSON_MAX_DEPTH)
        return refuse(e, place, "a table nested deeper than 128 (a cycle?)");
    if (e->to->len - e->start > ENCODE_MOST) return refuse(e, place, "more than 1 GiB");
    if (!lua_checkstack(L, 4)) return json_no_memory;
    bool is_array = is_marked(e, at);
    lua_pushnil(L);
    if (!lua_next(L, at)) return put(e, is_array ? "[]" : "{}", 2);
    e->depth++;
    const char *error = is_array || lua_type(L, -2) == LUA_TNUMBER ? put_array(e, at, place)
                                                                   : put_object(e, at, place);
    e->depth--;
    return error;
}

static const char *put_value(struct encoder *e, int at, const struct place *place)
{
    lua_State *L = e->L;
    switch (lua_type(L, at)) {
    case LUA_TSTRING: return put_string(e, at, place);
    case LUA_TNUMBER: return put_number(e, at, place);
    case LUA_TTABLE: return put_table(e, at, place);
    case LUA_TBOOLEAN: return lua_toboolean(L, at) ? put(e, "true", 4) : put(e, "false", 5);
    case LUA_TNIL: return put(e, "null", 4);
    case LUA_TLIGHTUSERDATA:
        if (!lua_touserdata(L, at)) return put(e, "null", 4);
        return refuse(e, place, "a userdata");
    case LUA_TFUNCTION: return refuse(e, place, "a function");
    case LUA_TTHREAD: return refuse(e, place, "a thread");
    case JSON_CDATA_TYPE: return put_cdata(e, at, place);
    default: return refuse(e, place, "a userdata");
    }
}

const char *json_encode(lua_State *L, int index, struct buf *to)
{
    int top = lua_gettop(L);
    struct encoder e = {.L = L, .to = to, .start = to->len};
    if (index < 0) index += top + 1;
    const char *error = put_value(&e, index, NULL);
    if (error) to->len = e.start;
    lua_settop(L, top);
    return error;
}

#include <string.h>
#include "script/result.h"

// The fields that the protocol writes by itself, or that speak of the connection.
static const struct slice result_reserved[] = {
    SLICE_INIT("connection"), SLICE_INIT("date"),    SLICE_INIT("keep-alive"),
    SLICE_INIT("te"),         SLICE_INIT("trailer"), SLICE_INIT("transfer-encoding"),
    SLICE_INIT("upgrade"),
};

static bool result_is_reserved(struct slice name)
{
    for (size_t i = 0; i < sizeof result_reserved / sizeof *result_reserved; i++)
        if (slice_equals(name, result_reserved[i])) return true;
    return false;
}

static void result_drop_header(struct headers *h, struct slice name)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->count; i++)
        if (!slice_equals(h->items[i].name, name)) h->items[kept++] = h->items[i];
    h->count = kept;
}

// Texts made on the way are kept in the table at `anchor`.
static struct slice result_anchored(lua_State *L, int anchor)
{
    struct slice s;
    s.ptr = lua_tolstring(L, -1, &s.len);
    lua_rawseti(L, anchor, (int)lua_objlen(L, anchor) + 1);
    return s;
}

static struct slice result_lower_name(lua_State *L, int index, int anchor)
{
    char lower[256];
    struct slice s;
    bool has_upper = false;
    s.ptr = lua_tolstring(L, index, &s.len);
    for (size_t i = 0; i < s.len && i < sizeof lower; i++) {
        bool is_upper = s.ptr[i] >= 'A' && s.ptr[i] <= 'Z';
        lower[i] = is_upper ? (char)(s.ptr[i] + 32) : s.ptr[i];
        has_upper |= is_upper;
    }
    if (!has_upper) return s;
    lua_pushlstring(L, lower, s.len);
    return result_anchored(L, anchor);
}

static bool result_add_value(lua_State *L, int index, int anchor, struct headers *h,
                             struct slice name)
{
    struct slice value;
    int type = lua_type(L, index);
    if (type != LUA_TSTRING && type != LUA_TNUMBER) {
        lua_pushfstring(L, "header %s is a %s; a string, a number or a list of them is needed",
                        name.ptr, lua_typename(L, type));
        return false;
    }
    if (type == LUA_TNUMBER) {
        lua_pushvalue(L, index);
        value = result_anchored(L, anchor);
    } else {
        value.ptr = lua_tolstring(L, index, &value.len);
    }
    if (!headers_is_value(value)) {
        lua_pushfstring(L, "the value of header %s holds a control byte (CR, LF, NUL…)", name.ptr);
        return false;
    }
    if (h->count == RESULT_MAX_HEADERS) {
        lua_pushfstring(L, "a reply has more than %d header fields", RESULT_MAX_HEADERS);
        return false;
    }
    h->items[h->count++] = (struct header){name, value};
    return true;
}

static bool result_add_list(lua_State *L, int index, int anchor, struct headers *h,
                            struct slice name)
{
    int count = (int)lua_objlen(L, index);
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(L, index, i);
        if (!result_add_value(L, lua_gettop(L), anchor, h, name)) return false;
        lua_pop(L, 1); // the list keeps the text alive
    }
    return true;
}

static bool result_take_length(lua_State *L, int index, int64_t *length)
{
    lua_Number n = lua_tonumber(L, index);
    if (!lua_isnumber(L, index) || n < 0 || n > 9007199254740992.0 || n != (lua_Number)(int64_t)n) {
        lua_pushliteral(L, "header content-length is no whole number");
        return false;
    }
    *length = (int64_t)n;
    return true;
}

// The pair at the top of the stack: name, value.
static bool result_add_pair(lua_State *L, int anchor, struct headers *h, int64_t *length)
{
    int name_index = lua_gettop(L) - 1, value_index = name_index + 1;
    if (lua_type(L, name_index) != LUA_TSTRING) {
        lua_pushfstring(L, "the name of a header is a %s; headers are { name = value }",
                        luaL_typename(L, name_index));
        return false;
    }
    size_t raw_len;
    const char *raw = lua_tolstring(L, name_index, &raw_len);
    if (raw_len > 256 || !headers_is_name(slice_of(raw, raw_len))) {
        lua_pushfstring(L, "\"%s\" is no name for a header", raw);
        return false;
    }
    struct slice name = result_lower_name(L, name_index, anchor);
    if (slice_equals(name, SLICE("content-length")))
        return result_take_length(L, value_index, length);
    if (result_is_reserved(name)) {
        lua_pushfstring(L, "header %s is the server's own; leave it out", name.ptr);
        return false;
    }
    result_drop_header(h, name);
    return lua_type(L, value_index) == LUA_TTABLE
               ? result_add_list(L, value_index, anchor, h, name)
               : result_add_value(L, value_index, anchor, h, name);
}

bool result_add_headers(lua_State *L, int index, struct headers *h, int64_t *length)
{
    if (index < 0) index = lua_gettop(L) + 1 + index;
    luaL_checkstack(L, 8, "headers");
    lua_newtable(L);
    int anchor = lua_gettop(L);
    lua_pushnil(L);
    while (lua_next(L, index)) {
        if (!result_add_pair(L, anchor, h, length)) return false;
        lua_settop(L, anchor + 1);
    }
    return true;
}

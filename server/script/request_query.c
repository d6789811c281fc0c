#include "script/request.h"

#include "text/url.h"

static int request_hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// As browsers do it: an escape that is none stays as it is (WHATWG URL, percent-decode).
static size_t request_decode_leniently(char *to, struct slice s)
{
    size_t len = 0;
    for (size_t i = 0; i < s.len; i++) {
        int high = -1, low = -1;
        if (s.ptr[i] == '%' && i + 2 < s.len) {
            high = request_hex(s.ptr[i + 1]);
            low = request_hex(s.ptr[i + 2]);
        }
        if (high >= 0 && low >= 0) {
            to[len++] = (char)(high << 4 | low);
            i += 2;
        } else {
            to[len++] = s.ptr[i] == '+' ? ' ' : s.ptr[i];
        }
    }
    return len;
}

// Pushes the text of a query, decoded.
static void request_push_decoded(lua_State *L, struct vm *vm, struct slice s)
{
    if (!s.len || (!memchr(s.ptr, '%', s.len) && !memchr(s.ptr, '+', s.len))) {
        request_push_slice(L, s);
        return;
    }
    vm->scratch.len = 0;
    char *to = buf_reserve(&vm->scratch, s.len);
    if (!to) luaL_error(L, "not enough memory");
    long len = url_decode(to, s, true);
    lua_pushlstring(L, to, len < 0 ? request_decode_leniently(to, s) : (size_t)len);
}

// core.request_query(req): name → its first value
static int request_query(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct exchange *x = request_arg(L);
    if (!x) return 0;
    struct slice rest = x->request.query, name, value;
    lua_newtable(L);
    int table = lua_gettop(L);
    while (url_next_pair(&rest, &name, &value)) {
        request_push_decoded(L, vm, name);
        lua_pushvalue(L, -1);
        lua_rawget(L, table);
        bool is_first = lua_isnil(L, -1);
        lua_pop(L, 1);
        if (is_first) {
            request_push_decoded(L, vm, value);
            lua_rawset(L, table);
        } else {
            lua_pop(L, 1);
        }
    }
    return 1;
}

// core.request_query_all(req, name): the list of all its values
static int request_query_all(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct exchange *x = request_arg(L);
    luaL_checktype(L, 2, LUA_TSTRING);
    if (!x) return 0;
    struct slice rest = x->request.query, name, value;
    int count = 0;
    lua_newtable(L);
    int table = lua_gettop(L);
    while (url_next_pair(&rest, &name, &value)) {
        request_push_decoded(L, vm, name);
        if (lua_rawequal(L, -1, 2)) {
            request_push_decoded(L, vm, value);
            lua_rawseti(L, table, ++count);
        }
        lua_pop(L, 1);
    }
    return 1;
}

// The next `name=value` of a Cookie field; pairs without a name or without '=' are passed over.
static bool request_next_cookie(struct slice *rest, struct slice *name, struct slice *value)
{
    while (rest->len) {
        const char *end = memchr(rest->ptr, ';', rest->len);
        struct slice pair = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
        *rest = slice_from(*rest, end ? pair.len + 1 : pair.len);
        const char *equals = pair.len ? memchr(pair.ptr, '=', pair.len) : NULL;
        if (!equals) continue;
        *name = slice_trim(slice_of(pair.ptr, (size_t)(equals - pair.ptr)));
        *value = slice_trim(slice_from(pair, (size_t)(equals + 1 - pair.ptr)));
        if (name->len) return true;
    }
    return false;
}

// The first of a name is the one with the longest path (RFC 6265 5.4). Values stay as they were
// sent, quotes and escapes included.
static void request_set_cookie(lua_State *L, struct slice name, struct slice value)
{
    int table = lua_gettop(L);
    request_push_slice(L, name);
    lua_pushvalue(L, -1);
    lua_rawget(L, table);
    bool is_first = lua_isnil(L, -1);
    lua_pop(L, 1);
    if (is_first) {
        request_push_slice(L, value);
        lua_rawset(L, table);
    }
    lua_settop(L, table);
}

// core.request_cookies(req): name → value
static int request_cookies(lua_State *L)
{
    struct exchange *x = request_arg(L);
    if (!x) return 0;
    const struct headers *h = &x->request.headers;
    lua_newtable(L);
    for (uint32_t i = 0; i < h->count; i++) {
        struct slice rest = h->items[i].value, name, value;
        if (!slice_equals(h->items[i].name, SLICE("cookie"))) continue;
        while (request_next_cookie(&rest, &name, &value)) request_set_cookie(L, name, value);
    }
    return 1;
}

void request_query_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {{"request_query", request_query},
                                         {"request_query_all", request_query_all},
                                         {"request_cookies", request_cookies},
                                         {NULL, NULL}};
    vm_register(L, vm, functions);
}

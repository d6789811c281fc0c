#include "script/request.h"

#include "serve/router.h"
#include "text/url.h"

static void request_push_params(lua_State *L, const struct exchange *x)
{
    const struct route *route = x->route;
    lua_createtable(L, 0, (int)route->param_count);
    for (unsigned i = 0; i < route->param_count; i++) {
        lua_pushlstring(L, route->param_names[i].ptr, route->param_names[i].len);
        lua_pushlstring(L, x->params[i].ptr, x->params[i].len);
        lua_rawset(L, -3);
    }
}

void request_push(lua_State *L, struct vm *vm, struct exchange *x, double handle)
{
    bool has_params = x->route && x->route->param_count;
    lua_createtable(L, 2, has_params);
    lua_pushnumber(L, handle);
    lua_rawseti(L, -2, 1);
    if (has_params) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_PARAMS]);
        request_push_params(L, x);
        lua_rawset(L, -3);
    }
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_REQUEST]);
    lua_setmetatable(L, -2);
}

static int request_method(lua_State *L)
{
    struct exchange *x = request_arg(L);
    return x ? request_push_slice(L, x->request.method_name) : 0;
}

static int request_target(lua_State *L)
{
    struct exchange *x = request_arg(L);
    return x ? request_push_slice(L, x->request.target) : 0;
}

// The router has refused malformed escapes already.
static int request_path(lua_State *L)
{
    struct exchange *x = request_arg(L);
    if (!x) return 0;
    struct slice path = x->request.path;
    if (!memchr(path.ptr, '%', path.len)) return request_push_slice(L, path);
    char *to = arena_alloc(&x->arena, path.len);
    long len = to ? url_decode(to, path, false) : -1;
    return request_push_slice(L, len < 0 ? path : slice_of(to, (size_t)len));
}

static int request_id(lua_State *L)
{
    char id[EXCHANGE_ID];
    struct exchange *x = request_arg(L);
    if (!x) return 0;
    exchange_id(x, id);
    return request_push_slice(L, slice_of(id, EXCHANGE_ID));
}

// Several fields of a name are one list (RFC 9110 5.3); of cookies, joined as HTTP/2 does it.
static void request_set_header(lua_State *L, const struct header *header)
{
    int table = lua_gettop(L);
    bool is_cookie = slice_equals(header->name, SLICE("cookie"));
    request_push_slice(L, header->name);
    lua_pushvalue(L, -1);
    lua_rawget(L, table);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        request_push_slice(L, header->value);
    } else {
        lua_pushstring(L, is_cookie ? "; " : ", ");
        request_push_slice(L, header->value);
        lua_concat(L, 3);
    }
    lua_rawset(L, table);
}

static int request_headers(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct exchange *x = request_arg(L);
    if (!x) return 0;
    const struct headers *h = &x->request.headers;
    lua_createtable(L, 0, (int)h->count);
    for (uint32_t i = 0; i < h->count; i++) request_set_header(L, &h->items[i]);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_FIELDS]);
    lua_setmetatable(L, -2);
    return 1;
}

// core.request_header(req, name): the first field of that lower-case name, or nil.
static int request_header(lua_State *L)
{
    struct exchange *x = request_arg(L);
    struct slice name;
    name.ptr = luaL_checklstring(L, 2, &name.len);
    const struct header *header = x ? headers_find(&x->request.headers, name) : NULL;
    return header ? request_push_slice(L, header->value) : 0;
}

// core.request_meta(metatable): that of every request.
static int request_meta(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    vm_of(L)->refs[VM_REF_REQUEST] = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

void request_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {
        {"request_method", request_method},   {"request_target", request_target},
        {"request_path", request_path},       {"request_id", request_id},
        {"request_headers", request_headers}, {"request_header", request_header},
        {"request_meta", request_meta},       {NULL, NULL}};
    lua_pushliteral(L, "params");
    vm->refs[VM_REF_PARAMS] = luaL_ref(L, LUA_REGISTRYINDEX);
    vm_register(L, vm, functions);
    request_query_open(L, vm);
    request_body_open(L, vm);
    request_peer_open(L, vm);
}

// Nothing that can raise is called while a dictionary is locked or a buffer is borrowed.
#include "script/shared.h"

#include <math.h>
#include <uv.h>
#include "script/pack.h"
#include "serve/shared.h"

enum { SMALL = 1024 }; // values up to that size are read without an allocation of their own

static uint64_t now_of(const struct vm *vm)
{
    return vm->loop ? vm->loop->now : uv_hrtime() / 1000000;
}

static struct shared_dict *dict_arg(lua_State *L)
{
    if (lua_type(L, 1) != LUA_TLIGHTUSERDATA) luaL_error(L, "not a dictionary of photon.shared");
    return lua_touserdata(L, 1);
}

static struct slice key_arg(lua_State *L)
{
    struct slice key;
    int type = lua_type(L, 2);
    if (type != LUA_TSTRING && type != LUA_TNUMBER) {
        luaL_error(L, "a key of photon.shared is a string or a number, not %s",
                   luaL_typename(L, 2));
    }
    key.ptr = lua_tolstring(L, 2, &key.len);
    return key;
}

static uint64_t ttl_arg(lua_State *L, int index)
{
    double seconds = lua_tonumber(L, index);
    if (lua_isnoneornil(L, index)) return 0;
    if (lua_type(L, index) != LUA_TNUMBER || !(seconds > 0)) {
        luaL_error(L, "ttl is a number of seconds above 0");
    }
    return seconds < 1e12 ? (uint64_t)ceil(seconds * 1000) : 0;
}

// The value at `index`; packed bytes stand in the VM's scratch until the next call.
static struct shared_value value_arg(lua_State *L, struct vm *vm, int index)
{
    struct shared_value value = {.kind = SHARED_PACKED};
    const char *error;

    switch (lua_type(L, index)) {
    case LUA_TBOOLEAN:
        value.kind = lua_toboolean(L, index) ? SHARED_TRUE : SHARED_FALSE;
        return value;
    case LUA_TNUMBER:
        value.kind = SHARED_NUMBER;
        value.number = lua_tonumber(L, index);
        return value;
    case LUA_TSTRING:
        value.kind = SHARED_STRING;
        value.bytes.ptr = lua_tolstring(L, index, &value.bytes.len);
        return value;
    case LUA_TNIL:
    case LUA_TNONE: luaL_error(L, "a value of photon.shared cannot be nil: use delete"); break;
    default: break;
    }
    vm->scratch.len = 0;
    error = pack_value(L, index, (size_t)vm->limits->shared_memory, &vm->scratch);
    if (error) luaL_error(L, "photon.shared copies plain values only: %s", error);
    value.bytes = buf_slice(&vm->scratch);
    return value;
}

// What came out of a write: true, or nil and why.
static int push_result(lua_State *L, enum shared_result result)
{
    static const char *const why[] = {[SHARED_FULL] = "full",
                                      [SHARED_EXISTS] = "exists",
                                      [SHARED_CHANGED] = "changed",
                                      [SHARED_NOT_NUMBER] = "not a number"};
    if (result == SHARED_OK) {
        lua_pushboolean(L, true);
        return 1;
    }
    lua_pushnil(L);
    lua_pushstring(L, why[result]);
    return 2;
}

// shared_dict(name) → dictionary, or nil, "full"
static int lua_dict(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct slice name;
    struct shared_dict *d;

    if (lua_type(L, 1) != LUA_TSTRING) return luaL_error(L, "photon.shared takes a name");
    name.ptr = lua_tolstring(L, 1, &name.len);
    if (name.len == 0 || name.len > SHARED_MAX_NAME) {
        return luaL_error(L, "a name of photon.shared has 1 to %d bytes", SHARED_MAX_NAME);
    }
    d = shared_open(name, vm->limits->shared_memory);
    if (!d) return push_result(L, SHARED_FULL);
    lua_pushlightuserdata(L, d);
    return 1;
}

static void push_value(lua_State *L, const struct shared_read *read)
{
    struct slice bytes = {read->to, read->len};
    switch (read->kind) {
    case SHARED_FALSE:
    case SHARED_TRUE: lua_pushboolean(L, read->kind == SHARED_TRUE); return;
    case SHARED_NUMBER: lua_pushnumber(L, read->number); return;
    case SHARED_STRING: lua_pushlstring(L, bytes.ptr, bytes.len); return;
    case SHARED_PACKED:
        if (!pack_push(L, &bytes)) luaL_error(L, "photon.shared: a broken value");
        return;
    case SHARED_NOTHING: lua_pushnil(L); return;
    }
}

// shared_get(dictionary, key) → value or nil, version
static int lua_get(lua_State *L)
{
    char small[SMALL];
    struct shared_dict *d = dict_arg(L);
    struct slice key = key_arg(L);
    uint64_t now = now_of(vm_of(L));
    struct shared_read read = {.to = small, .room = sizeof small};

    shared_get(d, key, now, &read);
    while (read.len > read.room) { // it may have grown again meanwhile
        read.room = read.len;
        read.to = lua_newuserdata(L, read.room);
        shared_get(d, key, now, &read);
    }
    push_value(L, &read);
    lua_pushnumber(L, (double)read.version);
    return 2;
}

// shared_put(dictionary, key, value, mode, ttl, version) → true, or nil and "full", "exists" or
// "changed"; mode: 0 set, 1 add, 2 swap if still of that version
static int lua_put(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct shared_dict *d = dict_arg(L);
    struct slice key = key_arg(L);
    struct shared_terms terms = {.mode = (enum shared_mode)lua_tointeger(L, 4),
                                 .now = now_of(vm),
                                 .ttl = ttl_arg(L, 5),
                                 .limit = vm->limits->shared_memory,
                                 .version = (uint64_t)lua_tonumber(L, 6)};
    terms.keeps_ttl = terms.mode == SHARED_SWAP && !terms.ttl;
    struct shared_value value = value_arg(L, vm, 3);
    return push_result(L, shared_put(d, key, &value, &terms));
}

// shared_incr(dictionary, key, by, init, ttl) → the new number, or nil and why
static int lua_incr(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct shared_dict *d = dict_arg(L);
    struct slice key = key_arg(L);
    double by = luaL_optnumber(L, 3, 1), init = luaL_optnumber(L, 4, 0), sum = 0;
    struct shared_terms terms = {
        .now = now_of(vm), .ttl = ttl_arg(L, 5), .limit = vm->limits->shared_memory};
    enum shared_result result = shared_increment(d, key, by, init, &terms, &sum);
    if (result != SHARED_OK) return push_result(L, result);
    lua_pushnumber(L, sum);
    return 1;
}

// shared_delete(dictionary, key, [version]) → whether one was deleted (of that version)
static int lua_delete(lua_State *L)
{
    struct shared_dict *d = dict_arg(L);
    struct slice key = key_arg(L);
    uint64_t version = (uint64_t)lua_tonumber(L, 3);
    lua_pushboolean(L, shared_delete(d, key, now_of(vm_of(L)), version));
    return 1;
}

void shared_lua_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {
        {"shared_dict", lua_dict}, {"shared_get", lua_get},       {"shared_put", lua_put},
        {"shared_incr", lua_incr}, {"shared_delete", lua_delete}, {NULL, NULL},
    };
    vm_register(L, vm, functions);
}

#include "script/result_read.h"

#include <stdio.h>
#include "script/task.h"

enum { RESULT_KEEP = 1 << 18 };

// One big reply must not hold its memory for ever.
static void result_trim_scratch(struct vm *vm)
{
    if (vm->scratch.cap > RESULT_KEEP) buf_reset(&vm->scratch);
}

static void result_remember_if_failed(lua_State *L, struct vm *vm, struct exchange *x,
                                      const struct outcome *o)
{
    if (vm->is_testing && o->error && result_kind_of(L, vm, o->error) == RESULT_FAILURE)
        result_remember_failure(L, vm, o->error, x);
}

static void result_send(struct exchange *x, struct outcome *o)
{
    char id[EXCHANGE_ID];
    struct reply reply = {.status = o->status, .headers = o->headers};
    struct headers *h = &reply.headers;
    if (!headers_find(h, SLICE("x-request-id")) && h->count < RESULT_MAX_HEADERS) {
        exchange_id(x, id);
        h->items[h->count++] = (struct header){SLICE("x-request-id"), slice_of(id, EXCHANGE_ID)};
    }
    exchange_reply(x, &reply, o->body);
}

// A second field of a name makes a list of its value. The table is on top of the stack.
static void result_push_header(lua_State *L, const struct header *header)
{
    int table = lua_gettop(L);
    lua_pushlstring(L, header->name.ptr, header->name.len);
    lua_pushvalue(L, -1);
    lua_rawget(L, table);
    if (lua_isstring(L, -1)) {
        lua_createtable(L, 2, 0);
        lua_insert(L, -2);
        lua_rawseti(L, -2, 1);
    }
    if (lua_istable(L, -1)) {
        lua_pushlstring(L, header->value.ptr, header->value.len);
        lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
    } else {
        lua_pop(L, 1);
        lua_pushlstring(L, header->value.ptr, header->value.len);
    }
    lua_rawset(L, table);
}

static void result_push_headers(lua_State *L, struct vm *vm, const struct headers *h)
{
    lua_createtable(L, 0, (int)h->count + 1);
    for (uint32_t i = 0; i < h->count; i++) result_push_header(L, &h->items[i]);
    result_mark(L, vm, VM_REF_FIELDS);
}

static void result_push_response(lua_State *L, struct vm *vm, const struct outcome *o)
{
    lua_createtable(L, 0, 5);
    lua_pushinteger(L, o->status);
    lua_setfield(L, -2, "status");
    if (o->body.ptr && o->body.len) {
        lua_pushlstring(L, o->body.ptr, o->body.len);
        lua_setfield(L, -2, "body");
    }
    result_push_headers(L, vm, &o->headers);
    lua_setfield(L, -2, "headers");
    if (o->stream) {
        lua_pushvalue(L, o->stream);
        lua_setfield(L, -2, "stream");
    }
    if (o->error) {
        lua_pushvalue(L, o->error);
        lua_setfield(L, -2, "error");
    }
    result_mark(L, vm, VM_REF_RESPONSE);
}

static int result_hand_over_stream(lua_State *L, struct vm *vm, const struct outcome *o)
{
    lua_getfield(L, o->stream, "spec");
    lua_getfield(L, o->stream, "fn");
    lua_pushinteger(L, o->status);
    result_push_headers(L, vm, &o->headers);
    lua_getfield(L, o->stream, "on_error");
    return 5;
}

int result_reply(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct exchange *x = result_exchange(vm);
    struct outcome o;
    struct returned r = {.first = 2};
    bool ok = lua_toboolean(L, 1);
    if (!ok) task_cancel_spawned(vm->current);
    if (!x || x->phase != EXCHANGE_OPEN) return 0;
    result_read(L, vm, ok, &r, &o);
    result_remember_if_failed(L, vm, x, &o);
    if (o.stream) return result_hand_over_stream(L, vm, &o);
    result_send(x, &o);
    result_trim_scratch(vm);
    return 0;
}

// core.settle(fn, otherwise, ok, ...): what fn returned or raised as a response object of its own,
// by the same rules; `otherwise` is the status when none was given (nil: 200). Without fn it is an
// error that the server makes, and no failure of the app.
static int result_settle(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct outcome o;
    struct returned r = {.first = 4, .otherwise = (int)lua_tointeger(L, 2), .function = 1};
    bool ok = lua_toboolean(L, 3);
    if (!ok && !lua_isnil(L, 1)) task_cancel_spawned(vm->current);
    result_read(L, vm, ok, &r, &o);
    luaL_checkstack(L, 8, "response");
    result_push_response(L, vm, &o);
    result_trim_scratch(vm);
    return 1;
}

// core.fields(table): the header fields as a list of { name, value }; or nil, what is wrong.
static int result_fields(lua_State *L)
{
    struct header items[RESULT_MAX_HEADERS];
    struct headers h = {items, 0, RESULT_MAX_HEADERS};
    int64_t length = -1;
    luaL_checktype(L, 1, LUA_TTABLE);
    if (!result_add_headers(L, 1, &h, &length)) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    lua_createtable(L, (int)h.count, 0);
    for (uint32_t i = 0; i < h.count; i++) {
        lua_createtable(L, 2, 0);
        lua_pushlstring(L, items[i].name.ptr, items[i].name.len);
        lua_rawseti(L, -2, 1);
        lua_pushlstring(L, items[i].value.ptr, items[i].value.len);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, (int)i + 1);
    }
    return 1;
}

// core.digest(text): 16 hex digits that differ when texts differ (FNV-1a, 64 bits); for entity
// tags.
static int result_digest(lua_State *L)
{
    struct slice text;
    uint64_t hash = 0xcbf29ce484222325u;
    char digits[17];
    text.ptr = luaL_checklstring(L, 1, &text.len);
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.ptr[i]) * 0x100000001b3u;
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
    lua_pushstring(L, digits);
    return 1;
}

// core.reason(status): its standard phrase.
static int result_reason(lua_State *L)
{
    lua_pushstring(L, message_reason((int)luaL_checkinteger(L, 1)));
    return 1;
}

void result_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {{"reply", result_reply},
                                         {"settle", result_settle},
                                         {"traceback", result_traceback},
                                         {"fields", result_fields},
                                         {"reason", result_reason},
                                         {"digest", result_digest},
                                         {NULL, NULL}};
    vm_register(L, vm, functions);
    result_kinds_open(L, vm);
    result_failure_open(L, vm);
}

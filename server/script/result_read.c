#include "script/result_read.h"

#include "script/json.h"
#include "script/task.h"

static void outcome_init(struct outcome *o, int status)
{
    o->status = status;
    o->stream = o->error = 0;
    o->length = -1;
    o->body = (struct slice){0};
    o->headers = (struct headers){o->items, 0, RESULT_MAX_HEADERS};
}

// RFC 9110 6.4.1, 15.3.6: some statuses have no body, whatever was returned with them.
static void outcome_drop_body(struct outcome *o)
{
    uint32_t kept = 0;
    o->body.len = 0;
    if (o->status == 304) return;
    for (uint32_t i = 0; i < o->headers.count; i++)
        if (!slice_equals(o->headers.items[i].name, SLICE("content-type")))
            o->headers.items[kept++] = o->headers.items[i];
    o->headers.count = kept;
}

static void outcome_add(struct outcome *o, struct slice name, struct slice value)
{
    o->headers.items[o->headers.count++] = (struct header){name, value};
}

// Replaces a function that photon.chain has made, on top of the stack, by the app's own in it.
static void result_find_origin(lua_State *L, struct vm *vm)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_ORIGINS]);
    if (!lua_istable(L, -1)) lua_newtable(L);
    lua_insert(L, -2);
    while (lua_pushvalue(L, -1), lua_rawget(L, -3), lua_isfunction(L, -1)) lua_remove(L, -2);
    lua_pop(L, 1);
    lua_remove(L, -2);
}

// Pushes `the function at app.lua:12` for messages: what returned the values.
static void result_push_place(lua_State *L, struct vm *vm, int function)
{
    lua_Debug ar;
    if (function) {
        lua_pushvalue(L, function);
    } else {
        lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_HANDLERS]);
        if (vm->current && lua_istable(L, -1)) {
            lua_rawgeti(L, -1, (int)vm->current->handler);
            lua_remove(L, -2);
        }
    }
    if (lua_isfunction(L, -1)) result_find_origin(L, vm);
    if (!lua_isfunction(L, -1) || !lua_getinfo(L, ">S", &ar)) {
        lua_pushliteral(L, "the handler");
        return;
    }
    lua_pushfstring(L, "the function at %s:%d", ar.short_src, ar.linedefined);
}

static bool result_refuse(lua_State *L, struct vm *vm, const struct returned *r, int value,
                          const char *what)
{
    result_push_place(L, vm, r->function);
    result_push_described(L, value);
    lua_pushfstring(L, "%s returned %s as %s", lua_tostring(L, -2), lua_tostring(L, -1), what);
    return false;
}

// Only a whole number within bounds is a status.
static bool result_take_status(lua_State *L, int index, struct outcome *o)
{
    int type = lua_type(L, index);
    lua_Number n = lua_tonumber(L, index);
    if (type == LUA_TNIL || type == LUA_TNONE) return true;
    if (type != LUA_TNUMBER || n < 200 || n > 599 || n != (int)n) return false;
    o->status = (int)n;
    return true;
}

// The second result.
static bool result_read_status(lua_State *L, struct vm *vm, const struct returned *r,
                               struct outcome *o)
{
    return result_take_status(L, r->first + 1, o) ||
           result_refuse(L, vm, r, r->first + 1,
                         "its second value; a status is an integer from 200 to 599");
}

static bool result_add_own_headers(lua_State *L, struct vm *vm, const struct returned *r, int index,
                                   struct outcome *o)
{
    if (result_add_headers(L, index, &o->headers, &o->length)) return true;
    result_push_place(L, vm, r->function);
    lua_pushfstring(L, "%s: %s", lua_tostring(L, -1), lua_tostring(L, -2));
    return false;
}

static bool result_read_headers(lua_State *L, struct vm *vm, const struct returned *r,
                                struct outcome *o)
{
    int index = r->first + 2;
    if (lua_isnoneornil(L, index)) return true;
    if (!lua_istable(L, index))
        return result_refuse(L, vm, r, index, "its third value; headers are a table");
    return result_add_own_headers(L, vm, r, index, o);
}

static bool result_set_json(lua_State *L, struct vm *vm, const struct returned *r, int index,
                            struct outcome *o)
{
    vm->scratch.len = 0;
    const char *error = json_encode(L, index, &vm->scratch);
    if (error) {
        result_push_place(L, vm, r->function);
        lua_pushfstring(L, "%s: %s", lua_tostring(L, -1), error);
        return false;
    }
    o->body = buf_slice(&vm->scratch);
    return true;
}

static bool result_set_text(lua_State *L, int index, struct outcome *o)
{
    o->body.ptr = lua_tolstring(L, index, &o->body.len);
    return true;
}

static bool result_read_problem(lua_State *L, struct vm *vm, const struct returned *r, int index,
                                struct outcome *o)
{
    vm->scratch.len = 0;
    const char *error =
        result_write_problem(L, index, o->status, result_exchange(vm), &vm->scratch);
    if (error) {
        result_push_place(L, vm, r->function);
        lua_pushfstring(L, "%s: a problem cannot be written: %s", lua_tostring(L, -1), error);
        return false;
    }
    o->body = buf_slice(&vm->scratch);
    o->error = index;
    outcome_add(o, SLICE("content-type"), SLICE("application/problem+json"));
    return true;
}

static bool result_read_body_field(lua_State *L, struct vm *vm, const struct returned *r, int index,
                                   struct outcome *o)
{
    lua_pushliteral(L, "body");
    lua_rawget(L, index);
    int body = lua_gettop(L);
    switch (lua_type(L, body)) {
    case LUA_TNIL: return true;
    case LUA_TSTRING: return result_set_text(L, body, o);
    case LUA_TTABLE:
        outcome_add(o, SLICE("content-type"), SLICE("application/json"));
        return result_set_json(L, vm, r, body, o);
    default:
        return result_refuse(L, vm, r, body, "the body of a response; it is a string or a table");
    }
}

// What photon.stream and the like have put into a response: { spec =, fn = }.
static bool result_is_stream(lua_State *L, int index)
{
    lua_pushliteral(L, "spec");
    lua_rawget(L, index);
    lua_pushliteral(L, "fn");
    lua_rawget(L, index);
    bool is_stream = lua_istable(L, -2) && (lua_isfunction(L, -1) || lua_istable(L, -1));
    lua_pop(L, 2);
    return is_stream;
}

// Fields that stand for more than text: a stream, and the error behind a reply.
static void result_read_marks(lua_State *L, int index, struct outcome *o)
{
    lua_pushliteral(L, "stream");
    lua_rawget(L, index);
    if (lua_istable(L, -1) && result_is_stream(L, lua_gettop(L))) o->stream = lua_gettop(L);
    lua_pushliteral(L, "error");
    lua_rawget(L, index);
    if (lua_istable(L, -1)) o->error = lua_gettop(L);
}

static bool result_read_response(lua_State *L, struct vm *vm, const struct returned *r, int index,
                                 enum result_kind kind, struct outcome *o)
{
    luaL_checkstack(L, 12, "response");
    lua_pushliteral(L, "status");
    lua_rawget(L, index);
    if (!result_take_status(L, lua_gettop(L), o))
        return result_refuse(L, vm, r, lua_gettop(L),
                             "the status of a response; it is an integer from 200 to 599");
    if (!result_read_status(L, vm, r, o)) return false; // one returned beside it wins
    bool ok = kind == RESULT_PROBLEM ? result_read_problem(L, vm, r, index, o)
                                     : result_read_body_field(L, vm, r, index, o);
    if (!ok) return false;
    if (kind == RESULT_RESPONSE) result_read_marks(L, index, o);
    lua_pushliteral(L, "headers");
    lua_rawget(L, index);
    if (lua_isnil(L, -1)) return true;
    if (!lua_istable(L, -1))
        return result_refuse(L, vm, r, lua_gettop(L),
                             "the headers of a response; they are a table");
    return result_add_own_headers(L, vm, r, lua_gettop(L), o);
}

static bool result_read_nothing(lua_State *L, struct vm *vm, const struct returned *r,
                                struct outcome *o)
{
    if (lua_type(L, r->first + 1) == LUA_TSTRING) { // nil, message
        lua_pushvalue(L, r->first + 1);
        return false;
    }
    o->status = r->otherwise ? r->otherwise : 204;
    return result_read_status(L, vm, r, o);
}

static bool result_read_body(lua_State *L, struct vm *vm, const struct returned *r,
                             struct outcome *o)
{
    enum result_kind kind;
    switch (lua_type(L, r->first)) {
    case LUA_TNONE:
    case LUA_TNIL: return result_read_nothing(L, vm, r, o);
    case LUA_TSTRING:
        outcome_add(o, SLICE("content-type"), SLICE("text/plain; charset=utf-8"));
        return result_read_status(L, vm, r, o) && result_set_text(L, r->first, o);
    case LUA_TTABLE:
        kind = result_kind_of(L, vm, r->first);
        if (kind == RESULT_RESPONSE || kind == RESULT_PROBLEM)
            return result_read_response(L, vm, r, r->first, kind, o);
        if (kind == RESULT_REQUEST) {
            lua_pushliteral(L, "the handler returned the request itself");
            return false;
        }
        if (kind != RESULT_PLAIN) { // a failure or photon.cancelled, handed on instead of raised
            lua_pushvalue(L, r->first);
            return false;
        }
        outcome_add(o, SLICE("content-type"), SLICE("application/json"));
        return result_read_status(L, vm, r, o) && result_set_json(L, vm, r, r->first, o);
    default:
        return result_refuse(L, vm, r, r->first,
                             "its body; a body is a string, a table, nil or a photon response");
    }
}

static bool result_check_length(lua_State *L, struct outcome *o)
{
    if (o->length < 0 || o->stream || o->length == (int64_t)o->body.len) return true;
    lua_pushliteral(L, "header content-length differs from the length of the body; leave it out");
    return false;
}

// False: an error value has been pushed.
static bool result_read_values(lua_State *L, struct vm *vm, const struct returned *r,
                               struct outcome *o)
{
    outcome_init(o, r->otherwise ? r->otherwise : 200);
    lua_settop(L, r->first + 2);
    if (!result_read_body(L, vm, r, o) || !result_read_headers(L, vm, r, o)) return false;
    if (!result_check_length(L, o)) return false;
    if (message_is_bodyless(o->status) || o->status == 205) outcome_drop_body(o);
    return true;
}

// Pushes photon.problem(status) without more.
static int result_push_bare(lua_State *L, struct vm *vm, int status)
{
    lua_createtable(L, 0, 1);
    lua_pushinteger(L, status);
    lua_setfield(L, -2, "status");
    result_mark(L, vm, VM_REF_PROBLEM);
    return lua_gettop(L);
}

static void result_read_failure(lua_State *L, struct vm *vm, int index, struct outcome *o)
{
    struct exchange *x = result_exchange(vm);
    lua_getfield(L, index, "status");
    int status = (int)lua_tointeger(L, -1);
    result_log_failure(L, vm, index, x);
    outcome_init(o, status);
    o->error = index;
    if (result_push_page(L, vm, index, x)) {
        outcome_add(o, SLICE("content-type"), SLICE("text/html; charset=utf-8"));
        result_set_text(L, lua_gettop(L), o);
        return;
    }
    struct returned r = {.first = result_push_bare(L, vm, status)};
    if (!result_read_problem(L, vm, &r, r.first, o)) outcome_init(o, status);
    o->error = index;
}

// What a raised (or refused) value at the top of the stack means.
static void result_read_error(lua_State *L, struct vm *vm, const char *trace, struct outcome *o)
{
    int index = lua_gettop(L);
    struct returned r = {.first = index};
    enum result_kind kind = result_kind_of(L, vm, index);
    luaL_checkstack(L, 16, "error");
    lua_settop(L, index);
    if (kind == RESULT_CANCELLED) {
        r.first = result_push_bare(L, vm, 503);
        result_read_values(L, vm, &r, o);
        o->error = index;
        return;
    }
    if ((kind == RESULT_PROBLEM || kind == RESULT_RESPONSE) && result_read_values(L, vm, &r, o))
        return;
    result_make_failure(L, vm, trace);
    result_read_failure(L, vm, lua_gettop(L), o);
}

void result_read(lua_State *L, struct vm *vm, bool ok, const struct returned *r, struct outcome *o)
{
    const char *trace = NULL;
    if (ok && result_read_values(L, vm, r, o)) return;
    int error = ok ? lua_gettop(L) : r->first;
    luaL_checkstack(L, 8, "error");
    if (ok) {
        result_push_place(L, vm, r->function);
        trace = lua_pushfstring(L, "\tin what %s returned", lua_tostring(L, -1));
    }
    lua_pushvalue(L, error);
    result_read_error(L, vm, trace, o);
}

#include "script/result_kinds.h"

#include <stdio.h>
#include "base/log.h"
#include "script/guard.h"
#include "script/library.h"
#include "serve/router.h"

// tostring may run an app's __tostring, which may fail.
static void result_push_converted(lua_State *L)
{
    int value = lua_gettop(L);
    lua_getglobal(L, "pcall");
    lua_getglobal(L, "tostring");
    lua_pushvalue(L, value);
    if (lua_isfunction(L, value + 1)) lua_call(L, 2, 2);
    if (!lua_isstring(L, -1)) {
        lua_pushfstring(L, "(an error object that is a %s)", luaL_typename(L, value));
    } else if (!lua_getmetatable(L, value)) {
        lua_pushfstring(L, "(the error object is a %s without __tostring: %s)",
                        luaL_typename(L, value), lua_tostring(L, -1));
    } else {
        lua_pop(L, 1);
    }
    lua_replace(L, value + 1);
    lua_settop(L, value + 1);
}

// Pushes the message of the error value on top of the stack.
static void result_push_message(lua_State *L)
{
    if (lua_isstring(L, -1)) {
        lua_pushvalue(L, -1);
        lua_tostring(L, -1);
    } else if (lua_isnil(L, -1)) {
        lua_pushliteral(L, "nil (error was called without a message)");
    } else {
        result_push_converted(L);
    }
}

// The stack was so full that no message handler could run, or end: see vm_trace.c, and below.
static void result_restore_message(lua_State *L, struct vm *vm, int value)
{
    if (lua_type(L, value) != LUA_TSTRING) return;
    if (strcmp(lua_tostring(L, value), "error in error handling") != 0) return;
    vm_memory_release(vm);
    if (!vm->overflow[0]) return;
    lua_pushstring(L, vm->overflow);
    lua_replace(L, value);
}

// How long the message's place is, when that is the line of this frame; 0 else.
static size_t result_place_length(const char *text, const lua_Debug *ar)
{
    char place[LUA_IDSIZE + 16];
    int len = snprintf(place, sizeof(place), "%s:%d: ", ar->short_src, ar->currentline);
    return strncmp(text, place, (size_t)len) == 0 ? (size_t)len : 0;
}

// An error that the library has raised is told of the line of the app that called it: the message
// is, the traceback has both.
static void result_place_message(lua_State *L, int value)
{
    lua_Debug ar;
    size_t len, skip = 0;
    if (lua_type(L, value) != LUA_TSTRING) return;
    const char *text = lua_tolstring(L, value, &len);
    for (int level = 1; lua_getstack(L, level, &ar); level++) {
        lua_getinfo(L, "Sl", &ar);
        if (ar.currentline <= 0) continue; // C
        if (!library_owns(ar.source)) break;
        if (!skip) skip = result_place_length(text, &ar);
        ar.currentline = 0;
    }
    if (!skip || ar.currentline <= 0) return;
    lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
    lua_pushlstring(L, text + skip, len - skip);
    lua_concat(L, 2);
    lua_replace(L, value);
}

void result_make_failure(lua_State *L, struct vm *vm, const char *trace)
{
    int value = lua_gettop(L);
    if (result_kind_of(L, vm, value) == RESULT_FAILURE) return;
    result_restore_message(L, vm, value);
    if (!trace) result_place_message(L, value);
    lua_createtable(L, 0, 4);
    lua_pushvalue(L, value);
    result_push_message(L);
    lua_setfield(L, value + 1, "message");
    lua_setfield(L, value + 1, "value");
    if (trace)
        lua_pushstring(L, trace);
    else
        luaL_traceback(L, L, NULL, 1);
    lua_setfield(L, value + 1, "trace");
    lua_pushinteger(L, guard_is_stopped(vm->guard) ? 503 : 500);
    lua_setfield(L, value + 1, "status");
    result_mark(L, vm, VM_REF_FAILURE);
    lua_replace(L, value);
}

// In what is left of a full stack a finalizer would fail, and its error take the place of this one:
// LuaJIT passes it on to whatever runs. The making of a failure may need more than is left, too.
static void result_hold_finalizers(lua_State *L, struct vm *vm)
{
    const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "";
    if (!strstr(text, "stack overflow")) return;
    snprintf(vm->overflow, VM_OVERFLOW, "%s", text);
    vm_memory_hold(vm);
}

int result_traceback(lua_State *L)
{
    struct vm *vm = vm_of(L);
    lua_settop(L, 2);
    bool has_text = lua_type(L, 2) == LUA_TSTRING;
    enum result_kind kind = result_kind_of(L, vm, 1);
    if (kind == RESULT_PLAIN || kind == RESULT_REQUEST) {
        result_hold_finalizers(L, vm);
        lua_pushvalue(L, has_text ? 2 : 1);
        result_make_failure(L, vm, NULL);
        lua_pushvalue(L, 1);
        lua_setfield(L, 3, "value");
        vm_memory_release(vm);
        return 1;
    }
    lua_settop(L, 1);
    return 1;
}

static const char *result_text_field(lua_State *L, int index, const char *name)
{
    const char *text;
    lua_getfield(L, index, name);
    text = lua_tostring(L, -1);
    lua_pop(L, 1); // the failure keeps it alive
    return text ? text : "";
}

// What went wrong, and in which request, if any: "GET /a (request ID, route at app.lua:3)".
static void result_write_failure(lua_State *L, int index, const char *what,
                                 const struct exchange *x)
{
    char id[EXCHANGE_ID];
    const char *message = result_text_field(L, index, "message");
    const char *trace = result_text_field(L, index, "trace");
    if (!x) {
        log_write(LOG_ERROR, "%s%s%s\n%s", what, *what ? ": " : "", message, trace);
        return;
    }
    exchange_id(x, id);
    const struct slice *method = &x->request.method_name, *path = &x->request.path;
    struct slice place = x->route ? x->route->place : (struct slice){0};
    log_write(LOG_ERROR, "%s%s%.*s %.*s (request %.*s%s%.*s): %s\n%s", what, *what ? " of " : "",
              (int)method->len, method->ptr, (int)path->len, path->ptr, EXCHANGE_ID, id,
              place.len ? ", route at " : "", (int)place.len, place.ptr ? place.ptr : "", message,
              trace);
}

void result_log_failure(lua_State *L, struct vm *vm, int index, const struct exchange *x)
{
    lua_getfield(L, index, "logged");
    bool is_logged = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (is_logged) return;
    lua_pushboolean(L, true);
    lua_setfield(L, index, "logged");
    if (vm->counters) counters_add(&vm->counters->lua_errors, 1);
    if (vm->is_testing) return; // the spec sees it
    result_write_failure(L, index, "", x);
}

void result_remember_failure(lua_State *L, struct vm *vm, int index, const struct exchange *x)
{
    char id[EXCHANGE_ID];
    if (!vm->is_testing || !x) return;
    lua_getfield(L, index, "handled");
    bool is_handled = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (is_handled) return;
    exchange_id(x, id);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_FAILURES]);
    lua_pushlstring(L, id, EXCHANGE_ID);
    lua_pushvalue(L, index);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

static bool result_wants_page(const struct exchange *x)
{
    const struct header *accept = headers_find(&x->request.headers, SLICE("accept"));
    return accept && memmem(accept->value.ptr, accept->value.len, "text/html", 9) != NULL;
}

bool result_push_page(lua_State *L, struct vm *vm, int index, const struct exchange *x)
{
    if (!vm->is_watching || !x || !result_wants_page(x)) return false;
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_PAGE]);
    if (!lua_isfunction(L, -1)) {
        lua_pop(L, 1);
        return false;
    }
    lua_pushvalue(L, index);
    lua_pushlstring(L, x->request.method_name.ptr, x->request.method_name.len);
    lua_pushlstring(L, x->request.target.ptr, x->request.target.len);
    lua_call(L, 3, 1);
    if (lua_isstring(L, -1)) return true;
    lua_pop(L, 1);
    return false;
}

// core.failed(what, err): logs an error that nobody else will see.
static int result_failed(lua_State *L)
{
    struct vm *vm = vm_of(L);
    const char *what = luaL_checkstring(L, 1);
    lua_settop(L, 2);
    if (result_kind_of(L, vm, 2) == RESULT_CANCELLED) return 0;
    result_make_failure(L, vm, NULL);
    if (vm->counters) counters_add(&vm->counters->lua_errors, 1);
    if (vm->is_testing && result_exchange(vm)) { // of a stream: the spec that reads it sees it
        result_remember_failure(L, vm, 2, result_exchange(vm));
        return 0;
    }
    result_write_failure(L, 2, what, result_exchange(vm));
    return 0;
}

// core.error_value(err): what was given to error, for a failure; anything else is itself.
static int result_error_value(lua_State *L)
{
    lua_settop(L, 1);
    result_restore_message(L, vm_of(L), 1);
    if (result_kind_of(L, vm_of(L), 1) == RESULT_FAILURE) lua_getfield(L, 1, "value");
    return 1;
}

// core.take_failure(id): the unhandled failure of the request with that id, once.
static int result_take_failure(lua_State *L)
{
    struct vm *vm = vm_of(L);
    luaL_checkstring(L, 1);
    lua_settop(L, 1);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_FAILURES]);
    lua_pushvalue(L, 1);
    lua_rawget(L, 2);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    lua_rawset(L, 2);
    return 1;
}

// core.set_page(fn): fn(failure, method, target) makes the error page of --watch.
static int result_set_page(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    vm_of(L)->refs[VM_REF_PAGE] = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

void result_failure_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {{"failed", result_failed},
                                         {"error_value", result_error_value},
                                         {"take_failure", result_take_failure},
                                         {"set_page", result_set_page},
                                         {NULL, NULL}};
    vm_register(L, vm, functions);
}

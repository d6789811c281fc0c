// result_kinds: how the files of room result tell values apart.
#ifndef PHOTON_SCRIPT_RESULT_KINDS_H
#define PHOTON_SCRIPT_RESULT_KINDS_H

#include "script/result.h"

enum result_kind {
    RESULT_PLAIN,    // none of ours
    RESULT_RESPONSE, // { status, headers, body, stream, error }
    RESULT_PROBLEM,  // { status, detail, extra, headers }
    RESULT_FAILURE,  // { message, trace, status }
    RESULT_CANCELLED,
    RESULT_REQUEST, // a request, which nobody means to send
};

// Called by result_open, with the core table on top of the stack.
void result_kinds_open(lua_State *L, struct vm *vm);
void result_failure_open(lua_State *L, struct vm *vm);

enum result_kind result_kind_of(lua_State *L, struct vm *vm, int index);

// Sets the metatable kept under that reference on the table at the top of the stack.
void result_mark(lua_State *L, struct vm *vm, enum vm_ref ref);

// The exchange that the running task serves, NULL when it is over.
struct exchange *result_exchange(struct vm *vm);

// Replaces the error value on top of the stack by a failure; a failure stays itself. `trace` is
// where it comes from, or NULL for a traceback of the present stack.
void result_make_failure(lua_State *L, struct vm *vm, const char *trace);

// Logs the failure at `index` with the request's method, path and id, unless that was done.
void result_log_failure(lua_State *L, struct vm *vm, int index, const struct exchange *x);

// Keeps an unhandled failure for in-process tests; core.take_failure(id) gives it out.
void result_remember_failure(lua_State *L, struct vm *vm, int index, const struct exchange *x);

// Where a browser would rather see the failure (--watch): pushes an HTML page. False: nothing.
bool result_push_page(lua_State *L, struct vm *vm, int index, const struct exchange *x);

// Appends to `to` the problem at `index`, or (index 0) a bare one of `status`, as JSON. NULL, or
// why it cannot be done.
const char *result_write_problem(lua_State *L, int index, int status, const struct exchange *x,
                                 struct buf *to);

// Pushes a short description of the value: `a number (3)`.
void result_push_described(lua_State *L, int index);

#endif

// result: what a handler returns (or raises) becomes a reply. Owns the kinds of value that stand
// for replies and errors in Lua: response objects, problems, and failures (a Lua error with its
// traceback). Called by the door and, through `settle`, by middleware.
#ifndef PHOTON_SCRIPT_RESULT_H
#define PHOTON_SCRIPT_RESULT_H

#include "http/exchange.h"
#include "script/vm.h"

enum { RESULT_MAX_HEADERS = 100 };

// Adds reply, settle, traceback and the metatables to the core table at the top of the stack.
void result_open(lua_State *L, struct vm *vm);

// core.reply(ok, ...): sends the reply of the running task's exchange for what its handler returned
// (ok is true) or raised. For a stream it sends nothing and returns spec, function, status,
// headers, and its on_error (or nil); else it returns nothing. Harmless when the exchange is over.
int result_reply(lua_State *L);

// core.traceback(err, [text]): the message handler of every protected call into an app (through
// photon.failure, which asks the value for its text). Response objects, failures and
// photon.cancelled pass; anything else becomes a failure { message, trace, status, value }.
int result_traceback(lua_State *L);

// Adds the fields of the Lua table at `index` to `h` (whose array has room for RESULT_MAX_HEADERS),
// names in lower case; a field replaces what `h` held under its name. A value is a string, a
// number, or a list of them. `length` takes a content-length field instead of `h`. True: one value
// has been pushed, which keeps the texts alive. False: a message has been pushed that says what is
// wrong, for instance a CR in a value.
bool result_add_headers(lua_State *L, int index, struct headers *h, int64_t *length);

#endif

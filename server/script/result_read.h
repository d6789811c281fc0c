// result_read: the values that a handler returned or raised, made into what is to be sent.
#ifndef PHOTON_SCRIPT_RESULT_READ_H
#define PHOTON_SCRIPT_RESULT_READ_H

#include "script/result_kinds.h"

// What is to be sent. Texts are borrowed from the Lua stack, or from the VM's scratch buffer.
struct outcome {
    int status;
    int stream;     // stack index of a stream's { spec, fn }, 0 when it is none
    int error;      // stack index of the problem or failure that it stands for, 0 when none
    int64_t length; // content-length that the app gave, -1 when it gave none
    struct slice body;
    struct headers headers;
    struct header items[RESULT_MAX_HEADERS];
};

// What a function returned: body, status, headers at stack index `first` and after it; nothing else
// above them.
struct returned {
    int first;
    int otherwise; // the status when none is given; 0: 200, or 204 without a body
    int function;  // stack index of what returned it, 0 when the route's handler did
};

// Reads results, or when `ok` is false the error value at r->first. Whatever is wrong with them
// becomes an error reply, which is logged. Leaves values on the stack that the outcome borrows
// from.
void result_read(lua_State *L, struct vm *vm, bool ok, const struct returned *r, struct outcome *o);

#endif

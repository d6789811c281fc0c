// json: Lua values to JSON and back, over text/json. A table is an array when it is marked as one
// (photon.array, or decoded from an array) or when its keys are 1 to n; else an object of string
// keys; anything between is an error that names the path. Metamethods are never called.
// photon.null is the light userdata NULL, which is also cjson.null.
#ifndef PHOTON_SCRIPT_JSON_H
#define PHOTON_SCRIPT_JSON_H

#include <lua.h>
#include "base/buf.h"
#include "base/list.h"

// Pushes the table { encode, decode, array, null }. Once per VM, before any of the functions below;
// needs `require`. The buffers of encode stand in `scratches`. Raises when there is no memory.
int json_open(lua_State *L, struct list *scratches);

// Frees the buffers of a Lua state whose finalizers will never run.
void json_abandon(struct list *scratches);

// Appends the value at `index` to `to`. NULL; or why it cannot be encoded, then `to` is as it was.
// The message is valid until the thread's next call here. Runs no Lua code and no collector. Only
// for want of memory for the Lua stack does it raise, and then leaves `to` longer: so give it a
// scratch, not what a client will see.
const char *json_encode(lua_State *L, int index, struct buf *to);

// Pushes the value of a JSON text, which must be anchored or owned by the caller: the collector may
// run. NULL; or what is wrong with it and at which byte (counted from 1), then nothing is pushed.
// The message is valid until the thread's next call here. Raises when Lua has no memory.
const char *json_decode(lua_State *L, struct slice text);

// Pushes the metatable that marks arrays: the same for all of a VM.
void json_push_array_metatable(lua_State *L);

#endif

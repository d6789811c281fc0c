// pack: plain Lua values as bytes and back, to be copied from one Lua state to another. Plain are
// nil, booleans, numbers, strings, photon.null, and tables of these (keys: booleans, numbers,
// strings) without a metatable other than the mark of arrays. The bytes never leave the process.
#ifndef PHOTON_SCRIPT_PACK_H
#define PHOTON_SCRIPT_PACK_H

#include <lua.h>
#include "base/buf.h"

// Appends the value at `index`, at most `max` bytes in all. NULL; or why it cannot be copied, with
// its path; then `to` is as it was. The message is valid until the thread's next call here. Runs no
// Lua code and no collector, and raises nothing.
const char *pack_value(lua_State *L, int index, size_t max, struct buf *to);

// Pushes the value at the front of `from` and moves on behind it. The collector may run meanwhile,
// so the bytes must not be a buffer that Lua code could reach. False, with nothing pushed, when the
// bytes are not of pack_value. Raises when Lua has no memory.
bool pack_push(lua_State *L, struct slice *from);

#endif

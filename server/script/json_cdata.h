// json_cdata: the 64-bit integers of LuaJIT's FFI, which the C API gives no way to tell from other
// cdata.
#ifndef PHOTON_SCRIPT_JSON_CDATA_H
#define PHOTON_SCRIPT_JSON_CDATA_H

#include <lua.h>
#include <stdbool.h>
#include "base/buf.h"

enum { JSON_CDATA_TYPE = 10, JSON_CDATA_DIGITS = 21 };

// Called by json_open: keeps what it needs of the FFI where no script can change it.
void json_cdata_open(lua_State *L);

// Writes the digits of the cdata at `index`; returns their number, 0 when it is no int64_t or
// uint64_t. Runs no Lua code.
size_t json_cdata_write(lua_State *L, int index, char to[JSON_CDATA_DIGITS]);

#endif

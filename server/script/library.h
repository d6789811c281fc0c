// library: where `require` finds photon's own modules: on disk beside the binary in a source
// checkout, embedded otherwise; and the C libraries that every app may require.
#ifndef PHOTON_SCRIPT_LIBRARY_H
#define PHOTON_SCRIPT_LIBRARY_H

#include <lua.h>
#include <stdbool.h>

// Finds out where the library is, from the path of the binary. Once, before any VM is made.
// PHOTON_LIBRARY in the environment names another root.
void library_locate(void);

// The directory that holds photon.lua, NULL when the embedded library is used.
const char *library_root(void);

// Whether a function's source (lua_Debug) is one of photon's own modules.
bool library_owns(const char *source);

// Puts the searcher for photon and photon.* before all others, and cjson among the preloaded.
// May raise.
void library_open(lua_State *L);

#endif

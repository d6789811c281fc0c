// core: the table photon.core, in which the C rooms of this floor offer their functions to
// photon's own Lua library. Apps do not see it.
#ifndef PHOTON_SCRIPT_CORE_H
#define PHOTON_SCRIPT_CORE_H

#include "script/vm.h"

// Adds the functions of every room to the table at the top of the stack. May raise.
void core_open(lua_State *L, struct vm *vm);

#endif

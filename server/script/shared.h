// shared: photon.shared as Lua's library sees it: the dictionaries of serve/shared, with values
// copied in and out. Time to live is measured by the loop's clock.
#ifndef PHOTON_SCRIPT_SHARED_H
#define PHOTON_SCRIPT_SHARED_H

#include "script/vm.h"

// Adds this room's functions to the core table.
void shared_lua_open(lua_State *L, struct vm *vm);

#endif

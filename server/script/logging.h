// logging: photon.log for apps.
#ifndef PHOTON_SCRIPT_LOGGING_H
#define PHOTON_SCRIPT_LOGGING_H

#include "script/vm.h"

// Adds the table `log` to the core table at the top of the stack: debug, info, warn, error.
void logging_open(lua_State *L, struct vm *vm);

#endif

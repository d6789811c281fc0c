// metrics: photon.metrics(), the server's own numbers for apps.
#ifndef PHOTON_SCRIPT_METRICS_H
#define PHOTON_SCRIPT_METRICS_H

#include "script/vm.h"

// Adds `metrics` to the core table at the top of the stack.
void metrics_lua_open(lua_State *L, struct vm *vm);

#endif

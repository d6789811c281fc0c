// offload: photon.offload, blocking Lua on threads of their own. A VM that uses it has a pool of a
// few threads, each with a Lua state of its own that keeps its modules; calls and results are
// copied. What a thread is busy with cannot be interrupted: when its caller is cancelled, or its VM
// ends, the result is dropped.
#ifndef PHOTON_SCRIPT_OFFLOAD_H
#define PHOTON_SCRIPT_OFFLOAD_H

#include "script/vm.h"

// Adds this room's functions to the core table. `core` is what makes photon.core in the threads'
// VMs.
void offload_open(lua_State *L, struct vm *vm, void (*core)(lua_State *L, struct vm *vm));

// On the loop's thread, when no task of the VM lives any more or the VM is lost: lets the pool go.
// Its handle on the loop closes on a later turn; its threads end when they have done what they do.
void offload_close(struct vm *vm);

#endif

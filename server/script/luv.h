// luv: `require "luv"` bound to the worker's loop, and tamed. Its callbacks run as tasks, its
// errors are logged; what would stop, walk or leave the loop, start threads or change the process
// is absent; handles cannot be made while an app loads. Every handle and every request in flight is
// known here, so that a VM is closed only after all of them, and so that none calls into a VM that
// was given up.
#ifndef PHOTON_SCRIPT_LUV_H
#define PHOTON_SCRIPT_LUV_H

#include "script/vm.h"

// Makes luv (also under the name uv) available to `require`. May raise.
void luv_lua_open(lua_State *L, struct vm *vm);

// How many handles and requests of the VM are not closed yet.
unsigned luv_open_handles(const struct vm *vm);

// Whether something of luv's is under way: an active handle that has not been unreferenced, or a
// request. It keeps its generation alive as it would keep a loop of libuv's.
bool luv_is_busy(const struct vm *vm);

// On the loop's thread: closes `most` handles and cancels all requests; to be called again as long
// as luv_open_handles, some turns later, is not 0. In the phase VM_CLOSING no Lua runs for them any
// more.
void luv_close_handles(struct vm *vm, unsigned most);

// The same for a VM that was given up (VM_ABANDONED): its Lua state is not touched, now or later.
void luv_abandon(struct vm *vm);

#endif

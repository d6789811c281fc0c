// luv_private: what the files of the luv room share; for them alone.
#ifndef PHOTON_SCRIPT_LUV_PRIVATE_H
#define PHOTON_SCRIPT_LUV_PRIVATE_H

#include <luv/luv.h>
#include "script/luv.h"

// A handle of luv's, from its making until its close callback.
struct luv_owned {
    struct list node;
    uv_handle_t *handle;
};

// A request that the thread pool works at (files, names, random). A userdata, kept alive by luv,
// which holds the callback that holds it.
struct luv_request {
    struct list node;
    uv_req_t *req;
};

// Lives in the Lua heap, anchored in the registry.
struct luv_state {
    struct vm *vm;
    struct list handles, requests;
    unsigned count;          // of both
    struct luv_owned *spare; // made before it is needed, so that no handle is without one
    size_t collected;        // bytes of the heap after the last full collection
    lua_State *carrier;      // where a callback's arguments wait for the protected call
    int spawn_ref;           // photon.task.spawn
};

// What stands in luv for the callback of a close and of a request: a C closure over the owned
// handle or the request, and the user's callback or nil.
int luv_on_closed(lua_State *L);
int luv_on_done(lua_State *L);

// Changes the module at the top of the stack. May raise.
void luv_tame(lua_State *L, struct vm *vm);

// The handle is closed, the request is over.
void luv_disown(struct luv_state *state, struct luv_owned *owned);
void luv_finish(struct luv_state *state, struct luv_request *request);

#endif

// request: what Lua sees of a request: a table { handle, params = … } whose other fields are loaded
// when they are first read (lua/photon/request.lua). Owns nothing; a handle is inert when its
// exchange is over.
#ifndef PHOTON_SCRIPT_REQUEST_H
#define PHOTON_SCRIPT_REQUEST_H

#include "http/exchange.h"
#include "script/vm.h"

// Adds the request_… functions, body_read and trust to the core table at the top of the stack.
void request_open(lua_State *L, struct vm *vm);

// Pushes the request table for the exchange behind `handle`. May raise for want of memory.
void request_push(lua_State *L, struct vm *vm, struct exchange *x, double handle);

// Parts of request_open, one for each file of the room.
void request_query_open(lua_State *L, struct vm *vm);
void request_body_open(lua_State *L, struct vm *vm);
void request_peer_open(lua_State *L, struct vm *vm);

// The exchange of the request that is the first argument; NULL when it is over.
static inline struct exchange *request_arg(lua_State *L)
{
    struct vm_slot *slot = vm_slot_arg(L, vm_of(L), 1);
    return slot ? slot->x : NULL;
}

// Counts the stream that is about to begin against max_streams_per_ip, for the client that the
// exchange speaks for. False: it has been answered by 429 or 503.
bool request_admit_ip(struct vm *vm, struct exchange *x);

static inline int request_push_slice(lua_State *L, struct slice s)
{
    lua_pushlstring(L, s.ptr ? s.ptr : "", s.len);
    return 1;
}

#endif

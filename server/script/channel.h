// channel: what Lua sees of channels: handles to publish, to read and to ask; hooks on members; and
// the two ways in which a request becomes a subscriber: a route that is C alone, and an admission
// by Lua. The broadcast itself is serve/channel.
//
// What Lua holds of channels are userdata that stand in vm->objects, so that they can be let go
// when the VM is given up.
#ifndef PHOTON_SCRIPT_CHANNEL_H
#define PHOTON_SCRIPT_CHANNEL_H

#include "script/vm.h"
#include "serve/channel_worker.h"

// Adds the channel_… functions to the core table at the top of the stack.
void channel_lua_open(lua_State *L, struct vm *vm);

// The VM runs nothing any more and is about to be closed on another thread: what is bound to the
// worker (readers, hooks) is taken off here. On the worker's thread.
void channel_lua_close(struct vm *vm);

// The VM was given up: everything is let go; answers that it was producing are ended as failed.
void channel_lua_abandon(struct vm *vm);

// Lets go of what is held of this registry's channels (NULL: of all); the handles are inert then.
void channel_lua_drop(struct vm *vm, struct channel_registry *r);

// Ends, cleanly, the subscribers that still keep this VM: those whose request has an on_close.
void channel_lua_end_all(struct vm *vm);

// A subscription that needs no Lua, as a route's target. Reads the table at `index`: a list of
// channels with the fields of a subscription's spec. May raise.
struct channel_route *channel_route_new(lua_State *L, int index);
void channel_route_free(struct channel_route *route); // NULL is harmless
void channel_route_serve(const struct channel_route *route, struct channel_worker *w,
                         struct exchange *x);

#endif

// channel_private: what the files of the channel room share; for them alone.
#ifndef PHOTON_SCRIPT_CHANNEL_PRIVATE_H
#define PHOTON_SCRIPT_CHANNEL_PRIVATE_H

#include "script/channel.h"

// What a userdata that holds a channel begins with. Without a channel it is inert.
struct channel_object {
    struct list node; // vm->objects
    struct channel *ch;
    struct channel_registry *registry;
    void (*detach)(struct channel_object *o);  // takes off what is bound to the worker; may be NULL
    void (*release)(struct channel_object *o); // before the channel is let go; may be NULL
};

// photon.channel's object; `producer` is the task that answers for the channel, see
// channel_claim.c.
struct channel_handle {
    struct channel_object object; // first
    bool is_claimed;
    struct task *producer;
};

// The handle at `index`. Raises when there is none, or an inert one.
struct channel_handle *channel_lua_handle(lua_State *L, int index);

// Nobody goes on producing: those who listen are told. Harmless when the handle has no claim.
void channel_lua_fail_claim(struct channel_object *o);

// Pushes a zeroed userdata of `size` bytes with that metatable; its object stands in the VM's list
// and holds the channel. May raise, then nothing is held.
void *channel_lua_push(lua_State *L, struct vm *vm, size_t size, const char *type,
                       struct channel *ch, struct channel_registry *r);

// Lets go of the channel; harmless when repeated.
void channel_lua_release(struct channel_object *o);

// The channel of the handle at `index`. Raises when there is no handle, or an inert one.
struct channel *channel_lua_arg(lua_State *L, int index);
struct channel_registry *channel_lua_registry_arg(lua_State *L, int index);

// A metatable of objects under `type`, left on the stack: __gc releases.
void channel_lua_new_type(lua_State *L, struct vm *vm, const char *type);

uint64_t channel_lua_now(const struct vm *vm);

// Pushes nil and the text of what went wrong; 2.
int channel_lua_refuse(lua_State *L, enum channel_result result);

// Pushes id, event, data of a kept event; false when there is no memory.
bool channel_lua_push_event(lua_State *L, struct vm *vm, const struct payload *record);

// The other files' parts of channel_lua_open, with the core table on top of the stack.
void channel_lua_open_reading(lua_State *L, struct vm *vm);
void channel_lua_open_members(lua_State *L, struct vm *vm);
void channel_lua_open_serving(lua_State *L, struct vm *vm);
void channel_lua_open_durable(lua_State *L, struct vm *vm);
void channel_lua_open_claim(lua_State *L, struct vm *vm);

#endif

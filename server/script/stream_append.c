// What stream:send of a string is for compiled code, which can call it directly where a method in C
// would end the trace. It calls nothing that raises, waits or pushes.
#include "script/stream.h"

static int stream_lua_append(struct vm *vm, double handle, const char *data, size_t len)
{
    struct vm_slot *slot = vm_slot_at(vm, handle);
    return slot && slot->stream && stream_append(slot->stream, slice_of(data, len));
}

void stream_lua_open_append(lua_State *L, struct vm *vm)
{
    lua_pushlightuserdata(L, vm);
    lua_setfield(L, -2, "stream_vm");
    lua_pushlightuserdata(L, (void *)(uintptr_t)stream_lua_append);
    lua_setfield(L, -2, "stream_append");
}

// stream: the stream object that Lua handlers write to; a thin skin over serve/stream.
#ifndef PHOTON_SCRIPT_STREAM_H
#define PHOTON_SCRIPT_STREAM_H

#include "script/vm.h"
#include "serve/stream.h"

// Adds stream_begin, stream_end and the stream's metatable to the core table.
void stream_lua_open(lua_State *L, struct vm *vm);

// Adds what photon.stream needs beside the methods: stream_vm and stream_append, two pointers for
// FFI.
void stream_lua_open_append(lua_State *L, struct vm *vm);

// Ends up to `most` streams of this VM cleanly: at a reload of those that want their clients to
// come again, or of all when the generation must go. Their tasks are cancelled. True when none is
// left.
bool stream_lua_end_some(struct vm *vm, struct stream_host *host, bool every, unsigned most);

#endif

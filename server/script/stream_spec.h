// stream_spec: reading the tables that apps give to streams; for the stream and channel rooms.
// Every function may raise a Lua error that says what is wrong.
#ifndef PHOTON_SCRIPT_STREAM_SPEC_H
#define PHOTON_SCRIPT_STREAM_SPEC_H

#include "script/vm.h"
#include "serve/stream.h"

// Pushes the field of the table at index 2; false when it is nil.
bool stream_field(lua_State *L, const char *name);

// The string or number at `index` as text (a number takes its shortest form, in place).
struct slice stream_text(lua_State *L, int index);

// The same for any value; `what` names it in the error.
struct slice stream_name_arg(lua_State *L, int index, const char *what);

// The value at `index` as one piece of data: text as it is, a table as one line of JSON (in the
// VM's scratch). `what` names the caller in errors.
struct slice stream_data_arg(lua_State *L, int index, const char *what);

// Reads the fields of the table at index 2; texts are borrowed from it. Unknown ones are errors.
void stream_read_event(lua_State *L, struct sse_event *e);

// Reads the spec table at index 2 (nil: the defaults). Texts are borrowed from it.
void stream_read_spec(lua_State *L, struct stream_spec *spec);

// Whether the spec table at index 2 has that flag.
bool stream_spec_flag(lua_State *L, const char *name);

// Pushes the Last-Event-ID: of the header, or of the query for clients that cannot set headers.
// False when there is none (something may have been pushed all the same).
bool stream_push_last_id(lua_State *L, struct exchange *x);

#endif

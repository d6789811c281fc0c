// testing_private: what the files of the testing room share; for them alone.
#ifndef PHOTON_SCRIPT_TESTING_PRIVATE_H
#define PHOTON_SCRIPT_TESTING_PRIVATE_H

#include "http/memory.h"
#include "script/app.h"
#include "script/task.h"
#include "script/channel.h"
#include "script/testing.h"

struct testing {
    struct vm *vm;
    struct server *server;
    struct loop loop;
    struct limits limits; // of the VM that runs the specs
    struct stream_host streams;
    struct channel_worker channels;
    struct list registries; // struct testing_registry: of channels, the innermost scope's last
    unsigned depth;         // of scopes
    struct list apps;
    struct list clients;
    struct list turns; // tasks that wait for the next turn
    unsigned last_app;
    uint32_t last_client;
    int argc;
    char **argv;
    int code;
};

// An app that is served in the VM of the specs.
struct testing_app {
    struct list node;
    unsigned id;
    bool is_closed;
    struct app_host host;
    struct app_part *part;
    struct memory_host wire;
    struct channel_registry *channels;
};

// One request of a spec, and what has come of the reply.
struct testing_client {
    struct list node;
    uint32_t id; // also makes the request id
    struct testing *t;
    struct memory *m;
    struct list waits; // of tasks that wait for news of it
};

// Each adds its functions to photon.core, which is on top of the stack.
void testing_app_open(lua_State *L, struct testing *t);
void testing_client_open(lua_State *L, struct testing *t);
void testing_wait_open(lua_State *L, struct testing *t);
void testing_state_open(lua_State *L, struct testing *t);

// As vm_register and vm_of, for functions of this room.
void testing_register(lua_State *L, struct testing *t, const luaL_Reg *functions);
static inline struct testing *testing_of(lua_State *L)
{
    return lua_touserdata(L, lua_upvalueindex(1));
}

// A VM's find_channels: those of the app whose request runs; else what the innermost scope has.
struct channel_registry *testing_find_channels(struct vm *vm);
void testing_channels_open(lua_State *L, struct testing *t);

// The registries of the scopes from that depth on are freed, unless an app still has them.
void testing_channels_free(struct testing *t, unsigned depth);

// The app with that id, NULL when it is closed.
struct testing_app *testing_app_find(struct testing *t, unsigned id);

// Ends its requests at once and frees those of the apps that run nothing. Outside of Lua.
void testing_apps_abort(struct testing *t);
void testing_apps_free(struct testing *t);

// Ends the client's request, as by a lost connection, and forgets it.
void testing_client_close(struct testing_client *c);

// Wakes the tasks that wait for news of it.
void testing_wake_all(struct testing_client *c);

#endif

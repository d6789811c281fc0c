#include "script/channel.h"

#include <uv.h>
#include "script/channel_private.h"
#include "script/json.h"
#include "script/stream_spec.h"
#include "script/task.h"
#include "serve/server.h"

#define CHANNEL_TYPE "photon.channel"

uint64_t channel_lua_now(const struct vm *vm)
{
    // An app is loaded beside the loop that it will belong to.
    bool has_clock = vm->loop && (vm->phase != VM_LOADING || vm->is_testing);
    return has_clock ? vm->loop->now : uv_hrtime() / 1000000;
}

static struct channel_registry *channel_lua_registry(struct vm *vm)
{
    if (vm->find_channels) return vm->find_channels(vm);
    return vm->server ? vm->server->channels : NULL;
}

int channel_lua_refuse(lua_State *L, enum channel_result result)
{
    lua_pushnil(L);
    lua_pushstring(L, channel_result_text(result));
    return 2;
}

// Objects -----------------------------------------------------------------------------------------

static int channel_lua_gc(lua_State *L)
{
    channel_lua_release(lua_touserdata(L, 1));
    return 0;
}

void channel_lua_new_type(lua_State *L, struct vm *vm, const char *type)
{
    static const luaL_Reg functions[] = {{"__gc", channel_lua_gc}, {NULL, NULL}};
    luaL_newmetatable(L, type);
    vm_register(L, vm, functions);
}

void *channel_lua_push(lua_State *L, struct vm *vm, size_t size, const char *type,
                       struct channel *ch, struct channel_registry *r)
{
    struct channel_object *o = lua_newuserdata(L, size);
    memset(o, 0, size);
    luaL_getmetatable(L, type);
    lua_setmetatable(L, -2);
    list_append(&vm->objects, &o->node);
    o->ch = ch ? channel_retain(ch) : NULL;
    o->registry = r;
    return o;
}

void channel_lua_release(struct channel_object *o)
{
    struct channel *ch = o->ch;
    list_remove(&o->node);
    if (o->detach) o->detach(o);
    if (o->release) o->release(o);
    o->detach = o->release = NULL;
    o->ch = NULL;
    channel_release(ch);
}

void channel_lua_close(struct vm *vm)
{
    for (struct list *n = vm->objects.next; n != &vm->objects; n = n->next) {
        struct channel_object *o = list_entry(n, struct channel_object, node);
        if (o->detach) o->detach(o);
    }
}

void channel_lua_drop(struct vm *vm, struct channel_registry *r)
{
    for (struct list *n = vm->objects.next, *next; n != &vm->objects; n = next) {
        struct channel_object *o = list_entry(n, struct channel_object, node);
        next = n->next;
        if (!r || o->registry == r) channel_lua_release(o);
    }
}

void channel_lua_abandon(struct vm *vm)
{
    channel_lua_drop(vm, NULL);
}

struct channel_handle *channel_lua_handle(lua_State *L, int index)
{
    struct channel_handle *h = luaL_testudata(L, index, CHANNEL_TYPE);
    if (h && h->object.ch) return h;
    if (h) luaL_error(L, "the app of this channel has ended");
    luaL_error(
        L, "the methods of a channel are called with a colon: channel:publish(…), not with a %s",
        luaL_typename(L, index));
    return NULL;
}

struct channel *channel_lua_arg(lua_State *L, int index)
{
    return channel_lua_handle(L, index)->object.ch;
}

struct channel_registry *channel_lua_registry_arg(lua_State *L, int index)
{
    return channel_lua_handle(L, index)->object.registry;
}

// Opening -----------------------------------------------------------------------------------------

static const char *channel_lua_problem(enum channel_result result)
{
    switch (result) {
    case CHANNEL_BAD_NAME: return "name";
    case CHANNEL_CONFLICT: return "conflict";
    case CHANNEL_TOO_MANY: return "too many";
    default: return channel_result_text(result);
    }
}

// channel_open(name, [replay, replay_age, backlog, closes]) → channel; or nil, "name", "conflict",
// "too many" or another text. Times in milliseconds. Without a replay: whatever options it has.
static int channel_lua_open_one(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct channel_registry *r = channel_lua_registry(vm);
    struct channel_options options = {0};
    struct slice name;
    struct channel *ch;
    bool has_options = !lua_isnoneornil(L, 2);
    name.ptr = luaL_checklstring(L, 1, &name.len);
    if (!r) return luaL_error(L, "channels are not there in this Lua state (photon.offload)");
    if (has_options) {
        options.replay = (uint32_t)luaL_checknumber(L, 2);
        options.replay_age = (uint64_t)luaL_checknumber(L, 3);
        options.backlog = (uint64_t)luaL_checknumber(L, 4);
        options.slow = lua_toboolean(L, 5) ? CHANNEL_CLOSE : CHANNEL_GAP;
    }
    // The userdata is there before the channel is held, so that nothing is lost when it cannot be.
    struct channel_handle *h = channel_lua_push(L, vm, sizeof *h, CHANNEL_TYPE, NULL, r);
    enum channel_result result =
        channel_open(r, name, has_options ? &options : NULL, vm->load, channel_lua_now(vm), &ch);
    if (result != CHANNEL_OK) {
        lua_pushnil(L);
        lua_pushstring(L, channel_lua_problem(result));
        return 2;
    }
    h->object.ch = ch;
    h->object.release = channel_lua_fail_claim;
    return 1;
}

// channel_is(value)
static int channel_lua_is(lua_State *L)
{
    luaL_getmetatable(L, CHANNEL_TYPE);
    bool is = lua_isuserdata(L, 1) && lua_getmetatable(L, 1) && lua_rawequal(L, -1, -2);
    lua_pushboolean(L, is);
    return 1;
}

// channel_is_loading() → whether the app's files are being run
static int channel_lua_is_loading(lua_State *L)
{
    lua_pushboolean(L, vm_of(L)->phase == VM_LOADING);
    return 1;
}

static int channel_lua_equals(lua_State *L)
{
    lua_pushboolean(L, channel_lua_arg(L, 1) == channel_lua_arg(L, 2));
    return 1;
}

static int channel_lua_name(lua_State *L)
{
    struct slice name = channel_name(channel_lua_arg(L, 1));
    lua_pushlstring(L, name.ptr, name.len);
    return 1;
}

// Publishing --------------------------------------------------------------------------------------

static int channel_lua_push_id(lua_State *L, const struct channel *ch, uint64_t sequence)
{
    char id[CHANNEL_ID];
    lua_pushlstring(L, id, channel_id(ch, sequence, id));
    return 1;
}

static struct slice channel_lua_event_arg(lua_State *L, const char *what)
{
    struct slice event = {0};
    if (lua_gettop(L) > 2) event = stream_name_arg(L, 2, what);
    return event;
}

static int channel_lua_published(lua_State *L, struct channel *ch, enum channel_result result,
                                 uint64_t sequence)
{
    if (result == CHANNEL_BAD_EVENT)
        return luaL_error(L, "the name of an event must not hold CR, LF or NUL");
    return result == CHANNEL_OK ? channel_lua_push_id(L, ch, sequence)
                                : channel_lua_refuse(L, result);
}

// channel:publish(data), channel:publish(event, data) → id; or nil, message
static int channel_lua_publish(lua_State *L)
{
    struct channel *ch = channel_lua_arg(L, 1);
    struct slice event = channel_lua_event_arg(L, "the event of channel:publish"), data;
    uint64_t sequence = 0;
    data = stream_data_arg(L, lua_gettop(L) > 2 ? 3 : 2, "channel:publish");
    enum channel_result result =
        channel_publish(ch, event, data, channel_lua_now(vm_of(L)), &sequence);
    return channel_lua_published(L, ch, result, sequence);
}

// channel:finish(), channel:finish(data), channel:finish(event, data) → id; or nil, message
static int channel_lua_finish(lua_State *L)
{
    struct channel_handle *h = channel_lua_handle(L, 1);
    struct channel *ch = h->object.ch;
    bool has_event = lua_gettop(L) > 1;
    struct slice event = channel_lua_event_arg(L, "the event of channel:finish"), data = {0};
    uint64_t sequence = 0;
    if (has_event) data = stream_data_arg(L, lua_gettop(L) > 2 ? 3 : 2, "channel:finish");
    enum channel_result result =
        channel_finish(ch, has_event, event, data, channel_lua_now(vm_of(L)), &sequence);
    if (result == CHANNEL_OK || result == CHANNEL_IS_FINISHED) h->is_claimed = false;
    if (result == CHANNEL_OK && !has_event) sequence = channel_last(ch);
    return channel_lua_published(L, ch, result, sequence);
}

static int channel_lua_is_finished(lua_State *L)
{
    lua_pushboolean(L, channel_is_finished(channel_lua_arg(L, 1)));
    return 1;
}

// channel:last_id() → the newest event's id; that before the first when there was none
static int channel_lua_last_id(lua_State *L)
{
    struct channel *ch = channel_lua_arg(L, 1);
    return channel_lua_push_id(L, ch, channel_last(ch));
}

static int channel_lua_subscribers(lua_State *L)
{
    lua_pushnumber(L, channel_subscribers(channel_lua_arg(L, 1)));
    return 1;
}

// channel_runs_long() → whether the running task should let others run
static int channel_lua_runs_long(lua_State *L)
{
    enum { SLICE_MS = 8 };
    lua_pushboolean(L, task_clock() - vm_of(L)->slice_began >= SLICE_MS);
    return 1;
}

void channel_lua_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {
        {"channel_open", channel_lua_open_one},
        {"channel_is", channel_lua_is},
        {"channel_is_loading", channel_lua_is_loading},
        {"channel_runs_long", channel_lua_runs_long},
        {NULL, NULL},
    };
    static const luaL_Reg methods[] = {
        {"publish", channel_lua_publish},
        {"finish", channel_lua_finish},
        {"is_finished", channel_lua_is_finished},
        {"last_id", channel_lua_last_id},
        {"subscribers", channel_lua_subscribers},
        {"name", channel_lua_name},
        {NULL, NULL},
    };
    static const luaL_Reg meta[] = {{"__eq", channel_lua_equals}, {NULL, NULL}};
    vm_register(L, vm, functions);
    channel_lua_new_type(L, vm, CHANNEL_TYPE);
    vm_register(L, vm, meta);
    lua_newtable(L);
    vm_register(L, vm, methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -4, "channel_methods"); // photon.channel adds its own
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    channel_lua_open_reading(L, vm);
    channel_lua_open_members(L, vm);
    channel_lua_open_serving(L, vm);
    channel_lua_open_durable(L, vm);
    channel_lua_open_claim(L, vm);
}

// Presence, as Lua sees it: who is there, and functions that are told who comes and goes.
#include "base/log.h"
#include "base/mem.h"
#include "script/channel_private.h"
#include "script/stream_spec.h"
#include "script/task.h"

#define HOOK_TYPE "photon.channel.hook"

enum { HOOK_NOTES = 10000 }; // that wait for a slow function

struct channel_hook_note {
    struct list node;
    size_t member_len, info_len;
    char text[];
};

struct channel_hook {
    struct channel_object object; // first
    struct channel_watch watch;
    struct vm *vm;
    struct list notes;
    unsigned count;
    double id;       // how photon.channel knows it
    bool is_running; // a task takes the notes
};

// channel_members(channel) → { id, info, id, info, … }; an info is JSON, or ""
static int channel_lua_members(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct slice rest, id, info;
    int count = 0;
    struct channel *ch = channel_lua_arg(L, 1);
    lua_newtable(L);
    if (!channel_members(ch, &vm->scratch)) return luaL_error(L, "not enough memory");
    rest = buf_slice(&vm->scratch);
    while (channel_next_member(&rest, &id, &info)) {
        lua_pushlstring(L, id.ptr, id.len);
        lua_rawseti(L, -2, ++count);
        lua_pushlstring(L, info.ptr ? info.ptr : "", info.len);
        lua_rawseti(L, -2, ++count);
    }
    return 1;
}

// channel:kick(member) → how many connections are ended
static int channel_lua_kick(lua_State *L)
{
    struct channel *ch = channel_lua_arg(L, 1);
    struct slice member = stream_name_arg(L, 2, "the member of channel:kick");
    lua_pushnumber(L, channel_kick(ch, member));
    return 1;
}

static void channel_hook_note_news(struct channel_hook *h, struct slice member, struct slice info)
{
    struct channel_hook_note *note = NULL;
    if (h->count < HOOK_NOTES) note = mem_alloc(sizeof *note + member.len + info.len);
    if (!note) {
        log_write(LOG_WARN, "a function of channel:on_join or on_leave is too slow: news of a "
                            "member are dropped");
        return;
    }
    *note = (struct channel_hook_note){.member_len = member.len, .info_len = info.len};
    memcpy(note->text, member.ptr, member.len);
    if (info.len) memcpy(note->text + member.len, info.ptr, info.len);
    list_append(&h->notes, &note->node);
    h->count++;
    if (!h->is_running) h->is_running = task_call(h->vm, "presence", h->id, 0);
}

static void channel_hook_on_news(struct channel_watch *watch, struct slice member,
                                 struct slice info)
{
    channel_hook_note_news(list_entry(watch, struct channel_hook, watch), member, info);
}

static void channel_hook_detach(struct channel_object *o)
{
    channel_unwatch(&((struct channel_hook *)o)->watch);
}

static void channel_hook_release(struct channel_object *o)
{
    struct channel_hook *h = (struct channel_hook *)o;
    struct list *node;
    while ((node = list_take(&h->notes)) != NULL)
        mem_free(list_entry(node, struct channel_hook_note, node));
}

// channel_hook(channel, id, is_leave) → hook
static int channel_lua_hook(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct channel *ch = channel_lua_arg(L, 1);
    double id = luaL_checknumber(L, 2);
    bool is_leave = lua_toboolean(L, 3);
    task_check_loop(L, vm, is_leave ? "channel:on_leave" : "channel:on_join");
    struct channel_hook *h =
        channel_lua_push(L, vm, sizeof *h, HOOK_TYPE, ch, channel_lua_registry_arg(L, 1));
    list_init(&h->notes);
    h->object.detach = channel_hook_detach;
    h->object.release = channel_hook_release;
    h->vm = vm;
    h->id = id;
    if (is_leave)
        h->watch.on_leave = channel_hook_on_news;
    else
        h->watch.on_join = channel_hook_on_news;
    if (!channel_watch(vm->channels, ch, &h->watch)) return luaL_error(L, "not enough memory");
    return 1;
}

// channel_unhook(hook)
static int channel_lua_unhook(lua_State *L)
{
    channel_lua_release(luaL_checkudata(L, 1, HOOK_TYPE));
    return 0;
}

// channel_take_note(hook) → member, info; nothing when there are no more: the task that asks ends
static int channel_lua_take_note(lua_State *L)
{
    struct channel_hook *h = luaL_checkudata(L, 1, HOOK_TYPE);
    struct list *node = h->notes.next;
    if (!h->object.ch || list_is_empty(&h->notes)) {
        h->is_running = false;
        return 0;
    }
    struct channel_hook_note *note = list_entry(node, struct channel_hook_note, node);
    lua_pushlstring(L, note->text, note->member_len);
    lua_pushlstring(L, note->text + note->member_len, note->info_len);
    list_remove(node);
    mem_free(note);
    h->count--;
    return 2;
}

void channel_lua_open_members(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {
        {"channel_members", channel_lua_members},     {"channel_hook", channel_lua_hook},
        {"channel_unhook", channel_lua_unhook},       {"channel_kick", channel_lua_kick},
        {"channel_take_note", channel_lua_take_note}, {NULL, NULL},
    };
    vm_register(L, vm, functions);
    channel_lua_new_type(L, vm, HOOK_TYPE);
    lua_pop(L, 1);
}

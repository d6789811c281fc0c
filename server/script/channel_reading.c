// Reading channels from Lua: what is kept, and what comes, event by event.
#include "script/channel_private.h"
#include "script/task.h"
#include "text/json.h"

#define READER_TYPE "photon.channel.reader"

enum { READER_BATCH = 16 };

// Kept events, held while Lua is given them: a call that raises must not lose them.
struct channel_batch {
    struct channel_object object; // first
    size_t count;
    struct payload *list[];
};

struct channel_reader {
    struct channel_object object; // first
    struct channel_watch watch;
    struct task *waiter;
    uint64_t next, first; // the sequence that it wants; that of list[0]
    uint32_t count, at;
    bool is_foreign; // it began with an id that is not of this channel: a gap is told first
    uint8_t requested_len;
    char requested[CHANNEL_ID];
    struct payload *list[READER_BATCH];
};

bool channel_lua_push_event(lua_State *L, struct vm *vm, const struct payload *record)
{
    struct channel_event event;
    luaL_checkstack(L, 3, "event");
    if (!channel_parse_event(record, &event, &vm->scratch)) return false;
    lua_pushlstring(L, event.id.ptr, event.id.len);
    if (event.event.len)
        lua_pushlstring(L, event.event.ptr, event.event.len);
    else
        lua_pushliteral(L, "message");
    lua_pushlstring(L, event.data.ptr ? event.data.ptr : "", event.data.len);
    return true;
}

// History -----------------------------------------------------------------------------------------

static void channel_batch_release(struct channel_object *o)
{
    struct channel_batch *b = (struct channel_batch *)o;
    for (size_t i = 0; i < b->count; i++) payload_release(b->list[i]);
    b->count = 0;
}

// channel_history(channel, last, [before]) → { id, event, data, id, … }, oldest first; or nil,
// message
static int channel_lua_history(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct channel *ch = channel_lua_arg(L, 1);
    double wanted = luaL_checknumber(L, 2);
    uint64_t before = 0, first;
    struct slice id;
    lua_settop(L, 3);
    if (!lua_isnil(L, 3)) {
        id.ptr = luaL_checklstring(L, 3, &id.len);
        if (!channel_parse_id(ch, id, &before)) {
            lua_pushnil(L);
            lua_pushliteral(L, "the id is not one of this channel");
            return 2;
        }
    }
    size_t most = channel_kept(ch), max = wanted < (double)most ? (size_t)wanted : most;
    struct channel_batch *b = channel_lua_push(L, vm, sizeof *b + max * sizeof *b->list,
                                               READER_TYPE, ch, channel_lua_registry_arg(L, 1));
    b->object.release = channel_batch_release;
    lua_newtable(L);
    if (lua_isnil(L, 3) || before > 0)
        b->count = channel_read_last(ch, before, channel_lua_now(vm), b->list, max, &first);
    for (size_t i = 0; i < b->count; i++) {
        if (!channel_lua_push_event(L, vm, b->list[i])) return luaL_error(L, "not enough memory");
        lua_rawseti(L, 5, (int)(3 * i + 3));
        lua_rawseti(L, 5, (int)(3 * i + 2));
        lua_rawseti(L, 5, (int)(3 * i + 1));
    }
    channel_lua_release(&b->object);
    return 1;
}

// Readers -----------------------------------------------------------------------------------------

static void channel_reader_on_news(struct channel_watch *watch)
{
    struct channel_reader *r = list_entry(watch, struct channel_reader, watch);
    if (r->waiter) task_wake(r->waiter);
    r->waiter = NULL;
}

static void channel_reader_on_cancel(struct task *t)
{
    ((struct channel_reader *)t->wait_data)->waiter = NULL;
}

static void channel_reader_detach(struct channel_object *o)
{
    struct channel_reader *r = (struct channel_reader *)o;
    channel_unwatch(&r->watch);
    if (r->waiter) task_wake(r->waiter); // its channel is gone: it finds that out
    r->waiter = NULL;
}

static void channel_reader_release(struct channel_object *o)
{
    struct channel_reader *r = (struct channel_reader *)o;
    for (; r->at < r->count; r->at++) payload_release(r->list[r->at]);
}

// channel_reader(channel, [after_id]) → reader; from now on without an id
static int channel_lua_reader(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct channel *ch = channel_lua_arg(L, 1);
    struct slice id = {0};
    uint64_t sequence;
    if (!lua_isnoneornil(L, 2)) id.ptr = luaL_checklstring(L, 2, &id.len);
    struct channel_reader *r =
        channel_lua_push(L, vm, sizeof *r, READER_TYPE, ch, channel_lua_registry_arg(L, 1));
    r->object.detach = channel_reader_detach;
    r->object.release = channel_reader_release;
    r->watch.on_news = channel_reader_on_news;
    r->next = channel_last(ch) + 1;
    if (!id.ptr) return 1;
    if (channel_parse_id(ch, id, &sequence) && sequence < r->next) {
        r->next = sequence + 1;
        return 1;
    }
    r->is_foreign = true;
    r->next = 1;
    r->requested_len = (uint8_t)(id.len < CHANNEL_ID ? id.len : CHANNEL_ID);
    memcpy(r->requested, id.ptr, r->requested_len);
    return 1;
}

// As subscribers are told of it: no id, "photon.gap", its data.
static int channel_lua_push_gap(lua_State *L, struct vm *vm, struct channel_reader *r,
                                struct slice requested, bool has_oldest)
{
    char id[CHANNEL_ID];
    vm->scratch.len = 0;
    bool ok = buf_append_slice(&vm->scratch, SLICE("{\"requested\":"));
    if (ok && json_write_string(&vm->scratch, requested) != JSON_OK)
        ok = buf_append(&vm->scratch, "null", 4);
    if (ok && has_oldest) {
        int len = (int)channel_id(r->object.ch, r->next, id);
        ok = buf_append_format(&vm->scratch, ",\"oldest\":\"%.*s\"}", len, id);
    } else if (ok) {
        ok = buf_append_slice(&vm->scratch, SLICE(",\"oldest\":null}"));
    }
    if (!ok) return luaL_error(L, "not enough memory");
    lua_pushboolean(L, false);
    lua_pushliteral(L, "photon.gap");
    lua_pushlstring(L, vm->scratch.ptr, vm->scratch.len);
    return 3;
}

// The next batch. True when a gap has to be told first: what it wants is not kept any more.
static bool channel_reader_fill(struct channel_reader *r, uint64_t now)
{
    r->at = 0;
    r->count = (uint32_t)channel_read(r->object.ch, r->next, now, r->list, READER_BATCH, &r->first);
    bool has_gap = r->is_foreign || r->first > r->next;
    if (r->first > r->next) r->next = r->first;
    return has_gap;
}

static int channel_lua_at_end(lua_State *L)
{
    lua_pushboolean(L, false);
    return 1;
}

// channel_read(reader) → id, event, data (id is false for a gap); false at the end; nil when the
// task has been parked
static int channel_lua_read(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct channel_reader *r = luaL_checkudata(L, 1, READER_TYPE);
    char id[CHANNEL_ID];
    if (!r->object.ch) return channel_lua_at_end(L);
    if (r->at == r->count) {
        if (!vm->current || !vm->channels) task_check_wait(L, vm, "channel:events"); // raises
        // Watched first, and asked for the end first: what comes meanwhile is not missed.
        if (!r->watch.link && !channel_watch(vm->channels, r->object.ch, &r->watch))
            return luaL_error(L, "not enough memory");
        bool is_finished = channel_is_finished(r->object.ch);
        uint64_t wanted = r->next;
        if (channel_reader_fill(r, channel_lua_now(vm))) {
            struct slice requested = slice_of(id, channel_id(r->object.ch, wanted - 1, id));
            if (r->is_foreign) requested = slice_of(r->requested, r->requested_len);
            r->is_foreign = false;
            return channel_lua_push_gap(L, vm, r, requested, r->count > 0);
        }
        if (r->count == 0 && is_finished) return channel_lua_at_end(L);
    }
    if (r->at < r->count) {
        if (!channel_lua_push_event(L, vm, r->list[r->at])) return luaL_error(L, "no memory");
        payload_release(r->list[r->at++]);
        r->next++;
        return 3;
    }
    struct task *t = task_check_wait(L, vm, "channel:events");
    if (r->waiter) {
        return task_refuse(L, "channel:events",
                           "of one call is read by one task: another waits for it already");
    }
    r->waiter = t;
    task_park(r->waiter, r, channel_reader_on_cancel);
    lua_pushnil(L);
    return 1;
}

void channel_lua_open_reading(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {
        {"channel_history", channel_lua_history},
        {"channel_reader", channel_lua_reader},
        {"channel_read", channel_lua_read},
        {NULL, NULL},
    };
    vm_register(L, vm, functions);
    channel_lua_new_type(L, vm, READER_TYPE);
    lua_pop(L, 1);
}

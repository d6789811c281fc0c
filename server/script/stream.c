#include "script/stream.h"

#include "base/log.h"
#include "base/mem.h"
#include "script/json.h"
#include "script/request.h"
#include "script/result.h"
#include "script/stream_spec.h"
#include "script/task.h"

enum {
    STREAM_SLICE_MS = 8,        // after which a producer that never waits lets others run
    STREAM_CLOSED_CALLS = 1000, // calls in vain that one slice may make
};

// What a stream is to its VM, beside the stream itself: its handle, who waits for it to drain, and
// whether it is to be pushed when the slice ends.
struct stream_owner {
    struct vm_after after;
    struct vm_slot *slot;
    struct stream *stream;
    struct task *waiter;
};

// A loop that does not look at what send returns would never end. Who is detached has other work to
// end than telling its client; an endless loop of that kind meets lua_budget.
static int stream_closed(lua_State *L)
{
    struct vm *vm = vm_of(L);
    bool goes_on = vm->current && vm->current->is_detached;
    if (!goes_on && ++vm->closed_calls > STREAM_CLOSED_CALLS) {
        lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_CANCELLED]);
        return lua_error(L);
    }
    lua_pushnil(L);
    lua_pushliteral(L, "closed");
    return 2;
}

// The open stream of the object at index 1, NULL when it is over.
static struct stream *stream_arg(lua_State *L)
{
    if (!lua_istable(L, 1))
        luaL_error(L, "the methods of a stream are called with a colon: stream:send(…)");
    struct vm_slot *slot = vm_slot_arg(L, vm_of(L), 1);
    return slot ? slot->stream : NULL;
}

static void stream_on_slice_end(struct vm_after *after)
{
    struct stream_owner *o = list_entry(after, struct stream_owner, after);
    stream_push(o->stream);
}

static void stream_touch(struct vm *vm, struct stream *s)
{
    struct stream_owner *o = s->owner;
    if (!list_is_linked(&o->after.node)) list_append(&vm->after, &o->after.node);
}

static void stream_lua_on_drain(struct stream *s)
{
    struct stream_owner *o = s->owner;
    if (o->waiter) task_wake(o->waiter);
    o->waiter = NULL;
}

// The exchange's own watch cancels the tasks; here only what is ours goes.
static void stream_lua_on_over(struct stream *s)
{
    struct stream_owner *o = s->owner;
    if (o->waiter) task_wake(o->waiter);
    if (o->slot->stream == s) o->slot->stream = NULL;
    list_remove(&o->after.node);
    mem_free(o);
}

static void stream_forget_waiter(struct task *t)
{
    struct stream *s = t->wait_data;
    ((struct stream_owner *)s->owner)->waiter = NULL;
}

// A peer that takes bytes as fast as they are made never fills the socket; its producer must let
// others run all the same. The clock is asked only when a send has pushed what was pending.
static bool stream_has_run_long(const struct vm *vm, const struct stream *s)
{
    return s->pending.len == 0 && task_clock() - vm->slice_began >= STREAM_SLICE_MS;
}

// After something was written: true, or a wait until the socket drains or others have run. The wait
// ends with true, or with nil and "closed" (see photon.wait for what a task is resumed with).
static int stream_written(lua_State *L, struct stream *s, bool ok, const char *what)
{
    struct vm *vm = vm_of(L);
    struct stream_owner *o = s->owner;
    struct task *t;
    if (!ok) return stream_closed(L);
    stream_touch(vm, s);
    bool is_full = stream_is_full(s) && !o->waiter;
    if (!is_full && !(stream_has_run_long(vm, s) && lua_isyieldable(L))) {
        lua_pushboolean(L, true);
        return 1;
    }
    t = task_check_quiet_wait(L, vm, what);
    if (!t) return stream_closed(L);
    task_park(t, s, is_full ? stream_forget_waiter : NULL);
    if (is_full)
        o->waiter = t;
    else
        task_wake(t);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_WAIT]);
    return lua_yield(L, 1);
}

// stream:send(data), stream:send(event, data)
static int stream_lua_send(lua_State *L)
{
    struct stream *s = stream_arg(L);
    struct slice event = {0}, data;
    bool has_event = lua_gettop(L) > 2;
    if (!s) return stream_closed(L);
    data = stream_data_arg(L, has_event ? 3 : 2, "stream:send");
    if (s->spec.type == STREAM_NDJSON) {
        if (has_event) return luaL_error(L, "stream:send takes one value, a line of its own");
        vm_of(L)->scratch.len = 0;
        const char *error = json_encode(L, 2, &vm_of(L)->scratch);
        if (error) return luaL_error(L, "stream:send: %s", error);
        data = buf_slice(&vm_of(L)->scratch);
        return stream_written(L, s, stream_write_line(s, data), "stream:send");
    }
    if (s->spec.type == STREAM_BYTES) {
        return luaL_error(L, "stream:send is for event streams; use stream:write");
    }
    if (has_event) {
        event = stream_name_arg(L, 2, "the event of stream:send");
        const char *wrong = sse_check(&(struct sse_event){.event = event});
        if (wrong) return luaL_error(L, "stream:send: %s", wrong);
    }
    return stream_written(L, s, stream_send(s, event, data), "stream:send");
}

// stream:event{ event =, data =, id =, retry =, comment = }
static int stream_lua_event(lua_State *L)
{
    struct stream *s = stream_arg(L);
    struct sse_event e = {0};
    luaL_checktype(L, 2, LUA_TTABLE);
    if (!s) return stream_closed(L);
    if (s->spec.type != STREAM_SSE) return luaL_error(L, "stream:event is for event streams");
    stream_read_event(L, &e);
    const char *wrong = sse_check(&e);
    if (wrong) return luaL_error(L, "stream:event: %s", wrong);
    return stream_written(L, s, stream_send_event(s, &e), "stream:event");
}

static int stream_lua_comment(lua_State *L)
{
    struct stream *s = stream_arg(L);
    if (!s) return stream_closed(L);
    if (s->spec.type != STREAM_SSE) return luaL_error(L, "stream:comment is for event streams");
    struct sse_event e = {.retry = -1, .has_comment = true};
    e.comment = stream_name_arg(L, 2, "a comment");
    return stream_written(L, s, stream_send_event(s, &e), "stream:comment");
}

static int stream_lua_write(lua_State *L)
{
    struct stream *s = stream_arg(L);
    if (!s) return stream_closed(L);
    if (s->spec.type == STREAM_SSE) {
        return luaL_error(L, "stream:write is for plain streams; use stream:send or stream:event");
    }
    struct slice bytes = stream_name_arg(L, 2, "what stream:write takes");
    return stream_written(L, s, stream_write(s, bytes), "stream:write");
}

static int stream_lua_flush(lua_State *L)
{
    struct stream *s = stream_arg(L);
    if (!s) return stream_closed(L);
    stream_push(s);
    return stream_written(L, s, true, "stream:flush");
}

static int stream_lua_close(lua_State *L)
{
    struct stream *s = stream_arg(L);
    if (s) stream_end(s, -1);
    return 0;
}

static int stream_lua_is_open(lua_State *L)
{
    struct stream *s = stream_arg(L);
    lua_pushboolean(L, s && !s->is_ended);
    return 1;
}

static void stream_push_object(lua_State *L, struct vm *vm, struct vm_slot *slot)
{
    lua_createtable(L, 1, 1);
    lua_pushnumber(L, vm_slot_handle(slot));
    lua_rawseti(L, -2, 1);
    int object = lua_gettop(L);
    if (stream_push_last_id(L, slot->x)) lua_setfield(L, object, "last_event_id");
    lua_settop(L, object);
    lua_rawgeti(L, LUA_REGISTRYINDEX, vm->refs[VM_REF_STREAM]);
    lua_setmetatable(L, object);
}

// stream_begin(status, spec, headers) → the stream object, or nothing when there is none to run (a
// HEAD request, a limit)
static int stream_lua_begin(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct task *t = vm->current;
    struct header items[RESULT_MAX_HEADERS];
    struct headers headers = {items, 0, RESULT_MAX_HEADERS};
    struct stream_spec spec;
    struct stream_owner *o;
    int64_t length = -1;
    lua_settop(L, 3);
    if (!t->x) return 0;
    stream_read_spec(L, &spec);
    if (stream_field(L, "headers") && !result_add_headers(L, lua_gettop(L), &headers, &length)) {
        return lua_error(L);
    }
    if (lua_istable(L, 3) && !result_add_headers(L, 3, &headers, &length)) return lua_error(L);
    int status = (int)lua_tointeger(L, 1);
    if (t->x->is_head_request) {
        stream_answer_head(t->x, &spec, status, &headers);
        return 0;
    }
    if (!request_admit_ip(vm, t->x)) return 0;
    if (stream_spec_flag(L, "detach")) t->is_detached = true;
    luaL_checkstack(L, 8, NULL);
    stream_push_object(L, vm, t->slot); // all that may raise is done
    o = mem_zalloc(sizeof *o);
    if (!o) return luaL_error(L, "not enough memory");
    struct stream *s = stream_open(vm->streams, t->x, &spec, status, &headers);
    if (!s) {
        mem_free(o);
        return 0;
    }
    *o = (struct stream_owner){{.on_slice_end = stream_on_slice_end}, t->slot, s, NULL};
    s->owner = o;
    s->on_drain = stream_lua_on_drain;
    s->on_over = stream_lua_on_over;
    t->slot->stream = s;
    stream_touch(vm, s); // so that the head leaves with the first wait, even without an event
    return 1;
}

// stream_finish(stream, is_clean): the end of the handler
static int stream_lua_finish(lua_State *L)
{
    struct stream *s = stream_arg(L);
    if (!s) return 0;
    if (lua_toboolean(L, 2))
        stream_end(s, -1);
    else
        stream_abort(s);
    return 0;
}

// stream_can_answer(stream): whether an error can still have a reply of its own
static int stream_lua_can_answer(lua_State *L)
{
    struct stream *s = stream_arg(L);
    lua_pushboolean(L, s && !s->is_headed);
    return 1;
}

// stream_drop(stream): nothing of it is to be sent
static int stream_lua_drop(lua_State *L)
{
    struct stream *s = stream_arg(L);
    if (s) s->is_ended = true;
    return 0;
}

// What has been looked at goes to the end, so that the next call goes on where this one stopped.
bool stream_lua_end_some(struct vm *vm, struct stream_host *host, bool every, unsigned most)
{
    struct list ending, *node;
    bool is_done;
    list_init(&ending);
    list_move_all(&ending, &host->streams);
    while (most > 0 && (node = list_take(&ending)) != NULL) {
        struct stream *s = list_entry(node, struct stream, node);
        struct stream_owner *o = s->owner;
        list_append(&host->streams, node);
        if (s->is_ended || !o || o->slot->vm != vm || !(every || s->spec.reconnects)) continue;
        if (o->slot->server) task_cancel(o->slot->server);
        stream_end(s, -1);
        most--;
    }
    is_done = list_is_empty(&ending);
    list_move_all(&ending, &host->streams);
    list_move_all(&host->streams, &ending);
    return is_done;
}

void stream_lua_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {
        {"stream_begin", stream_lua_begin},
        {"stream_finish", stream_lua_finish},
        {"stream_can_answer", stream_lua_can_answer},
        {"stream_drop", stream_lua_drop},
        {NULL, NULL},
    };
    static const luaL_Reg methods[] = {
        {"send", stream_lua_send},       {"event", stream_lua_event},
        {"comment", stream_lua_comment}, {"write", stream_lua_write},
        {"flush", stream_lua_flush},     {"close", stream_lua_close},
        {"is_open", stream_lua_is_open}, {NULL, NULL},
    };
    vm_register(L, vm, functions);
    stream_lua_open_append(L, vm);
    lua_newtable(L);
    vm_register(L, vm, methods);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "stream_methods"); // photon.door adds on_close
    lua_newtable(L);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "__index");
    vm->refs[VM_REF_STREAM] = luaL_ref(L, LUA_REGISTRYINDEX);
    lua_pop(L, 1);
}

// Durable channels from Lua: opening a log and publishing are waits. What is waited for is a
// ticket: it stands in vm->objects, so that a VM that ends is told nothing any more.
#include <string.h>
#include "script/channel_private.h"
#include "script/stream_spec.h"
#include "script/task.h"
#include "serve/channel_log.h"

#define TICKET_TYPE "photon.channel.ticket"

struct channel_ticket {
    struct channel_object object; // first
    struct channel_log_job *job;  // NULL: it has come back
    struct task *task;            // who waits; NULL: nobody any more
    enum channel_result result;
    int error;
    uint64_t sequence;
    bool is_attach;
    char text[JOURNAL_ERROR]; // of an attach, what is wrong
};

static void channel_ticket_detach(struct channel_object *o)
{
    struct channel_ticket *t = (struct channel_ticket *)o;
    if (t->job) t->job->on_done = NULL;
    t->job = NULL;
    t->task = NULL;
}

static void channel_ticket_on_cancel(struct task *task)
{
    ((struct channel_ticket *)task->wait_data)->task = NULL;
}

static void channel_ticket_on_done(struct channel_log_job *job)
{
    struct channel_ticket *t = job->owner;
    t->job = NULL;
    t->result = job->result;
    t->error = job->error;
    t->sequence = job->sequence;
    if (t->is_attach) memcpy(t->text, job->text, sizeof t->text);
    if (t->task) task_wake(t->task);
    t->task = NULL;
}

static struct channel_ticket *channel_ticket_push(lua_State *L, struct vm *vm, bool is_attach)
{
    struct channel *ch = channel_lua_arg(L, 1);
    size_t size = is_attach ? sizeof(struct channel_ticket) : offsetof(struct channel_ticket, text);
    struct channel_ticket *t =
        channel_lua_push(L, vm, size, TICKET_TYPE, ch, channel_lua_registry_arg(L, 1));
    t->object.detach = channel_ticket_detach;
    t->is_attach = is_attach;
    return t;
}

// The job is on its way: the task waits for it. Pushes false and the ticket (on top already).
static int channel_ticket_park(lua_State *L, struct channel_ticket *t, struct channel_log_job *job,
                               struct task *task)
{
    t->job = job;
    t->task = task;
    job->owner = t;
    job->on_done = channel_ticket_on_done;
    task_park(task, t, channel_ticket_on_cancel);
    lua_pushboolean(L, false);
    lua_insert(L, -2);
    return 2;
}

static int channel_ticket_refuse(lua_State *L, const struct channel_ticket *t)
{
    lua_pushnil(L);
    if (t->result != CHANNEL_LOG_FAILED)
        lua_pushstring(L, channel_result_text(t->result));
    else if (t->is_attach)
        lua_pushstring(L, t->text);
    else
        lua_pushfstring(L, "the channel's log cannot be written: %s", strerror(t->error));
    return 2;
}

// channel_outcome(ticket) → true or an id; or nil, message
static int channel_lua_outcome(lua_State *L)
{
    struct channel_ticket *t = luaL_checkudata(L, 1, TICKET_TYPE);
    char id[CHANNEL_ID];
    if (!t->object.ch || t->job) return luaL_error(L, "the channel's log has not answered");
    if (t->result != CHANNEL_OK)
        channel_ticket_refuse(L, t);
    else if (t->is_attach)
        lua_pushboolean(L, true);
    else
        lua_pushlstring(L, id, channel_id(t->object.ch, t->sequence, id));
    int count = t->result == CHANNEL_OK ? 1 : 2;
    channel_lua_release(&t->object);
    return count;
}

// Opening -----------------------------------------------------------------------------------------

// While the app loads, that blocks: it is not on a serving loop.
static int channel_lua_attach_now(lua_State *L, struct channel *ch, const char *path,
                                  const struct channel_options *options)
{
    struct channel_ticket t = {.is_attach = true};
    t.result = channel_log_attach(ch, path, options, t.text);
    if (t.result != CHANNEL_OK) return channel_ticket_refuse(L, &t);
    lua_pushboolean(L, true);
    return 1;
}

// channel_attach(channel, path, replay, replay_age, backlog, closes) → true; false and a ticket
// when the task has been parked; or nil, message. Where nothing is served, and under photon.test,
// nothing is written.
static int channel_lua_attach(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct channel *ch = channel_lua_arg(L, 1);
    const char *path = luaL_checkstring(L, 2);
    struct channel_options options = {
        .replay = (uint32_t)luaL_checknumber(L, 3),
        .replay_age = (uint64_t)luaL_checknumber(L, 4),
        .backlog = (uint64_t)luaL_checknumber(L, 5),
        .slow = lua_toboolean(L, 6) ? CHANNEL_CLOSE : CHANNEL_GAP,
    };
    struct channel_log_job *job;
    if (!vm->loop || vm->find_channels) {
        lua_pushboolean(L, true);
        return 1;
    }
    if (vm->phase == VM_LOADING) return channel_lua_attach_now(L, ch, path, &options);
    struct task *task = task_check_wait(L, vm, "photon.channel with a log");
    struct channel_ticket *t = channel_ticket_push(L, vm, true);
    t->result = channel_log_attach_later(ch, path, &options, vm->channels, &job);
    if (t->result != CHANNEL_OK) return channel_ticket_refuse(L, t);
    if (job) return channel_ticket_park(L, t, job, task);
    lua_pushboolean(L, true);
    return 1;
}

// channel_is_durable(channel)
static int channel_lua_is_durable(lua_State *L)
{
    lua_pushboolean(L, channel_is_durable(channel_lua_arg(L, 1)));
    return 1;
}

// Publishing --------------------------------------------------------------------------------------

// The arguments of publish and finish, `top` of them: channel, [event,] data. Copied at once.
static int channel_lua_write(lua_State *L, struct vm *vm, int top, enum channel_log_kind kind,
                             struct task *task, const char *what)
{
    struct channel_ticket *t = channel_ticket_push(L, vm, false);
    struct slice event = {0}, data = {0};
    struct channel_log_job *job;
    if (top > 2) event = stream_name_arg(L, 2, what);
    if (top > 1) data = stream_data_arg(L, top > 2 ? 3 : 2, what);
    t->result =
        channel_log_publish(t->object.ch, kind, event, data, task ? vm->channels : NULL, &job);
    if (t->result == CHANNEL_BAD_EVENT)
        return luaL_error(L, "the name of an event must not hold CR, LF or NUL");
    if (t->result != CHANNEL_OK) return channel_ticket_refuse(L, t);
    if (task) return channel_ticket_park(L, t, job, task);
    lua_pushnil(L);
    lua_pushliteral(L, "closed");
    return 2;
}

// channel_write(channel, [event,] data) → false and a ticket; or nil, message
static int channel_lua_write_event(lua_State *L)
{
    struct vm *vm = vm_of(L);
    int top = lua_gettop(L);
    struct task *task = task_check_wait(L, vm, "channel:publish");
    if (top < 2) return luaL_error(L, "channel:publish takes data");
    return channel_lua_write(L, vm, top, CHANNEL_LOG_PUBLISH, task, "channel:publish");
}

// channel_write_end(channel, [event,] [data]): the same. A task that was cancelled ends the channel
// all the same, and does not wait for it.
static int channel_lua_write_end(lua_State *L)
{
    struct vm *vm = vm_of(L);
    int top = lua_gettop(L);
    struct task *task = task_check_quiet_wait(L, vm, "channel:finish");
    return channel_lua_write(L, vm, top, top > 1 ? CHANNEL_LOG_FINISH : CHANNEL_LOG_END, task,
                             "channel:finish");
}

void channel_lua_open_durable(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {
        {"channel_attach", channel_lua_attach},         {"channel_outcome", channel_lua_outcome},
        {"channel_is_durable", channel_lua_is_durable}, {"channel_write", channel_lua_write_event},
        {"channel_write_end", channel_lua_write_end},   {NULL, NULL},
    };
    vm_register(L, vm, functions);
    channel_lua_new_type(L, vm, TICKET_TYPE);
    lua_pop(L, 1);
}

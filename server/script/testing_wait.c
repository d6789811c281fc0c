// How the tasks of specs wait: for news of a request, at most for some real time (the clock of the
// loop may be frozen, so that time is libuv's), or for the next turn of the loop.
#include "base/mem.h"
#include "script/testing_private.h"

struct testing_wait {
    uv_timer_t timer;
    struct loop_turn turn;
    struct list node; // client->waits, or testing->turns
    struct task *task;
};

static void testing_on_closed(uv_handle_t *handle)
{
    mem_free(list_entry((uv_timer_t *)handle, struct testing_wait, timer));
}

static void testing_wait_free(struct testing_wait *w)
{
    list_remove(&w->node);
    loop_forget(&w->turn);
    uv_close((uv_handle_t *)&w->timer, testing_on_closed);
}

static void testing_on_cancel(struct task *task)
{
    testing_wait_free(task->wait_data);
}

static void testing_wait_end(struct testing_wait *w)
{
    struct task *task = w->task;
    testing_wait_free(w);
    task_wake(task);
}

static void testing_on_time(uv_timer_t *timer)
{
    testing_wait_end(list_entry(timer, struct testing_wait, timer));
}

static void testing_on_turn(struct loop_turn *turn)
{
    testing_wait_end(list_entry(turn, struct testing_wait, turn));
}

void testing_wake_all(struct testing_client *c)
{
    struct list *node;
    while ((node = list_take(&c->waits)) != NULL) {
        testing_wait_end(list_entry(node, struct testing_wait, node));
    }
}

static struct testing_wait *testing_park(lua_State *L, struct testing *t, const char *what)
{
    struct task *task = task_check_wait(L, t->vm, what);
    struct testing_wait *w = mem_zalloc(sizeof *w);
    if (!w) luaL_error(L, "not enough memory");
    w->task = task;
    w->turn.on_turn = testing_on_turn;
    uv_timer_init(&t->loop.uv, &w->timer);
    task_park(task, w, testing_on_cancel);
    return w;
}

// test_wait(client, seconds): parks until there is news of it
static int testing_lua_wait(lua_State *L)
{
    struct testing *t = testing_of(L);
    double id = luaL_checknumber(L, 1), seconds = luaL_checknumber(L, 2);
    struct testing_wait *w = testing_park(L, t, "a client of photon.test");
    for (struct list *n = t->clients.next; n != &t->clients; n = n->next) {
        struct testing_client *c = list_entry(n, struct testing_client, node);
        if (c->id == id) list_append(&c->waits, &w->node);
    }
    uv_update_time(&t->loop.uv);
    uv_timer_start(&w->timer, testing_on_time, seconds > 0 ? (uint64_t)(seconds * 1000) : 0, 0);
    return 0;
}

// test_turn(): parks until the loop has gone round
static int testing_lua_turn(lua_State *L)
{
    struct testing *t = testing_of(L);
    struct testing_wait *w = testing_park(L, t, "photon.test");
    loop_next_turn(&t->loop, &w->turn);
    return 0;
}

// test_is_busy() → whether tasks are ready to run or news are on their way
static int testing_lua_is_busy(lua_State *L)
{
    struct testing *t = testing_of(L);
    lua_pushboolean(L, !list_is_empty(&t->vm->ready) || !list_is_empty(&t->loop.turns));
    return 1;
}

// test_freeze([unix time])
static int testing_lua_freeze(lua_State *L)
{
    struct loop *loop = &testing_of(L)->loop;
    double seconds = luaL_optnumber(L, 1, (double)loop_unix_ms(loop) / 1000);
    loop_clock_thaw(loop);
    loop_clock_freeze(loop, (int64_t)(seconds * 1000));
    return 0;
}

// test_advance(milliseconds)
static int testing_lua_advance(lua_State *L)
{
    loop_clock_advance(&testing_of(L)->loop, (uint64_t)luaL_checknumber(L, 1));
    return 0;
}

static int testing_lua_thaw(lua_State *L)
{
    loop_clock_thaw(&testing_of(L)->loop);
    return 0;
}

// test_now() → seconds of a monotonic clock that is never frozen
static int testing_lua_now(lua_State *L)
{
    lua_pushnumber(L, (double)uv_hrtime() / 1e9);
    return 1;
}

// test_clock() → whether it is frozen, unix time, milliseconds until a timer may fire (or nil)
static int testing_lua_clock(lua_State *L)
{
    struct loop *loop = &testing_of(L)->loop;
    uint64_t next = wheel_next(&loop->wheel);
    lua_pushboolean(L, loop->frozen_unix != 0);
    lua_pushnumber(L, (double)loop_unix_ms(loop) / 1000);
    if (next == UINT64_MAX) return 2;
    lua_pushnumber(L, next > loop->now ? (double)(next - loop->now) : 0);
    return 3;
}

void testing_wait_open(lua_State *L, struct testing *t)
{
    static const luaL_Reg functions[] = {
        {"test_wait", testing_lua_wait},
        {"test_turn", testing_lua_turn},
        {"test_is_busy", testing_lua_is_busy},
        {"test_freeze", testing_lua_freeze},
        {"test_advance", testing_lua_advance},
        {"test_thaw", testing_lua_thaw},
        {"test_clock", testing_lua_clock},
        {"test_now", testing_lua_now},
        {NULL, NULL},
    };
    testing_register(L, t, functions);
}

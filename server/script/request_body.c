#include "script/request.h"

#include "script/task.h"
#include "text/mime.h"

// A task that waits for the body to be complete. Lives in the exchange's arena.
struct request_wait {
    struct exchange_watch watch;
    struct exchange *x;
    struct task *task;
};

static void request_end_wait(struct request_wait *w)
{
    exchange_unwatch(&w->watch);
    task_wake(w->task);
}

static void request_on_body(struct exchange_watch *watch)
{
    struct request_wait *w = list_entry(watch, struct request_wait, watch);
    if (w->x->is_body_complete || w->x->body_error) request_end_wait(w);
}

static void request_on_over(struct exchange_watch *watch, enum exchange_end how)
{
    (void)how;
    request_end_wait(list_entry(watch, struct request_wait, watch));
}

static void request_on_cancel(struct task *t)
{
    struct request_wait *w = t->wait_data;
    exchange_unwatch(&w->watch);
}

// False when there is no memory.
static bool request_park(struct task *t, struct exchange *x)
{
    struct request_wait *w = arena_zalloc(&x->arena, sizeof *w);
    if (!w || !exchange_hold(x)) return false;
    w->watch.on_body = request_on_body;
    w->watch.on_over = request_on_over;
    w->x = x;
    w->task = t;
    exchange_watch(x, &w->watch);
    task_park(t, w, request_on_cancel);
    return true;
}

// A coding other than identity is not undone here, and must not pass for the thing itself.
static bool request_is_coded(const struct exchange *x)
{
    const struct header *coding = headers_find(&x->request.headers, SLICE("content-encoding"));
    return coding && coding->value.len && !slice_equals_nocase(coding->value, SLICE("identity"));
}

static int request_refuse_body(lua_State *L, int status)
{
    lua_pushboolean(L, false);
    lua_pushinteger(L, status);
    return 2;
}

// core.body_read(req): the whole body; or false and the status that says why not; or false alone
// when the exchange is over. Else nil: the task is parked, and this is to be called again after the
// wait.
static int request_body_read(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct exchange *x = request_arg(L);
    if (!x) {
        lua_pushboolean(L, false);
        return 1;
    }
    if (request_is_coded(x)) return request_refuse_body(L, 415);
    if (!x->is_body_complete && !x->body_error) {
        struct task *t = task_check_wait(L, vm, "req:body");
        exchange_want(x, x->max_body + 1);
        if (!x->is_body_complete && !x->body_error)
            return request_park(t, x) ? 0 : luaL_error(L, "not enough memory");
    }
    if (x->body_error) return request_refuse_body(L, x->body_error);
    request_push_slice(L, buf_slice(&x->body));
    buf_reset(&x->body);
    return 1;
}

// core.body_is_json(req): whether the media type is JSON in UTF-8.
static int request_body_is_json(lua_State *L)
{
    struct exchange *x = request_arg(L);
    const struct header *type = x ? headers_find(&x->request.headers, SLICE("content-type")) : NULL;
    struct slice charset = {0};
    bool is_json = type && mime_is_json(type->value);
    if (is_json && mime_parameter(type->value, SLICE("charset"), &charset))
        is_json = slice_equals_nocase(charset, SLICE("utf-8")) ||
                  slice_equals_nocase(charset, SLICE("utf8")) ||
                  slice_equals_nocase(charset, SLICE("us-ascii"));
    lua_pushboolean(L, is_json);
    return 1;
}

void request_body_open(lua_State *L, struct vm *vm)
{
    static const luaL_Reg functions[] = {
        {"body_read", request_body_read}, {"body_is_json", request_body_is_json}, {NULL, NULL}};
    vm_register(L, vm, functions);
}

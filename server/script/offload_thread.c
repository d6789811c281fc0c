// One thread of a pool: its Lua state, and the calls in it.
#include <time.h>
#include "script/offload_pool.h"
#include "script/pack.h"
#include "script/task.h"

enum { IDLE_SECONDS = 30 };

struct worker {
    struct offload *pool;
    struct vm *vm;
    struct buf paths; // of the VM, as in a job
    struct counters counters;
    struct offload_job *job;
};

static void set_package(lua_State *L, const char *field, const char *value)
{
    lua_getglobal(L, "package");
    lua_pushstring(L, value);
    lua_setfield(L, -2, field);
    lua_pop(L, 1);
}

static int prepare(lua_State *L)
{
    static const char *const modules[] = {"photon.finalizer", "photon.load"};
    const struct worker *w = lua_touserdata(L, 1);
    const char *path = w->paths.ptr;
    set_package(L, "path", path);
    set_package(L, "cpath", path + strlen(path) + 1);
    for (int i = 0; i < 2; i++) {
        lua_getglobal(L, "require");
        lua_pushstring(L, modules[i]);
        lua_call(L, 1, 0);
    }
    return 0;
}

static void close_vm(struct worker *w)
{
    task_free_vm(w->vm);
    w->vm = NULL;
}

// Callers with other paths may mean other modules by the same names.
static bool open_vm(struct worker *w)
{
    struct offload *pool = w->pool;
    struct slice paths = buf_slice(&w->job->paths);
    if (w->vm && slice_equals(buf_slice(&w->paths), paths)) return true;
    close_vm(w);
    w->paths.len = 0;
    if (!buf_append_slice(&w->paths, paths)) return false;
    w->vm = vm_new(NULL, &pool->limits, &w->counters, pool->core);
    if (!w->vm) return false;
    w->vm->server = pool->server;
    w->vm->phase = VM_SERVING; // without a loop: nothing can wait here
    if (lua_cpcall(w->vm->L, prepare, w) == 0) return true;
    close_vm(w);
    return false;
}

// Pushes the function that the job names; `call` is moved on to its arguments.
static void push_function(lua_State *L, struct slice *call)
{
    lua_getglobal(L, "require");
    pack_push(L, call);
    lua_call(L, 1, 1);
    pack_push(L, call);
    if (!lua_istable(L, -2)) luaL_error(L, "the module of photon.offload gives no table");
    const char *name = lua_tostring(L, -1);
    lua_pushvalue(L, -1);
    lua_gettable(L, -3);
    if (!lua_isfunction(L, -1)) {
        luaL_error(L, "the module of photon.offload has no function '%s'", name);
    }
}

static int run(lua_State *L)
{
    const struct worker *w = lua_touserdata(L, 1);
    struct offload_job *job = w->job;
    struct slice call = buf_slice(&job->call);
    int first = lua_gettop(L) + 1;

    push_function(L, &call);
    lua_replace(L, first);
    lua_settop(L, first);
    pack_push(L, &call);
    int count = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    luaL_checkstack(L, count + 8, "too many arguments");
    for (int i = 0; i < count; i++) pack_push(L, &call);
    lua_call(L, count, LUA_MULTRET);
    count = lua_gettop(L) - first + 1;
    lua_pushinteger(L, count);
    lua_insert(L, first);
    for (int i = 0; i <= count; i++) {
        const char *error = pack_value(L, first + i, w->pool->limits.lua_memory, &job->result);
        if (error) return luaL_error(L, "a result of photon.offload: %s", error);
    }
    job->is_ok = true;
    return 0;
}

static void fail(struct offload_job *job, const char *why)
{
    job->result.len = 0;
    job->is_ok = false;
    buf_append(&job->result, why, strlen(why));
}

static void run_job(struct worker *w)
{
    struct offload_job *job = w->job;

    if (!open_vm(w)) {
        fail(job, "not enough memory for a Lua state");
        return;
    }
    if (lua_cpcall(w->vm->L, run, w) == 0) return;
    lua_State *L = w->vm->L;
    bool is_text = lua_type(L, -1) == LUA_TSTRING || lua_type(L, -1) == LUA_TNUMBER;
    fail(job, is_text ? lua_tostring(L, -1) : "an error that is no text was raised");
    lua_settop(L, 0);
}

// Under the lock. NULL when it is time to end.
static struct offload_job *next_job(struct offload *pool)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_SECONDS;
    while (!pool->is_closing && list_is_empty(&pool->waiting)) {
        pool->idle++;
        int late = pthread_cond_timedwait(&pool->wake, &pool->lock, &until);
        pool->idle--;
        if (late && list_is_empty(&pool->waiting)) return NULL;
    }
    if (pool->is_closing) return NULL;
    return list_entry(list_take(&pool->waiting), struct offload_job, node);
}

void *offload_thread(void *data)
{
    struct worker w = {.pool = data};
    struct offload *pool = w.pool;

    pthread_setname_np(pthread_self(), "photon-offload");
    pthread_mutex_lock(&pool->lock);
    while ((w.job = next_job(pool)) != NULL) {
        pthread_mutex_unlock(&pool->lock);
        run_job(&w);
        pthread_mutex_lock(&pool->lock);
        list_append(&pool->done, &w.job->node);
        if (!pool->is_closing) uv_async_send(&pool->async);
    }
    pool->threads--;
    pthread_mutex_unlock(&pool->lock);
    close_vm(&w);
    buf_reset(&w.paths);
    offload_pool_leave(pool);
    return NULL;
}

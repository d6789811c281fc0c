#include "base/mem.h"
#include "script/offload_pool.h"
#include "script/pack.h"
#include "script/task.h"

// Results have come back: their callers go on.
static void on_done(uv_async_t *async)
{
    struct offload *pool = list_entry(async, struct offload, async);
    struct offload_job *job;

    if (!pool->vm) return;
    while ((job = offload_pool_receive(pool)) != NULL) {
        job->is_done = true;
        if (job->is_dropped)
            offload_job_free(job);
        else if (job->task)
            task_wake(job->task);
    }
}

static struct offload *pool_of(lua_State *L, struct vm *vm)
{
    void (*core)(lua_State *, struct vm *);
    if (vm->offload) return vm->offload;
    memcpy(&core, lua_touserdata(L, lua_upvalueindex(2)), sizeof core);
    vm->offload = offload_pool_new(vm, core, on_done);
    if (!vm->offload) luaL_error(L, "photon.offload: not enough memory");
    return vm->offload;
}

// Pushes the paths by which the caller finds its modules, so that the thread finds the same.
static struct slice push_paths(lua_State *L)
{
    struct slice paths;
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "path");
    lua_getfield(L, -2, "cpath");
    const char *path = lua_tostring(L, -2), *cpath = lua_tostring(L, -1);
    if (!path || !cpath) luaL_error(L, "package.path and package.cpath must be strings");
    lua_pushfstring(L, "%s%c%s%c", path, 0, cpath, 0);
    paths.ptr = lua_tolstring(L, -1, &paths.len);
    return paths;
}

static struct offload_job *job_new(struct vm *vm, struct slice paths)
{
    struct offload_job *job = mem_zalloc(sizeof *job);
    if (!job) return NULL;
    if (buf_append_slice(&job->call, buf_slice(&vm->scratch)) &&
        buf_append_slice(&job->paths, paths))
        return job;
    offload_job_free(job);
    return NULL;
}

// The module, the function's name, how many arguments, the arguments: into the VM's scratch.
static void pack_call(lua_State *L, struct vm *vm)
{
    int count = lua_gettop(L) - 2;

    vm->scratch.len = 0;
    lua_pushinteger(L, count);
    lua_insert(L, 3);
    for (int i = 1; i <= count + 3; i++) {
        const char *error = pack_value(L, i, vm->limits->lua_memory, &vm->scratch);
        if (error) luaL_error(L, "argument %d of photon.offload: %s", i > 2 ? i - 1 : i, error);
    }
}

static void drop(struct offload *pool, struct offload_job *job)
{
    job->task = NULL;
    if (job->is_done || offload_pool_recall(pool, job))
        offload_job_free(job);
    else
        job->is_dropped = true;
}

static void on_cancel(struct task *t)
{
    drop(t->vm->offload, t->wait_data);
}

// offload_start(module, name, ...) → id; parks
static int lua_start(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct task *t = task_check_wait(L, vm, "photon.offload");
    struct offload *pool = pool_of(L, vm);

    pack_call(L, vm);
    struct offload_job *job = job_new(vm, push_paths(L));
    if (!job) return luaL_error(L, "photon.offload: not enough memory");
    job->id = ++pool->last_id;
    job->task = t;
    list_append(&pool->jobs, &job->all);
    if (!offload_pool_send(pool, job)) {
        offload_job_free(job);
        return luaL_error(L, "photon.offload: no thread can be started");
    }
    task_park(t, job, on_cancel);
    lua_pushnumber(L, (double)job->id);
    return 1;
}

// NULL when it is gone.
static struct offload_job *job_arg(lua_State *L, struct vm *vm)
{
    uint64_t id = (uint64_t)lua_tonumber(L, 1);
    for (struct list *n = vm->offload->jobs.next; n != &vm->offload->jobs; n = n->next) {
        struct offload_job *job = list_entry(n, struct offload_job, all);
        if (job->id == id) return job;
    }
    return NULL;
}

// offload_take(id) → true and the results, or false and the error's text
static int lua_take(lua_State *L)
{
    struct offload_job *job = job_arg(L, vm_of(L));
    struct slice result;
    int count = 1;

    if (!job) return luaL_error(L, "no such call of photon.offload");
    result = buf_slice(&job->result);
    lua_settop(L, 0);
    lua_pushboolean(L, job->is_ok);
    if (!job->is_ok) {
        lua_pushlstring(L, result.ptr ? result.ptr : "", result.len);
    } else {
        pack_push(L, &result);
        count = (int)lua_tointeger(L, -1);
        lua_pop(L, 1);
        luaL_checkstack(L, count + 4, "too many results");
        for (int i = 0; i < count; i++) pack_push(L, &result);
    }
    offload_job_free(job);
    return count + 1;
}

// offload_drop(id): nobody waits for it any more
static int lua_drop(lua_State *L)
{
    struct vm *vm = vm_of(L);
    struct offload_job *job = job_arg(L, vm);
    if (job) drop(vm->offload, job);
    return 0;
}

void offload_close(struct vm *vm)
{
    if (vm->offload) offload_pool_close(vm->offload);
    vm->offload = NULL;
}

void offload_open(lua_State *L, struct vm *vm, void (*core)(lua_State *L, struct vm *vm))
{
    static const luaL_Reg functions[] = {
        {"offload_take", lua_take}, {"offload_drop", lua_drop}, {NULL, NULL}};
    vm_register(L, vm, functions);
    lua_pushlightuserdata(L, vm);
    memcpy(lua_newuserdata(L, sizeof core), &core, sizeof core);
    lua_pushcclosure(L, lua_start, 2);
    lua_setfield(L, -2, "offload_start");
}

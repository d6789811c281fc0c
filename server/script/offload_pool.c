#include "script/offload_pool.h"

#include <signal.h>
#include "base/mem.h"

static void pool_free(struct offload *pool)
{
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->wake);
    mem_free(pool);
}

static void pool_init_locks(struct offload *pool)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, &attr);
    pthread_condattr_destroy(&attr);
}

struct offload *offload_pool_new(struct vm *vm, void (*core)(lua_State *L, struct vm *vm),
                                 uv_async_cb on_done)
{
    struct offload *pool = mem_zalloc(sizeof *pool);

    if (!pool) return NULL;
    *pool = (struct offload){
        .vm = vm, .core = core, .server = vm->server, .limits = *vm->limits, .refs = 1};
    pool_init_locks(pool);
    list_init(&pool->jobs);
    list_init(&pool->waiting);
    list_init(&pool->done);
    if (uv_async_init(&vm->loop->uv, &pool->async, on_done) == 0) return pool;
    pool_free(pool);
    return NULL;
}

void offload_pool_leave(struct offload *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool is_last = --pool->refs == 0;
    pthread_mutex_unlock(&pool->lock);
    if (!is_last) return;
    struct list *node;
    while ((node = list_take(&pool->done)) != NULL) {
        offload_job_free(list_entry(node, struct offload_job, node));
    }
    pool_free(pool);
}

void offload_job_free(struct offload_job *job)
{
    list_remove(&job->all);
    buf_reset(&job->paths);
    buf_reset(&job->call);
    buf_reset(&job->result);
    mem_free(job);
}

// Under the lock.
static bool start_thread(struct offload *pool)
{
    pthread_t thread;
    pthread_attr_t attr;
    sigset_t all, before;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = pthread_create(&thread, &attr, offload_thread, pool) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    pool->threads += is_started;
    pool->refs += is_started;
    return is_started;
}

bool offload_pool_send(struct offload *pool, struct offload_job *job)
{
    bool is_sent = true;

    pthread_mutex_lock(&pool->lock);
    list_append(&pool->waiting, &job->node);
    if (pool->idle > 0) {
        pthread_cond_signal(&pool->wake);
    }
    // One that is woken may find its job taken by another, so idle ones are not counted on twice.
    unsigned waiting = 0;
    for (struct list *n = pool->waiting.next; n != &pool->waiting; n = n->next) waiting++;
    if (waiting > pool->idle && pool->threads < OFFLOAD_THREADS && !start_thread(pool) &&
        pool->threads == 0) {
        list_remove(&job->node);
        is_sent = false;
    }
    pthread_mutex_unlock(&pool->lock);
    return is_sent;
}

bool offload_pool_recall(struct offload *pool, struct offload_job *job)
{
    bool is_waiting = false;

    pthread_mutex_lock(&pool->lock);
    for (struct list *n = pool->waiting.next; n != &pool->waiting; n = n->next) {
        if (n == &job->node) is_waiting = true;
    }
    if (is_waiting) list_remove(&job->node);
    pthread_mutex_unlock(&pool->lock);
    return is_waiting;
}

struct offload_job *offload_pool_receive(struct offload *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct list *node = list_take(&pool->done);
    pthread_mutex_unlock(&pool->lock);
    return node ? list_entry(node, struct offload_job, node) : NULL;
}

static void on_async_closed(uv_handle_t *handle)
{
    offload_pool_leave(list_entry(handle, struct offload, async));
}

// Jobs that a thread has in hand are freed with the pool, or by the thread's side of it.
void offload_pool_close(struct offload *pool)
{
    struct list *node;

    pthread_mutex_lock(&pool->lock);
    pool->is_closing = true;
    pool->vm = NULL;
    while ((node = list_take(&pool->waiting)) != NULL) {
        list_append(&pool->done, node);
    }
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->lock);
    while ((node = list_take(&pool->jobs)) != NULL) {
        struct offload_job *job = list_entry(node, struct offload_job, all);
        if (job->is_done) offload_job_free(job); // in no other list
    }
    uv_close((uv_handle_t *)&pool->async, on_async_closed);
}

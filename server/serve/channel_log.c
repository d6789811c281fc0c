// Jobs: to the thread and back.
#include "serve/channel_log.h"

#include <signal.h>
#include <time.h>
#include "base/mem.h"
#include "serve/channel_log_private.h"

enum { CHANNEL_LOG_STACK = 512 * 1024, CHANNEL_LOG_JOB_COST = 512 };

static uint64_t channel_log_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

uint64_t channel_log_now(void)
{
    return channel_log_clock(CLOCK_MONOTONIC);
}

uint64_t channel_log_unix(void)
{
    return channel_log_clock(CLOCK_REALTIME);
}

bool channel_is_durable(const struct channel *ch)
{
    return atomic_load_explicit(&ch->log, memory_order_acquire) != NULL;
}

// The thread --------------------------------------------------------------------------------------

// Signals are for the loops; SIGXFSZ would end the process when a file meets the limit.
static bool channel_log_start(struct channel_log *log)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return false;
    pthread_attr_setstacksize(&attributes, CHANNEL_LOG_STACK);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&log->thread, &attributes, channel_log_run, log);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return !failed;
}

static struct channel_log *channel_log_new(void)
{
    struct channel_log *log = mem_zalloc(sizeof *log);
    if (!log) return NULL;
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->wake, NULL);
    pthread_cond_init(&log->done, NULL);
    list_init(&log->queue);
    list_init(&log->files);
    list_init(&log->touched);
    if (channel_log_start(log)) return log;
    mem_free(log);
    return NULL;
}

struct channel_log *channel_log_of(struct channel_registry *r)
{
    pthread_mutex_lock(&r->lock);
    if (!r->log) r->log = channel_log_new();
    struct channel_log *log = r->log;
    pthread_mutex_unlock(&r->lock);
    return log;
}

void channel_log_drain(struct channel_log *log)
{
    if (!log) return;
    pthread_mutex_lock(&log->lock);
    while (log->is_busy || !list_is_empty(&log->queue)) pthread_cond_wait(&log->done, &log->lock);
    pthread_mutex_unlock(&log->lock);
}

void channel_log_free(struct channel_log *log)
{
    if (!log) return;
    pthread_mutex_lock(&log->lock);
    log->is_closing = true;
    pthread_cond_signal(&log->wake);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->thread, NULL);
    pthread_cond_destroy(&log->wake);
    pthread_cond_destroy(&log->done);
    pthread_mutex_destroy(&log->lock);
    mem_free(log);
}

void channel_log_count_errors(struct channel *ch, size_t count)
{
    atomic_fetch_add_explicit(&ch->registry->log_errors, count, memory_order_relaxed);
}

// There ------------------------------------------------------------------------------------------

static size_t channel_log_cost(const struct channel_log_job *job)
{
    if (job->kind == CHANNEL_LOG_CLOSE) return 0;
    return CHANNEL_LOG_JOB_COST + 2 * job->text_len; // the record as well
}

bool channel_log_send(struct channel_log *log, struct channel_log_job *job)
{
    size_t cost = channel_log_cost(job);
    pthread_mutex_lock(&log->lock);
    bool has_room = job->kind >= CHANNEL_LOG_FINISH || log->bytes + cost <= CHANNEL_LOG_ROOM;
    if (has_room) {
        bool is_first = list_is_empty(&log->queue);
        log->bytes += cost;
        list_append(&log->queue, &job->node);
        if (is_first) pthread_cond_signal(&log->wake);
    }
    pthread_mutex_unlock(&log->lock);
    return has_room;
}

static struct channel_log_job *channel_log_job_new(struct channel *ch, enum channel_log_kind kind,
                                                   size_t text_len)
{
    struct channel_log_job *job = mem_alloc(sizeof *job + text_len);
    if (!job) return NULL;
    *job = (struct channel_log_job){.kind = kind, .text_len = text_len};
    job->channel = channel_retain(ch);
    return job;
}

void channel_log_job_free(struct channel_log_job *job)
{
    payload_release(job->record);
    channel_release(job->channel);
    mem_free(job);
}

enum channel_result channel_log_publish(struct channel *ch, enum channel_log_kind kind,
                                        struct slice event, struct slice data,
                                        struct channel_worker *w, struct channel_log_job **to)
{
    struct channel_log_file *file = atomic_load_explicit(&ch->log, memory_order_acquire);
    enum channel_result result = channel_check(ch, event, data);
    *to = NULL;
    if (result != CHANNEL_OK) return result;
    if (channel_is_finished(ch)) return CHANNEL_IS_FINISHED;
    struct channel_log_job *job = channel_log_job_new(ch, kind, event.len + data.len);
    if (!job) return CHANNEL_NO_MEMORY;
    job->event_len = event.len;
    if (event.len) memcpy(job->text, event.ptr, event.len);
    if (data.len) memcpy(job->text + event.len, data.ptr, data.len);
    if (kind != CHANNEL_LOG_END) job->record = channel_record_new(event, data);
    if (kind != CHANNEL_LOG_END && !job->record) {
        channel_log_job_free(job);
        return CHANNEL_NO_MEMORY;
    }
    job->worker = w;
    if (w) atomic_fetch_add(&w->jobs, 1);
    *to = w ? job : NULL; // the thread may have freed it already, if nobody is to be told
    if (channel_log_send(file->log, job)) return CHANNEL_OK;
    if (w) atomic_fetch_sub(&w->jobs, 1);
    *to = NULL;
    channel_log_count_errors(ch, 1);
    channel_log_job_free(job);
    return CHANNEL_LOG_BUSY;
}

// Attaching ---------------------------------------------------------------------------------------

// Whether there is nothing to do, or the wrong thing.
static bool channel_log_is_attached(struct channel *ch, const char *path,
                                    enum channel_result *result)
{
    struct channel_log_file *file = atomic_load_explicit(&ch->log, memory_order_acquire);
    if (file) *result = strcmp(file->path, path) == 0 ? CHANNEL_OK : CHANNEL_LOG_CHANGED;
    return file != NULL;
}

// Until a load says what counts.
static void channel_log_set_options(struct channel *ch, const struct channel_options *options)
{
    if (!options) return;
    pthread_mutex_lock(&ch->registry->lock);
    pthread_mutex_lock(&ch->lock);
    if (ch->load == 0) ch->options = *options;
    pthread_mutex_unlock(&ch->lock);
    pthread_mutex_unlock(&ch->registry->lock);
}

static enum channel_result channel_log_begin_attach(struct channel *ch, const char *path,
                                                    const struct channel_options *options,
                                                    struct channel_log_job **to)
{
    struct channel_log *log = channel_log_of(ch->registry);
    if (!log) return CHANNEL_NO_MEMORY;
    struct channel_log_job *job =
        channel_log_job_new(ch, CHANNEL_LOG_ATTACH, JOURNAL_ERROR + strlen(path) + 1);
    if (!job) return CHANNEL_NO_MEMORY;
    job->text[0] = 0;
    strcpy(job->text + JOURNAL_ERROR, path);
    channel_log_set_options(ch, options);
    *to = job;
    return CHANNEL_OK;
}

enum channel_result channel_log_attach_later(struct channel *ch, const char *path,
                                             const struct channel_options *options,
                                             struct channel_worker *w, struct channel_log_job **to)
{
    enum channel_result result;
    *to = NULL;
    if (channel_log_is_attached(ch, path, &result)) return result;
    result = channel_log_begin_attach(ch, path, options, to);
    if (result != CHANNEL_OK) return result;
    (*to)->worker = w;
    atomic_fetch_add(&w->jobs, 1);
    channel_log_send(ch->registry->log, *to);
    return CHANNEL_OK;
}

enum channel_result channel_log_attach(struct channel *ch, const char *path,
                                       const struct channel_options *options,
                                       char error[JOURNAL_ERROR])
{
    enum channel_result result;
    struct channel_log_job *job;
    if (channel_log_is_attached(ch, path, &result)) return result;
    result = channel_log_begin_attach(ch, path, options, &job);
    if (result != CHANNEL_OK) return result;
    struct channel_log *log = ch->registry->log;
    job->is_waited = true;
    channel_log_send(log, job);
    pthread_mutex_lock(&log->lock);
    while (!job->is_done) pthread_cond_wait(&log->done, &log->lock);
    pthread_mutex_unlock(&log->lock);
    result = job->result;
    memcpy(error, job->text, JOURNAL_ERROR);
    channel_log_job_free(job);
    return result;
}

// Back -------------------------------------------------------------------------------------------

// A worker is told while it counts the job: it is there, and its loop with it.
static void channel_log_give_back(struct channel_worker *w, struct channel_log_job *job)
{
    pthread_mutex_lock(&w->lock);
    bool is_first = list_is_empty(&w->done);
    list_append(&w->done, &job->node);
    pthread_mutex_unlock(&w->lock);
    if (is_first) loop_wake(w->loop);
    atomic_fetch_sub(&w->jobs, 1);
}

void channel_log_return(struct channel_log *log, struct channel_log_job *job,
                        enum channel_result result)
{
    job->result = result;
    pthread_mutex_lock(&log->lock);
    log->bytes -= channel_log_cost(job);
    if (job->is_waited) {
        job->is_done = true;
        pthread_cond_broadcast(&log->done);
    }
    bool is_waited = job->is_waited;
    pthread_mutex_unlock(&log->lock);
    if (is_waited) return;
    if (job->worker)
        channel_log_give_back(job->worker, job);
    else
        channel_log_job_free(job);
}

void channel_log_tell(struct channel_worker *w)
{
    struct list done, *node;
    list_init(&done);
    pthread_mutex_lock(&w->lock);
    list_move_all(&done, &w->done);
    pthread_mutex_unlock(&w->lock);
    while ((node = list_take(&done)) != NULL) {
        struct channel_log_job *job = list_entry(node, struct channel_log_job, node);
        if (job->on_done) job->on_done(job);
        channel_log_job_free(job);
    }
}

void channel_log_settle(struct channel_worker *w)
{
    static const struct timespec pause = {.tv_nsec = 1000000};
    while (atomic_load(&w->jobs)) nanosleep(&pause, NULL);
    struct list *node;
    while ((node = list_take(&w->done)) != NULL)
        channel_log_job_free(list_entry(node, struct channel_log_job, node));
}

// The channel is gone; whatever was to be written is before this in the queue.
void channel_log_close(struct channel_log_file *file)
{
    file->closing.kind = CHANNEL_LOG_CLOSE;
    file->closing.owner = file;
    channel_log_send(file->log, &file->closing);
}

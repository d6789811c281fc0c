// The thread: batches of events to the disk, then to the channels.
#include <string.h>
#include "base/log.h"
#include "base/mem.h"
#include "serve/channel_log_private.h"

static struct channel_log_job *channel_log_job_of(struct list *node)
{
    return list_entry(node, struct channel_log_job, node);
}

static struct journal_record channel_log_record(const struct channel_log_job *job,
                                                uint64_t sequence, uint64_t time)
{
    static const enum journal_kind kinds[] = {[CHANNEL_LOG_PUBLISH] = JOURNAL_EVENT,
                                              [CHANNEL_LOG_FINISH] = JOURNAL_LAST,
                                              [CHANNEL_LOG_END] = JOURNAL_END};
    return (struct journal_record){
        .kind = kinds[job->kind],
        .sequence = sequence,
        .time = time,
        .event = {job->text, job->event_len},
        .data = {job->text + job->event_len, job->text_len - job->event_len},
    };
}

// So many of the batch as go at once; nothing comes after an end.
static size_t channel_log_take(struct channel_log *log, struct channel_log_file *f)
{
    size_t count = 0;
    uint64_t sequence = f->journal.next, now = channel_log_unix();
    bool is_end = false;
    struct list *node;
    while (count < CHANNEL_LOG_BATCH && !is_end && (node = list_take(&f->batch)) != NULL) {
        struct channel_log_job *job = channel_log_job_of(node);
        log->jobs[count] = job;
        log->records[count++] = channel_log_record(job, sequence++, now);
        is_end = job->kind != CHANNEL_LOG_PUBLISH;
    }
    return count;
}

// Faults are logged when they begin and when they end.
static void channel_log_note(struct channel_log_file *f, int error)
{
    if (error && !f->is_failing)
        log_write(LOG_ERROR, "channel %s: its log %s cannot be written: %s", f->name, f->path,
                  strerror(error));
    if (!error && f->is_failing)
        log_write(LOG_INFO, "channel %s: its log %s can be written again", f->name, f->path);
    f->is_failing = error != 0;
}

// On a full disk the segment that is not needed any more may give the room.
static int channel_log_append(struct channel_log *log, struct channel_log_file *f,
                              struct channel *ch, size_t count)
{
    pthread_mutex_lock(&ch->lock);
    uint64_t needed = ch->ring.first, backlog = ch->options.backlog;
    pthread_mutex_unlock(&ch->lock);
    uint64_t limit = backlog > CHANNEL_LOG_SEGMENT ? backlog : CHANNEL_LOG_SEGMENT;
    journal_rotate(&f->journal, limit, needed);
    int error = journal_append(&f->journal, log->records, count);
    if (error && journal_rotate(&f->journal, 0, needed))
        error = journal_append(&f->journal, log->records, count);
    channel_log_note(f, error);
    if (error) channel_log_count_errors(ch, count);
    return error;
}

static void channel_log_return_all(struct channel_log *log, size_t count,
                                   enum channel_result result, int error)
{
    for (size_t i = 0; i < count; i++) {
        log->jobs[i]->error = error;
        channel_log_return(log, log->jobs[i], result);
    }
}

// They are on the disk: now they happen. There is room, so nothing can go wrong here.
static void channel_log_happen(struct channel_log *log, struct channel *ch, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct channel_log_job *job = log->jobs[i];
        struct payload *record = job->record;
        job->record = NULL;
        enum channel_result result = channel_append(ch, record, job->kind != CHANNEL_LOG_PUBLISH,
                                                    channel_log_now(), &job->sequence);
        if (result != CHANNEL_OK) payload_release(record);
        if (result == CHANNEL_OK && record)
            atomic_fetch_add_explicit(&ch->registry->events, 1, memory_order_relaxed);
        channel_log_return(log, job, result);
    }
}

static void channel_log_write(struct channel_log *log, struct channel_log_file *f)
{
    while (!list_is_empty(&f->batch)) {
        size_t count = channel_log_take(log, f);
        // Held here: the last job that comes back may be all that holds it.
        struct channel *ch = channel_retain(log->jobs[0]->channel);
        if (channel_is_finished(ch)) {
            channel_log_return_all(log, count, CHANNEL_IS_FINISHED, 0);
        } else if (!channel_reserve(ch, count)) {
            channel_log_return_all(log, count, CHANNEL_NO_MEMORY, 0);
        } else {
            int error = channel_log_append(log, f, ch, count);
            if (error)
                channel_log_return_all(log, count, CHANNEL_LOG_FAILED, error);
            else
                channel_log_happen(log, ch, count);
        }
        channel_release(ch);
    }
}

static void channel_log_write_all(struct channel_log *log)
{
    struct list *node;
    while ((node = list_take(&log->touched)) != NULL)
        channel_log_write(log, list_entry(node, struct channel_log_file, touched));
}

static void channel_log_do(struct channel_log *log, struct channel_log_job *job)
{
    if (job->kind == CHANNEL_LOG_ATTACH || job->kind == CHANNEL_LOG_CLOSE)
        channel_log_write_all(log);
    if (job->kind == CHANNEL_LOG_ATTACH) {
        channel_log_return(log, job, channel_log_load(log, job));
    } else if (job->kind == CHANNEL_LOG_CLOSE) {
        channel_log_file_free(job->owner);
    } else {
        struct channel_log_file *f = atomic_load(&job->channel->log);
        list_append(&f->batch, &job->node);
        if (!list_is_linked(&f->touched)) list_append(&log->touched, &f->touched);
    }
}

void *channel_log_run(void *data)
{
    struct channel_log *log = data;
    struct list queue, *node;
    bool is_over = false;
    pthread_setname_np(pthread_self(), "photon-journal");
    list_init(&queue);
    while (!is_over) {
        pthread_mutex_lock(&log->lock);
        log->is_busy = false;
        pthread_cond_broadcast(&log->done);
        while (list_is_empty(&log->queue) && !log->is_closing)
            pthread_cond_wait(&log->wake, &log->lock);
        log->is_busy = true;
        list_move_all(&queue, &log->queue);
        is_over = list_is_empty(&queue);
        pthread_mutex_unlock(&log->lock);
        while ((node = list_take(&queue)) != NULL) channel_log_do(log, channel_log_job_of(node));
        channel_log_write_all(log);
    }
    return NULL;
}

// Giving a channel its log, with what is in it.
#include <string.h>
#include <sys/stat.h>
#include "base/mem.h"
#include "serve/channel_log_private.h"

// A journal's events on their way into a ring.
struct channel_log_loader {
    struct journal_reader reader; // first
    struct channel_ring ring;
    struct channel_options options;
    uint64_t now, unix_now;
    uint64_t finished_at; // if it is
};

// When that was, on the clock of `now`. What is older than the machine's start is of the start.
static uint64_t channel_log_then(const struct channel_log_loader *l, uint64_t time)
{
    uint64_t age = l->unix_now > time ? l->unix_now - time : 0;
    return l->now > age ? l->now - age : 0;
}

static bool channel_log_is_old(const struct channel_log_loader *l, uint64_t time, uint64_t most)
{
    return most && l->unix_now > time && l->unix_now - time > most;
}

static bool channel_log_make_room(struct channel_ring *r)
{
    if (channel_ring_count(r) < r->cap) return true;
    size_t cap = r->cap ? 2 * r->cap : 64;
    struct channel_entry *items = mem_alloc(cap * sizeof *items);
    if (!items) return false;
    mem_free(channel_ring_move(r, items, cap));
    return true;
}

static bool channel_log_load_event(struct channel_log_loader *l, const struct journal *j,
                                   const struct journal_record *record)
{
    struct payload *dropped[CHANNEL_DROP], *event;
    if (l->ring.first == l->ring.next) l->ring.first = l->ring.next = record->sequence;
    if (channel_log_is_old(l, record->time, l->options.replay_age) && !channel_ring_count(&l->ring))
        return true; // and what is before it, too
    if (!channel_log_make_room(&l->ring)) return false;
    event = channel_record_new(record->event, record->data);
    if (!event) return false;
    channel_record_seal(event, slice_of(j->epoch, JOURNAL_EPOCH), record->sequence);
    channel_ring_push(&l->ring, event, channel_log_then(l, record->time));
    size_t count = channel_ring_trim(&l->ring, &l->options, l->now, dropped);
    channel_release_all(dropped, count);
    return true;
}

static bool channel_log_on_record(struct journal_reader *reader, const struct journal *j,
                                  const struct journal_record *record)
{
    struct channel_log_loader *l = (struct channel_log_loader *)reader;
    if (record->kind != JOURNAL_EVENT) l->finished_at = channel_log_then(l, record->time);
    return record->kind == JOURNAL_END || channel_log_load_event(l, j, record);
}

static void channel_log_drop_ring(struct channel_ring *r)
{
    for (uint64_t i = r->first; i != r->next; i++) payload_release(channel_ring_at(r, i)->record);
    mem_free(r->items);
    *r = (struct channel_ring){.first = 1, .next = 1};
}

// Files -------------------------------------------------------------------------------------------

static char *channel_log_copy(struct slice text)
{
    char *copy = mem_zalloc(text.len + 1);
    if (copy) memcpy(copy, text.ptr, text.len);
    return copy;
}

static struct channel_log_file *channel_log_file_new(struct channel_log *log, struct channel *ch,
                                                     const char *path)
{
    struct channel_log_file *f = mem_zalloc(sizeof *f);
    if (!f) return NULL;
    f->log = log;
    list_init(&f->batch);
    f->path = channel_log_copy(slice_of_text(path));
    f->name = channel_log_copy(channel_name(ch));
    if (f->path && f->name) return f;
    channel_log_file_free(f);
    return NULL;
}

void channel_log_file_free(struct channel_log_file *f)
{
    list_remove(&f->node);
    journal_close(&f->journal);
    mem_free(f->path);
    mem_free(f->name);
    mem_free(f);
}

static const char *channel_log_user(struct channel_log *log, const char *path)
{
    struct stat st;
    if (stat(path, &st)) return NULL;
    for (struct list *n = log->files.next; n != &log->files; n = n->next) {
        struct channel_log_file *f = list_entry(n, struct channel_log_file, node);
        if (f->journal.device == st.st_dev && f->journal.inode == st.st_ino) return f->name;
    }
    return NULL;
}

// Loading -----------------------------------------------------------------------------------------

// A finished channel is kept for a while; then its name begins anew.
static bool channel_log_is_over(const struct channel_log_loader *l, const struct journal *j)
{
    uint64_t linger = l->options.replay_age ? l->options.replay_age : CHANNEL_LINGER;
    return j->has_end && l->now > l->finished_at && l->now - l->finished_at > linger;
}

static bool channel_log_read(struct channel_log_file *f, struct channel *ch,
                             struct channel_log_loader *l, char error[JOURNAL_ERROR])
{
    l->reader.on_record = channel_log_on_record;
    l->ring.first = l->ring.next = 1;
    l->now = channel_log_now();
    l->unix_now = channel_log_unix();
    pthread_mutex_lock(&ch->lock);
    l->options = ch->options;
    pthread_mutex_unlock(&ch->lock);
    if (!journal_open(&f->journal, f->path, ch->epoch, &l->reader, error)) return false;
    if (channel_log_is_over(l, &f->journal)) {
        int failed = journal_begin(&f->journal, ch->epoch);
        if (failed) snprintf(error, JOURNAL_ERROR, "%s: %s", f->path, strerror(failed));
        if (failed) return false;
        channel_log_drop_ring(&l->ring);
    }
    if (channel_ring_count(&l->ring) == 0) l->ring.first = l->ring.next = f->journal.next;
    return true;
}

// Under the lock: whether nothing has happened in the channel yet.
static bool channel_log_is_new(const struct channel *ch)
{
    return ch->ring.next == 1 && !ch->is_finished;
}

// No file is made for a channel that cannot have it.
static bool channel_log_may_load(struct channel *ch)
{
    pthread_mutex_lock(&ch->lock);
    bool is_new = channel_log_is_new(ch);
    pthread_mutex_unlock(&ch->lock);
    return is_new;
}

static bool channel_log_adopt(struct channel_log_file *f, struct channel *ch,
                              struct channel_log_loader *l)
{
    pthread_mutex_lock(&ch->lock);
    bool is_new = channel_log_is_new(ch);
    if (is_new) {
        struct channel_ring empty = ch->ring;
        ch->ring = l->ring;
        l->ring = empty;
        memcpy(ch->epoch, f->journal.epoch, CHANNEL_EPOCH);
        ch->is_finished = f->journal.has_end;
        ch->finished_at = l->finished_at;
        atomic_store_explicit(&ch->log, f, memory_order_release);
        if (ch->ring.next != 1 || ch->is_finished) channel_tell_links(ch);
    }
    pthread_mutex_unlock(&ch->lock);
    return is_new;
}

// What another job has done before this one counts.
static bool channel_log_has(struct channel *ch, const char *path, enum channel_result *result)
{
    struct channel_log_file *f = atomic_load(&ch->log);
    if (f) *result = strcmp(f->path, path) == 0 ? CHANNEL_OK : CHANNEL_LOG_CHANGED;
    return f != NULL;
}

// Opens the file, unless another channel has it.
static enum channel_result channel_log_open(struct channel_log *log, struct channel_log_file *f,
                                            struct channel *ch, char error[JOURNAL_ERROR])
{
    struct channel_log_loader loader = {0};
    const char *user = channel_log_user(log, f->path);
    enum channel_result result = CHANNEL_OK;
    if (user) {
        snprintf(error, JOURNAL_ERROR, "%.300s is the log of channel %s already", f->path, user);
        return CHANNEL_LOG_FAILED;
    }
    if (!channel_log_read(f, ch, &loader, error))
        result = CHANNEL_LOG_FAILED;
    else if (!channel_log_adopt(f, ch, &loader))
        result = CHANNEL_LOG_CHANGED;
    channel_log_drop_ring(&loader.ring);
    return result;
}

enum channel_result channel_log_load(struct channel_log *log, struct channel_log_job *job)
{
    struct channel *ch = job->channel;
    char *error = job->text, *path = job->text + JOURNAL_ERROR;
    enum channel_result result;
    if (channel_log_has(ch, path, &result)) return result;
    if (!channel_log_may_load(ch)) return CHANNEL_LOG_CHANGED;
    struct channel_log_file *f = channel_log_file_new(log, ch, path);
    if (!f) return CHANNEL_NO_MEMORY;
    result = channel_log_open(log, f, ch, error);
    if (result == CHANNEL_OK)
        list_append(&log->files, &f->node);
    else
        channel_log_file_free(f);
    if (result == CHANNEL_LOG_FAILED) channel_log_count_errors(ch, 1);
    return result;
}

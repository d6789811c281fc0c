// channel_log_private: what the files of the thread share; for them alone.
#ifndef PHOTON_SERVE_CHANNEL_LOG_PRIVATE_H
#define PHOTON_SERVE_CHANNEL_LOG_PRIVATE_H

#include "serve/channel_log.h"
#include "serve/channel_private.h"

enum { CHANNEL_LOG_BATCH = 256 };

// The log of one channel. It belongs to the thread, but for its path.
struct channel_log_file {
    struct list node; // log->files
    struct list touched;
    struct list batch; // jobs
    struct channel_log *log;
    struct journal journal;
    bool is_failing;
    struct channel_log_job closing;
    char *path, *name; // the channel's name
};

struct channel_log {
    pthread_t thread;
    pthread_mutex_t lock; // of what follows
    pthread_cond_t wake, done;
    struct list queue;
    size_t bytes; // that wait, or are being written
    bool is_busy, is_closing;
    // The thread's own.
    struct list files, touched;
    struct channel_log_job *jobs[CHANNEL_LOG_BATCH];
    struct journal_record records[CHANNEL_LOG_BATCH];
};

// The registry's, begun if need be; NULL when there is no memory or no thread.
struct channel_log *channel_log_of(struct channel_registry *r);

// Hands the job over. False when too much waits already.
bool channel_log_send(struct channel_log *log, struct channel_log_job *job);

// For the metrics: so many events could not be written, or a log not opened.
void channel_log_count_errors(struct channel *ch, size_t count);

// The job is done: whoever waits is told.
void channel_log_return(struct channel_log *log, struct channel_log_job *job,
                        enum channel_result result);
void channel_log_job_free(struct channel_log_job *job);

// channel_log_write.c: the thread.
void *channel_log_run(void *log);

// channel_log_load.c: gives the job's channel its log.
enum channel_result channel_log_load(struct channel_log *log, struct channel_log_job *job);
void channel_log_file_free(struct channel_log_file *f);

// ms: of the clock that `now` is of everywhere, and since 1970.
uint64_t channel_log_now(void);
uint64_t channel_log_unix(void);

#endif

// channel_log: durable channels. Their events are kept in a journal too, so that a channel that is
// opened after a restart has its history, its ids and its epoch back.
//
// One thread for each registry, begun with its first log, does all that has to do with files. It
// takes what has been published meanwhile as one batch for each channel: one write, one wait for
// the disk. An event is on the disk before any reader sees it, and before its publisher is told its
// id: so no id that was ever seen is given to another event after a crash, and what cannot be
// written has not happened.
//
// What is asked for is a job. It goes to the thread and comes back to the worker that asked.
#ifndef PHOTON_SERVE_CHANNEL_LOG_H
#define PHOTON_SERVE_CHANNEL_LOG_H

#include "serve/channel_worker.h"
#include "serve/journal.h"

enum {
    CHANNEL_LOG_SEGMENT = 1 << 20, // a segment's least size; else it is the channel's backlog
    CHANNEL_LOG_ROOM = 64 << 20,   // most bytes that wait for the thread
};

struct channel_log;
struct channel_log_file;

enum channel_log_kind {
    CHANNEL_LOG_PUBLISH,
    CHANNEL_LOG_FINISH, // with a last event
    CHANNEL_LOG_END,    // without one
    CHANNEL_LOG_ATTACH,
    CHANNEL_LOG_CLOSE,
};

struct channel_log_job {
    struct list node; // in the thread's queue or batch, then in worker->done
    struct channel_worker *worker;
    // Told on the worker's thread, which frees the job afterwards. To be set to NULL, there, by
    // whoever does not want to be told any more.
    void (*on_done)(struct channel_log_job *job);
    void *owner;
    enum channel_result result;
    int error;         // CHANNEL_LOG_FAILED of an event: its errno
    uint64_t sequence; // of the event
    // What follows is the thread's.
    enum channel_log_kind kind;
    bool is_waited, is_done; // by a thread that blocks
    struct channel *channel; // held
    struct payload *record;
    size_t event_len, text_len;
    char
        text[]; // event and data; of CHANNEL_LOG_ATTACH what is wrong (JOURNAL_ERROR), and the path
};

// Whether the channel has a log; then channel_publish is not for it.
bool channel_is_durable(const struct channel *ch);

// Gives the channel its log, with what is in it. `options`, if the channel has been given none by a
// load, say what is kept of that (may be NULL). CHANNEL_OK also when it has that log already;
// CHANNEL_LOG_CHANGED when it has another one, or has events. CHANNEL_LOG_FAILED: the text tells
// why. This one blocks.
enum channel_result channel_log_attach(struct channel *ch, const char *path,
                                       const struct channel_options *options,
                                       char error[JOURNAL_ERROR]);

// The same as a job; *job is NULL when there is nothing to wait for.
enum channel_result channel_log_attach_later(struct channel *ch, const char *path,
                                             const struct channel_options *options,
                                             struct channel_worker *w,
                                             struct channel_log_job **job);

// Publishes, or finishes, as a job. `w` NULL: nobody is told, and *job is NULL.
enum channel_result channel_log_publish(struct channel *ch, enum channel_log_kind kind,
                                        struct slice event, struct slice data,
                                        struct channel_worker *w, struct channel_log_job **job);

// For the channel's other rooms: jobs that have come back are told and freed; the worker waits for
// those that have not (then nobody is told); the channel lets its log go; all that was asked for is
// done; the thread ends. NULL is harmless to the last two.
void channel_log_tell(struct channel_worker *w);
void channel_log_settle(struct channel_worker *w);
void channel_log_close(struct channel_log_file *file);
void channel_log_drain(struct channel_log *log);
void channel_log_free(struct channel_log *log);

#endif

// channel_log_probe: durable channels.
#ifndef PHOTON_SPEC_CHANNEL_LOG_PROBE_H
#define PHOTON_SPEC_CHANNEL_LOG_PROBE_H

#include "channel_probe.h"
#include "folder_probe.h"
#include "serve/channel_log.h"

static struct probe probe;

static inline void begin(void)
{
    probe_open(&probe);
    registry = channel_registry_new(10);
}

// As at the end of a process.
static inline void end(void)
{
    probe_close(&probe);
    channel_registry_free(registry);
}

static inline struct channel *open_durable(const char *name, const struct channel_options *options)
{
    char error[JOURNAL_ERROR] = "";
    struct channel *ch = probe_channel(name, options);
    if (!CHECK(channel_log_attach(ch, path, NULL, error) == CHANNEL_OK))
        fprintf(stderr, "%s\n", error);
    CHECK(channel_is_durable(ch));
    return ch;
}

// What has come back of the jobs.
static struct {
    unsigned count, good;
    enum channel_result result;
    int error;
    uint64_t sequence;
} back;

static inline void on_done(struct channel_log_job *job)
{
    back.count++;
    back.good += job->result == CHANNEL_OK;
    back.result = job->result;
    back.error = job->error;
    back.sequence = job->sequence;
}

static inline bool send_text(struct channel *ch, enum channel_log_kind kind, const char *data)
{
    struct channel_log_job *job;
    if (channel_log_publish(ch, kind, SLICE(""), slice_of_text(data), &probe.worker, &job) !=
        CHANNEL_OK)
        return false;
    job->on_done = on_done;
    return true;
}

static inline void wait_for(unsigned count)
{
    while (back.count < count) loop_run_once(&probe.loop, 100);
}

static inline enum channel_result publish(struct channel *ch, const char *data)
{
    back.count = 0;
    if (!CHECK(send_text(ch, CHANNEL_LOG_PUBLISH, data))) return CHANNEL_BAD_EVENT;
    wait_for(1);
    return back.result;
}

#endif

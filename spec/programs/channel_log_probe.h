// channel_log_probe: durable channels in a folder of their own.
#ifndef PHOTON_SPEC_CHANNEL_LOG_PROBE_H
#define PHOTON_SPEC_CHANNEL_LOG_PROBE_H

#include <unistd.h>
#include "base/log.h"
#include "channel_probe.h"
#include "serve/channel_log.h"

static char folder[40] = "/dev/shm/photon-log-XXXXXX";
static char path[64], path2[80], path22[96];
static struct probe probe;

static inline void forget(void)
{
    unlink(path);
    unlink(path2);
}

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

static inline uint64_t size_of(const char *name)
{
    struct stat st;
    return stat(name, &st) ? 0 : (uint64_t)st.st_size;
}

// Runs the cases in a folder that is gone afterwards: the exit status of the program.
static inline int log_run(const struct report_case *cases)
{
    if (!mkdtemp(folder) && !mkdtemp(strcpy(folder, "/tmp/photon-log-XXXXXX"))) return 1;
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(path2, sizeof path2, "%s-2", path);
    snprintf(path22, sizeof path22, "%s-2", path2);
    log_open(LOG_OFF, LOG_ERROR);
    int status = report_run(cases);
    forget();
    rmdir(folder);
    log_close();
    return status;
}

#endif

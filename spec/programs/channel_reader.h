// channel_reader: one channel with its subscribers, from the beginning to the end of a case.
#ifndef PHOTON_SPEC_CHANNEL_READER_H
#define PHOTON_SPEC_CHANNEL_READER_H

#include "channel_probe.h"

static struct probe probe;

static inline struct channel *begin(const struct channel_options *options)
{
    registry = channel_registry_new(100);
    probe_open(&probe);
    probe.channels[0] = probe_channel("news", options);
    probe.count = 1;
    return probe.channels[0];
}

static inline void finish(void)
{
    probe_close(&probe);
    for (size_t i = 0; i < probe.count; i++) channel_release(probe.channels[i]);
    channel_registry_free(registry);
}

static inline void publish_numbers(struct channel *ch, int from, int to)
{
    char text[16];
    for (int i = from; i <= to; i++) {
        snprintf(text, sizeof text, "%d", i);
        probe_publish(ch, "", text);
    }
}

static const struct channel_options keep_three = {.replay = 3};

#endif

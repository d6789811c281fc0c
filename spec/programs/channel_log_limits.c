// Durable channels at their limits: what could not be written has not happened.
#include <errno.h>
#include "channel_log_probe.h"

static void test_full_disk(void)
{
    struct channel_options ten = {.replay = 10};
    forget();
    begin();
    struct channel *ch = open_durable("news", &ten);
    probe.channels[0] = ch;
    probe.count = 1;
    struct memory *m = probe_get(&probe, NULL);
    EQUAL(publish(ch, "one"), CHANNEL_OK);
    journal_fail(0, 1000, ENOSPC);
    EQUAL(publish(ch, "two"), CHANNEL_LOG_FAILED);
    EQUAL(back.error, ENOSPC);
    EQUAL(publish(ch, "two"), CHANNEL_LOG_FAILED);
    EQUAL(channel_last(ch), 1);
    journal_fail(0, 0, 0);
    EQUAL(publish(ch, "three"), CHANNEL_OK);
    EQUAL(back.sequence, 2);
    probe_turns(&probe, 4);
    SAME(strstr(probe_text(&probe, m), "data"), "data: one\nid: A-1\n\ndata: three\nid: A-2\n\n");
    memory_close(m);
    channel_release(ch);
    end();
    begin();
    ch = open_durable("news", &ten);
    EQUAL(channel_last(ch), 2);
    channel_release(ch);
    end();
}

static void test_refusals(void)
{
    char error[JOURNAL_ERROR] = "", path22[96];
    struct channel_log_job *job;
    snprintf(path22, sizeof path22, "%s-2", path2);
    forget();
    begin();
    struct channel *a = open_durable("a", NULL), *b = probe_channel("b", NULL);
    EQUAL(channel_log_attach(b, path, NULL, error), CHANNEL_LOG_FAILED);
    CHECK(strstr(error, "is the log of channel a already") != NULL);
    EQUAL(channel_log_attach(a, path, NULL, error), CHANNEL_OK);
    EQUAL(channel_log_attach_later(a, path, NULL, &probe.worker, &job), CHANNEL_OK);
    CHECK(job == NULL);
    EQUAL(channel_log_attach(a, path2, NULL, error), CHANNEL_LOG_CHANGED);
    EQUAL(channel_log_attach(b, "/nowhere/at/all", NULL, error), CHANNEL_LOG_FAILED);
    CHECK(strstr(error, "No such file or directory") != NULL);
    channel_release(a); // it keeps nothing: its log is free
    EQUAL(channel_log_attach_later(b, path, NULL, &probe.worker, &job), CHANNEL_OK);
    if (CHECK(job != NULL)) job->on_done = on_done;
    back.count = 0;
    wait_for(1);
    EQUAL(back.result, CHANNEL_OK);
    struct channel *c = probe_channel("c", NULL);
    probe_publish(c, "", "x");
    EQUAL(channel_log_attach(c, path2, NULL, error), CHANNEL_LOG_CHANGED); // it has events
    CHECK(access(path2, F_OK) == 0 && access(path22, F_OK) != 0);
    channel_release(b);
    channel_release(c);
    end();
}

static void test_bounds(void)
{
    static char text[20000];
    struct channel_options few = {.replay = 5};
    forget();
    begin();
    struct channel *ch = open_durable("news", &few);
    memset(text, 'x', sizeof text - 1);
    for (int i = 0; i < 400; i++) {
        EQUAL(publish(ch, text), CHANNEL_OK);
        CHECK(size_of(path) + size_of(path2) <= 2 * CHANNEL_LOG_SEGMENT + 10 * sizeof text);
    }
    CHECK(size_of(path) && size_of(path2));
    channel_release(ch);
    end();
    begin();
    ch = open_durable("news", &few);
    EQUAL(channel_last(ch), 400);
    channel_release(ch);
    end();
}

int main(void)
{
    static const struct report_case cases[] = {
        {"a full disk refuses, and readers see nothing of it", test_full_disk},
        {"refuses what cannot be", test_refusals},
        {"the files stay within their bounds", test_bounds},
        {NULL, NULL},
    };
    return folder_run(cases);
}

// Durable channels: what was acknowledged is there after a restart, with its id.
#include <pthread.h>
#include "channel_log_probe.h"

static void test_restart(void)
{
    struct channel_options ten = {.replay = 10};
    char id[CHANNEL_ID + 1], text[32];
    forget();
    begin();
    struct channel *ch = open_durable("news", &ten);
    probe.channels[0] = ch;
    probe.count = 1;
    EQUAL(channel_publish(ch, SLICE(""), SLICE("x"), 0, NULL), CHANNEL_IS_DURABLE);
    for (int i = 1; i <= 25; i++) {
        snprintf(text, sizeof text, "event %d", i);
        EQUAL(publish(ch, text), CHANNEL_OK);
        EQUAL(back.sequence, i);
    }
    EQUAL(channel_last(ch), 25);
    strcpy(id, probe_id(ch, 23));
    channel_release(ch);
    end();

    begin();
    ch = open_durable("news", &ten);
    probe.channels[0] = ch;
    probe.count = 1;
    EQUAL(channel_last(ch), 25);
    struct memory *m = probe_get(&probe, id);
    SAME(strstr(probe_text(&probe, m), "data"),
         "data: event 24\nid: A-24\n\ndata: event 25\nid: A-25\n\n");
    EQUAL(publish(ch, "a\nb"), CHANNEL_OK);
    probe_turns(&probe, 4);
    SAME(probe_text(&probe, m), "data: a\ndata: b\nid: A-26\n\n");
    struct payload *kept[32];
    uint64_t first;
    EQUAL(channel_read(ch, 0, 0, kept, 32, &first), 10);
    EQUAL(first, 17);
    for (int i = 0; i < 10; i++) payload_release(kept[i]);
    memory_close(m);
    channel_release(ch);
    end();
}

static void test_finish(void)
{
    struct channel_options ten = {.replay = 10};
    forget();
    begin();
    struct channel *ch = open_durable("news", &ten);
    EQUAL(publish(ch, "one"), CHANNEL_OK);
    back.count = back.good = 0;
    CHECK(send_text(ch, CHANNEL_LOG_PUBLISH, "two"));
    CHECK(send_text(ch, CHANNEL_LOG_FINISH, "end"));
    if (send_text(ch, CHANNEL_LOG_PUBLISH, "late")) {
        wait_for(3);
        EQUAL(back.result, CHANNEL_IS_FINISHED);
    }
    wait_for(2);
    EQUAL(back.good, 2);
    CHECK(!send_text(ch, CHANNEL_LOG_END, ""));
    channel_release(ch);
    end();
    begin();
    ch = open_durable("news", &ten);
    CHECK(channel_is_finished(ch));
    EQUAL(channel_last(ch), 3);
    channel_release(ch);
    end();
    // By whoever does not wait.
    forget();
    begin();
    ch = open_durable("news", &ten);
    EQUAL(channel_finish(ch, false, SLICE(""), SLICE(""), 0, NULL), CHANNEL_OK);
    channel_release(ch);
    end();
    begin();
    ch = open_durable("news", &ten);
    CHECK(channel_is_finished(ch));
    channel_release(ch);
    end();
}

static bool ignore(struct journal_reader *r, const struct journal *j,
                   const struct journal_record *record)
{
    (void)r, (void)j, (void)record;
    return true;
}

// What has been finished for long begins anew; what is too old is not kept.
static void test_times(void)
{
    struct channel_options aged = {.replay = 10, .replay_age = 60000};
    struct journal_reader reader = {ignore};
    struct journal j;
    char error[JOURNAL_ERROR];
    struct journal_record list[] = {
        {.kind = JOURNAL_EVENT, .sequence = 1, .time = 1000, .data = SLICE("a")},
        {.kind = JOURNAL_EVENT, .sequence = 2, .time = UINT64_MAX, .data = SLICE("b")},
        {.kind = JOURNAL_END, .sequence = 3, .time = 1000},
    };
    forget();
    CHECK(journal_open(&j, path, "aaaaaaaa", &reader, error));
    EQUAL(journal_append(&j, list, 2), 0);
    journal_close(&j);
    begin();
    struct channel *ch = open_durable("news", &aged);
    struct payload *kept[4];
    uint64_t first;
    EQUAL(channel_read(ch, 0, 0, kept, 4, &first), 1);
    EQUAL(first, 2);
    for (int i = 0; i < 1; i++) payload_release(kept[i]);
    CHECK(memcmp(probe_id(ch, 1), "aaaaaaaa-", 9) == 0);
    channel_release(ch);
    end();
    CHECK(journal_open(&j, path, "bbbbbbbb", &reader, error));
    EQUAL(journal_append(&j, list + 2, 1), 0);
    journal_close(&j);
    begin();
    ch = open_durable("news", &aged);
    CHECK(!channel_is_finished(ch) && channel_last(ch) == 0);
    CHECK(memcmp(probe_id(ch, 1), "aaaaaaaa-", 9) != 0);
    EQUAL(publish(ch, "new"), CHANNEL_OK);
    EQUAL(back.sequence, 1);
    channel_release(ch);
    end();
}

// Jobs that nobody waits for any more, and a worker that ends before they come back.
static void test_forgotten(void)
{
    struct channel_options many = {.replay = 1000};
    struct channel_log_job *job;
    forget();
    begin();
    struct channel *ch = open_durable("news", &many);
    for (int i = 0; i < 100; i++)
        EQUAL(channel_log_publish(ch, CHANNEL_LOG_PUBLISH, SLICE(""), SLICE("x"), &probe.worker,
                                  &job),
              CHANNEL_OK);
    channel_release(ch);
    end();
    begin();
    ch = open_durable("news", &many);
    EQUAL(channel_last(ch), 100);
    channel_release(ch);
    end();
}

enum { THREADS = 4, EACH = 500 };

static void *publish_many(void *data)
{
    struct probe *p = data;
    char text[32];
    struct channel *ch = NULL;
    channel_open(registry, SLICE("news"), NULL, 1, 0, &ch);
    for (int i = 0; i < EACH; i++) {
        struct channel_log_job *job;
        snprintf(text, sizeof text, "%d of %p", i, data);
        if (channel_log_publish(ch, CHANNEL_LOG_PUBLISH, SLICE(""), slice_of_text(text), &p->worker,
                                &job) != CHANNEL_OK)
            return data;
        loop_run_once(&p->loop, 0);
    }
    while (atomic_load(&p->worker.jobs)) loop_run_once(&p->loop, 1);
    channel_release(ch);
    return NULL;
}

static void test_threads(void)
{
    static struct probe probes[THREADS];
    struct channel_options all = {.replay = THREADS * EACH};
    pthread_t threads[THREADS];
    forget();
    begin();
    struct channel *ch = open_durable("news", &all);
    for (int i = 0; i < THREADS; i++) probe_open(&probes[i]);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, publish_many, &probes[i]);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        CHECK(!failed);
        probe_close(&probes[i]);
    }
    EQUAL(channel_last(ch), THREADS * EACH);
    channel_release(ch);
    end();
    begin();
    ch = open_durable("news", &all);
    EQUAL(channel_last(ch), THREADS * EACH);
    channel_release(ch);
    end();
}

int main(void)
{
    static const struct report_case cases[] = {
        {"after a restart history, ids and epoch are back", test_restart},
        {"the end is durable too", test_finish},
        {"age counts over restarts", test_times},
        {"what nobody waits for is written", test_forgotten},
        {"many threads publish", test_threads},
        {NULL, NULL},
    };
    return folder_run(cases);
}

// Journals whose disk is full or fails: what was refused has not happened, and they go on later.
#include "journal_probe.h"

// Every call of the system fails in turn, once or for a while; what was acknowledged is there, and
// what was refused is not.
static void test_failing_calls(void)
{
    for (long after = 0; after < 60; after++) {
        for (long count = 1; count < 5; count++) {
            struct journal j;
            uint64_t good = 0;
            forget();
            if (!open_journal(&j, "aaaaaaaa")) return;
            journal_fail(after, count, after % 2 ? ENOSPC : EIO);
            for (int i = 0; i < 20; i++) {
                journal_rotate(&j, 200, j.next > 3 ? j.next - 3 : 1);
                int error = add(&j);
                if (!error) good++;
                if (error) EQUAL(error, after % 2 ? ENOSPC : EIO);
                EQUAL(j.next, good + 1);
            }
            journal_fail(0, 0, 0);
            CHECK(good >= 14);
            EQUAL(add(&j), 0); // what could not be cut off before is now
            good++;
            journal_close(&j);
            open_journal(&j, "bbbbbbbb");
            EQUAL(j.next, good + 1);
            CHECK(epoch_is(&j, "aaaaaaaa") && told_right() && told.count >= 4);
            journal_close(&j);
        }
    }
}

// A process that ends while its last write is refused in half leaves a tail, no more.
static void test_failing_then_killed(void)
{
    for (long after = 0; after < 8; after++) {
        struct journal j;
        forget();
        open_journal(&j, "aaaaaaaa");
        EQUAL(add(&j), 0);
        journal_fail(after % 2, 100, EIO);
        CHECK(add(&j) != 0);
        journal_fail(0, 0, 0);
        journal_close(&j);
        open_journal(&j, "bbbbbbbb");
        CHECK(epoch_is(&j, "aaaaaaaa") && told_right() && told.count >= 1);
        journal_close(&j);
    }
}

static void test_full_disk(void)
{
    struct rlimit before, small;
    struct journal j;
    forget();
    signal(SIGXFSZ, SIG_IGN);
    open_journal(&j, "aaaaaaaa");
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 5000; // writes come short before they fail
    setrlimit(RLIMIT_FSIZE, &small);
    int error = 0, good = 0;
    for (; good < 100 && !error; good += !error) error = add_padded(&j, 700);
    EQUAL(error, EFBIG);
    CHECK(good > 3 && good < 8);
    EQUAL(add_padded(&j, 700), EFBIG);
    EQUAL(size_of(path), j.len);
    setrlimit(RLIMIT_FSIZE, &before);
    EQUAL(add_padded(&j, 700), 0);
    journal_close(&j);
    open_journal(&j, "bbbbbbbb");
    EQUAL(told.count, good + 1);
    CHECK(epoch_is(&j, "aaaaaaaa"));
    journal_close(&j);
}

// On a full disk it can be opened, and goes on when there is room.
static void test_open_on_full_disk(void)
{
    static char bytes[4096];
    uint64_t ends[SMALL];
    struct journal j;
    size_t len = make_small(bytes, sizeof bytes, ends);
    bytes[len - 1] ^= 1;
    save(path, bytes, len);
    journal_fail(0, 3, ENOSPC);
    open_journal(&j, "bbbbbbbb");
    EQUAL(told.count, SMALL - 1);
    EQUAL(add(&j), ENOSPC);
    EQUAL(add(&j), ENOSPC);
    EQUAL(add(&j), 0);
    journal_fail(0, 0, 0);
    journal_close(&j);
    open_journal(&j, "cccccccc");
    CHECK(epoch_is(&j, "bbbbbbbb"));
    EQUAL(told.count, SMALL);
    journal_close(&j);
}

int main(void)
{
    static const struct report_case cases[] = {
        {"any call of the system may fail", test_failing_calls},
        {"what was half written is gone after the end", test_failing_then_killed},
        {"a full disk refuses, and goes on later", test_full_disk},
        {"on a full disk it can be opened", test_open_on_full_disk},
        {NULL, NULL},
    };
    return folder_run(cases);
}

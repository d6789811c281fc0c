// Journals whose files were cut off, changed or replaced: what stands before the damage is found.
#include "journal_probe.h"

static void test_cut_anywhere(void)
{
    static char bytes[4096];
    uint64_t ends[SMALL];
    size_t len = make_small(bytes, sizeof bytes, ends);
    CHECK(len == ends[SMALL - 1] && len > 200);
    for (size_t cut = 0; cut <= len; cut++) {
        struct journal j;
        forget();
        save(path, bytes, cut);
        if (!open_journal(&j, "bbbbbbbb")) return;
        CHECK(epoch_is(&j, cut < JOURNAL_HEAD ? "bbbbbbbb" : "aaaaaaaa"));
        check_goes_on(&j, whole_within(ends, SMALL, cut));
    }
}

static void test_flip_any_bit(void)
{
    static char bytes[4096];
    uint64_t ends[SMALL];
    size_t len = make_small(bytes, sizeof bytes, ends);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        struct journal j;
        forget();
        bytes[bit / 8] ^= (char)(1 << (bit % 8));
        save(path, bytes, len);
        bytes[bit / 8] ^= (char)(1 << (bit % 8));
        if (!open_journal(&j, "bbbbbbbb")) return;
        CHECK(epoch_is(&j, "bbbbbbbb"));
        CHECK((access(aside, F_OK) == 0) == (bit < 8 * JOURNAL_HEAD));
        check_goes_on(&j, whole_within(ends, SMALL, bit / 8));
    }
}

// Bytes of an earlier use of the file are no records of this one.
static void test_old_tail(void)
{
    static char old[4096], bytes[4096];
    uint64_t ends[SMALL];
    struct journal j;
    size_t len = make_small(old, sizeof old, ends);
    forget();
    open_journal(&j, "aaaaaaaa");
    EQUAL(add(&j), 0);
    EQUAL(journal_begin(&j, "aaaaaaaa"), 0);
    EQUAL(add(&j), 0);
    journal_close(&j);
    size_t now = load(path2, bytes, sizeof bytes);
    EQUAL(now, ends[0]);
    memcpy(bytes + now, old + now, len - now);
    save(path2, bytes, len);
    open_journal(&j, "bbbbbbbb");
    EQUAL(told.count, 1);
    CHECK(epoch_is(&j, "bbbbbbbb"));
    journal_close(&j);
}

// Random bytes, alone and in the place of good ones, in both segments.
static void test_noise(void)
{
    static char bytes[4096], good[4096];
    uint64_t ends[SMALL];
    size_t len = make_small(good, sizeof good, ends);
    for (int round = 0; round < 600; round++) {
        struct journal j;
        char error[JOURNAL_ERROR];
        size_t size = any(sizeof bytes), from = any(4) ? any(len) : 0;
        forget();
        for (size_t i = 0; i < size; i++) bytes[i] = (char)any(256);
        if (from < size) memcpy(bytes, good, from);
        save(any(2) ? path : path2, bytes, size);
        if (!open_with(&j, "bbbbbbbb", error)) {
            CHECK(strstr(error, "is not a channel's log") != NULL);
            continue;
        }
        CHECK(told_right());
        check_goes_on(&j, from < size ? whole_within(ends, SMALL, from) : told.count);
    }
}

// The second segment's head, and each of its bytes, cut off or flipped: never a broken row.
static void test_faults_of_two(void)
{
    static char first[16384], second[16384];
    struct journal j;
    forget();
    open_journal(&j, "aaaaaaaa");
    for (int i = 0; i < 7; i++) EQUAL(add(&j), 0);
    CHECK(journal_rotate(&j, 100, 1));
    for (int i = 0; i < 5; i++) EQUAL(add(&j), 0);
    CHECK(!journal_rotate(&j, 100, 1)); // the other one is needed
    journal_close(&j);
    size_t len1 = load(path, first, sizeof first), len2 = load(path2, second, sizeof second);
    for (int round = 0; round < 3000; round++) {
        uint64_t fault = any(2 * (len1 + len2)), at = fault / 2;
        size_t keep1 = len1, keep2 = len2;
        char *flipped = at < len1 ? &first[at] : &second[at - len1];
        bool is_cut = fault % 2, is_active = at >= len1;
        char mask = is_cut ? 0 : (char)(1 << any(8));
        if (is_cut) *(is_active ? &keep2 : &keep1) = is_active ? at - len1 : at;
        forget();
        *flipped ^= mask;
        save(path, first, keep1);
        save(path2, second, keep2);
        *flipped ^= mask;
        if (!open_journal(&j, "bbbbbbbb")) return;
        CHECK(told_right());
        if (!is_active) EQUAL(j.next, 13);
        if (!is_active) CHECK(told.first == 8 || (is_cut && at == len1));
        if (is_active && is_cut && at - len1 >= JOURNAL_HEAD) EQUAL(told.first, 1);
        if (is_active && !is_cut) CHECK(epoch_is(&j, "bbbbbbbb") && j.next < 13);
        uint64_t next = j.next;
        EQUAL(add(&j), 0);
        journal_close(&j);
        open_journal(&j, "zzzzzzzz");
        EQUAL(j.next, next + 1);
        CHECK(told_right());
        journal_close(&j);
    }
}

int main(void)
{
    static const struct report_case cases[] = {
        {"cut off at any byte, whole records stay", test_cut_anywhere},
        {"with any bit flipped, the records before it stay", test_flip_any_bit},
        {"what an earlier life has left is not taken for records", test_old_tail},
        {"noise is never taken for records", test_noise},
        {"with any fault in two segments the row is unbroken", test_faults_of_two},
        {NULL, NULL},
    };
    return folder_run(cases);
}

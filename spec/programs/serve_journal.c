// The journal: what was acknowledged is found again, whatever else happened to its files.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include "base/log.h"
#include "report.h"
#include "serve/journal.h"

enum { MOST = 4096, MOST_TEXT = 64 };

// In memory where that can be had: here the calls count, not the disk.
static char folder[40] = "/dev/shm/photon-journal-XXXXXX";
static char path[64], path2[80], aside[96], aside2[96];

// What a reader has been told.
struct told {
    struct journal_reader reader; // first
    uint64_t first, count;
    bool is_broken; // the row of sequences
    char texts[MOST][MOST_TEXT];
};

static struct told told;

static bool on_record(struct journal_reader *r, const struct journal *j,
                      const struct journal_record *record)
{
    struct told *t = (struct told *)r;
    (void)j;
    if (record->kind == JOURNAL_END) return true;
    if (t->count == 0) t->first = record->sequence;
    if (record->sequence != t->first + t->count) t->is_broken = true;
    if (t->count < MOST)
        snprintf(t->texts[t->count], MOST_TEXT, "%.*s|%.*s", (int)record->event.len,
                 record->event.ptr, (int)(record->data.len < 40 ? record->data.len : 40),
                 record->data.ptr);
    t->count++;
    return true;
}

static bool open_with(struct journal *j, const char *epoch, char error[JOURNAL_ERROR])
{
    told.count = told.first = 0;
    told.is_broken = false;
    told.reader.on_record = on_record;
    return journal_open(j, path, epoch, &told.reader, error);
}

static bool open_journal(struct journal *j, const char *epoch)
{
    char error[JOURNAL_ERROR] = "";
    bool ok = open_with(j, epoch, error);
    if (!ok) fprintf(stderr, "%s\n", error);
    return CHECK(ok);
}

static bool epoch_is(const struct journal *j, const char *epoch)
{
    return memcmp(j->epoch, epoch, JOURNAL_EPOCH) == 0;
}

static void forget(void)
{
    unlink(path);
    unlink(path2);
    unlink(aside);
    unlink(aside2);
}

static void text_of(uint64_t sequence, char to[MOST_TEXT])
{
    snprintf(to, MOST_TEXT, "%s|text %llu", sequence % 3 ? "" : "three",
             (unsigned long long)sequence);
}

static int add_padded(struct journal *j, size_t padding)
{
    static char data[1 << 16];
    char text[MOST_TEXT];
    text_of(j->next, text);
    char *bar = strchr(text, '|');
    size_t len = strlen(bar + 1);
    memset(data, 0, padding);
    memcpy(data, bar + 1, len);
    struct journal_record record = {.kind = JOURNAL_EVENT,
                                    .sequence = j->next,
                                    .time = 1000 + j->next,
                                    .event = {text, (size_t)(bar - text)},
                                    .data = {data, padding > len ? padding : len}};
    return journal_append(j, &record, 1);
}

static int add(struct journal *j)
{
    return add_padded(j, 0);
}

// All that was told is what was appended.
static bool told_right(void)
{
    char text[MOST_TEXT];
    if (told.is_broken) return false;
    for (uint64_t i = 0; i < told.count; i++) {
        text_of(told.first + i, text);
        if (strcmp(told.texts[i], text) != 0) return false;
    }
    return true;
}

static size_t load(const char *from, char *to, size_t room)
{
    int file = open(from, O_RDONLY);
    ssize_t len = file < 0 ? 0 : read(file, to, room);
    if (file >= 0) close(file);
    return len > 0 ? (size_t)len : 0;
}

static void save(const char *to, const char *bytes, size_t len)
{
    int file = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(file >= 0 && write(file, bytes, len) == (ssize_t)len);
    close(file);
}

// ------------------------------------------------------------------------------------------------

static void test_round(void)
{
    struct journal j;
    forget();
    if (!open_journal(&j, "aaaaaaaa")) return;
    EQUAL(j.next, 1);
    for (int i = 0; i < 10; i++) EQUAL(add(&j), 0);
    journal_close(&j);
    journal_close(&j);
    open_journal(&j, "bbbbbbbb");
    EQUAL(told.count, 10);
    EQUAL(told.first, 1);
    CHECK(told_right() && epoch_is(&j, "aaaaaaaa"));
    EQUAL(add(&j), 0);
    struct journal_record end = {.kind = JOURNAL_END, .sequence = j.next};
    EQUAL(journal_append(&j, &end, 1), 0);
    journal_close(&j);
    open_journal(&j, "bbbbbbbb");
    EQUAL(told.count, 11);
    EQUAL(j.next, 12);
    CHECK(j.has_end && told_right());
    EQUAL(journal_begin(&j, "cccccccc"), 0);
    EQUAL(add(&j), 0);
    journal_close(&j);
    open_journal(&j, "bbbbbbbb");
    EQUAL(told.count, 1);
    CHECK(!j.has_end && epoch_is(&j, "cccccccc"));
    journal_close(&j);
}

static void test_checksum(void)
{
    EQUAL(journal_checksum(0, "123456789", 9), 0xe3069283); // RFC 3720 B.4's polynomial
    EQUAL(journal_checksum(journal_checksum(0, "1234567890123", 13), "45", 2),
          journal_checksum(0, "123456789012345", 15));
    EQUAL(journal_checksum(0, "", 0), 0);
}

static void test_many_at_once(void)
{
    static struct journal_record list[1000];
    struct journal j;
    forget();
    open_journal(&j, "aaaaaaaa");
    for (int i = 0; i < 1000; i++)
        list[i] = (struct journal_record){
            .kind = JOURNAL_EVENT, .sequence = (uint64_t)i + 1, .data = SLICE("x")};
    EQUAL(journal_append(&j, list, 0), 0);
    EQUAL(journal_append(&j, list, 1000), 0);
    journal_close(&j);
    open_journal(&j, "bbbbbbbb");
    EQUAL(told.count, 1000);
    EQUAL(j.next, 1001);
    journal_close(&j);
}

// How many of the records end within so many bytes.
static uint64_t whole_within(const uint64_t *ends, unsigned count, size_t len)
{
    unsigned whole = 0;
    while (whole < count && ends[whole] <= len) whole++;
    return whole;
}

enum { SMALL = 6 };

static size_t make_small(char *bytes, size_t room, uint64_t ends[SMALL])
{
    struct journal j;
    forget();
    open_journal(&j, "aaaaaaaa");
    for (int i = 0; i < SMALL; i++) {
        EQUAL(add(&j), 0);
        ends[i] = j.len;
    }
    journal_close(&j);
    return load(path, bytes, room);
}

// After any fault it goes on: what is appended is there the next time, after what was kept.
static void check_goes_on(struct journal *j, uint64_t kept)
{
    char epoch[JOURNAL_EPOCH];
    EQUAL(told.count, kept);
    CHECK(told_right());
    EQUAL(j->next, kept + 1);
    EQUAL(add(j), 0);
    memcpy(epoch, j->epoch, JOURNAL_EPOCH);
    journal_close(j);
    open_journal(j, "zzzzzzzz");
    EQUAL(told.count, kept + 1);
    CHECK(told_right() && epoch_is(j, epoch));
    journal_close(j);
}

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

static uint64_t seed = 7;

static uint64_t any(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) % below;
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

static uint64_t size_of(const char *name)
{
    struct stat st;
    return stat(name, &st) ? 0 : (uint64_t)st.st_size;
}

// With 20 events of 1,000 bytes kept and a limit of 8,000 the files stay small; what is kept is
// always found again.
static void test_rotation(void)
{
    struct journal j;
    uint64_t most = 0;
    forget();
    open_journal(&j, "aaaaaaaa");
    for (int i = 0; i < 2000; i++) {
        uint64_t needed = j.next > 20 ? j.next - 20 : 1;
        journal_rotate(&j, 8000, needed);
        EQUAL(add_padded(&j, 1000), 0);
        uint64_t size = size_of(path) + size_of(path2);
        if (size > most) most = size;
        if (i % 37) continue;
        journal_close(&j);
        open_journal(&j, "bbbbbbbb");
        CHECK(epoch_is(&j, "aaaaaaaa") && !told.is_broken);
        EQUAL(told.first + told.count, (uint64_t)i + 2);
        CHECK(told.first <= needed);
    }
    CHECK(most > 20000 && most < 50000);
    journal_close(&j);
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

static bool is_refused(const char *text)
{
    struct journal j;
    char error[JOURNAL_ERROR] = "";
    bool ok = !open_with(&j, "aaaaaaaa", error) && strstr(error, text);
    if (!ok) fprintf(stderr, "not refused by \"%s\" but: \"%s\"\n", text, error);
    return ok;
}

static void test_refused(void)
{
    struct journal j;
    forget();
    open_journal(&j, "aaaaaaaa");
    CHECK(is_refused("in use")); // by whomever
    pid_t child = fork();
    if (child == 0) _exit(is_refused("is in use by another process") ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    EQUAL(status, 0);
    journal_close(&j);
    forget();
    save(path, "a note to myself, and not a log at all, as everybody can see", 50);
    CHECK(is_refused("is not a channel's log"));
    EQUAL(size_of(path), 50); // and is left alone
    save(path, "a note", 6);
    CHECK(is_refused("is not a channel's log"));
    EQUAL(size_of(path), 6);
    forget();
    mkdir(path, 0755);
    CHECK(is_refused(path));
    rmdir(path);
    mkfifo(path, 0644);
    CHECK(is_refused("no plain file"));
    unlink(path);
    path[strlen(folder) - 1] ^= 1; // another folder
    CHECK(is_refused("No such file or directory"));
    path[strlen(folder) - 1] ^= 1;
}

int main(void)
{
    static const struct report_case cases[] = {
        {"checksums are CRC-32C", test_checksum},
        {"what was appended is found again", test_round},
        {"many records at once", test_many_at_once},
        {"cut off at any byte, whole records stay", test_cut_anywhere},
        {"with any bit flipped, the records before it stay", test_flip_any_bit},
        {"what an earlier life has left is not taken for records", test_old_tail},
        {"noise is never taken for records", test_noise},
        {"two segments stay within their bounds", test_rotation},
        {"with any fault in two segments the row is unbroken", test_faults_of_two},
        {"any call of the system may fail", test_failing_calls},
        {"what was half written is gone after the end", test_failing_then_killed},
        {"a full disk refuses, and goes on later", test_full_disk},
        {"on a full disk it can be opened", test_open_on_full_disk},
        {"refuses what it cannot have", test_refused},
        {NULL, NULL},
    };
    if (!mkdtemp(folder) && !mkdtemp(strcpy(folder, "/tmp/photon-journal-XXXXXX"))) return 1;
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(path2, sizeof path2, "%s-2", path);
    snprintf(aside, sizeof aside, "%s.damaged", path);
    snprintf(aside2, sizeof aside2, "%s.damaged", path2);
    log_open(LOG_OFF, LOG_ERROR);
    int status = report_run(cases);
    forget();
    rmdir(folder);
    log_close();
    return status;
}

// The journal: what was acknowledged is found again.
#include "journal_probe.h"

static void test_checksum(void)
{
    EQUAL(journal_checksum(0, "123456789", 9), 0xe3069283); // RFC 3720 B.4's polynomial
    EQUAL(journal_checksum(journal_checksum(0, "1234567890123", 13), "45", 2),
          journal_checksum(0, "123456789012345", 15));
    EQUAL(journal_checksum(0, "", 0), 0);
}

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
        {"two segments stay within their bounds", test_rotation},
        {"refuses what it cannot have", test_refused},
        {NULL, NULL},
    };
    return folder_run(cases);
}

// journal_probe: journals, and what reading them tells.
#ifndef PHOTON_SPEC_JOURNAL_PROBE_H
#define PHOTON_SPEC_JOURNAL_PROBE_H

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>
#include "folder_probe.h"
#include "serve/journal.h"

enum { MOST = 4096, MOST_TEXT = 64 };

// What a reader has been told.
struct told {
    struct journal_reader reader; // first
    uint64_t first, count;
    bool is_broken; // the row of sequences
    char texts[MOST][MOST_TEXT];
};

static struct told told;

static inline bool on_record(struct journal_reader *r, const struct journal *j,
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

static inline bool open_with(struct journal *j, const char *epoch, char error[JOURNAL_ERROR])
{
    told.count = told.first = 0;
    told.is_broken = false;
    told.reader.on_record = on_record;
    return journal_open(j, path, epoch, &told.reader, error);
}

static inline bool open_journal(struct journal *j, const char *epoch)
{
    char error[JOURNAL_ERROR] = "";
    bool ok = open_with(j, epoch, error);
    if (!ok) fprintf(stderr, "%s\n", error);
    return CHECK(ok);
}

static inline bool epoch_is(const struct journal *j, const char *epoch)
{
    return memcmp(j->epoch, epoch, JOURNAL_EPOCH) == 0;
}

static inline void text_of(uint64_t sequence, char to[MOST_TEXT])
{
    snprintf(to, MOST_TEXT, "%s|text %llu", sequence % 3 ? "" : "three",
             (unsigned long long)sequence);
}

static inline int add_padded(struct journal *j, size_t padding)
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

static inline int add(struct journal *j)
{
    return add_padded(j, 0);
}

// All that was told is what was appended.
static inline bool told_right(void)
{
    char text[MOST_TEXT];
    if (told.is_broken) return false;
    for (uint64_t i = 0; i < told.count; i++) {
        text_of(told.first + i, text);
        if (strcmp(told.texts[i], text) != 0) return false;
    }
    return true;
}

static inline size_t load(const char *from, char *to, size_t room)
{
    int file = open(from, O_RDONLY);
    ssize_t len = file < 0 ? 0 : read(file, to, room);
    if (file >= 0) close(file);
    return len > 0 ? (size_t)len : 0;
}

static inline void save(const char *to, const char *bytes, size_t len)
{
    int file = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(file >= 0 && write(file, bytes, len) == (ssize_t)len);
    close(file);
}

// How many of the records end within so many bytes.
static inline uint64_t whole_within(const uint64_t *ends, unsigned count, size_t len)
{
    unsigned whole = 0;
    while (whole < count && ends[whole] <= len) whole++;
    return whole;
}

enum { SMALL = 6 };

static inline size_t make_small(char *bytes, size_t room, uint64_t ends[SMALL])
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
static inline void check_goes_on(struct journal *j, uint64_t kept)
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

static uint64_t seed = 7;

static inline uint64_t any(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (seed >> 11) % below;
}

#endif

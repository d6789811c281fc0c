// Opening a journal: whatever the files hold.
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "serve/journal_private.h"

enum { JOURNAL_PIECE = 256 * 1024 };

__attribute__((format(printf, 2, 3))) static bool journal_refuse(char error[JOURNAL_ERROR],
                                                                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, JOURNAL_ERROR, format, arguments);
    va_end(arguments);
    return false;
}

static bool journal_no_memory(char error[JOURNAL_ERROR])
{
    return journal_refuse(error, "not enough memory");
}

static char *journal_path(const char *path, const char *end)
{
    char *copy = mem_alloc(strlen(path) + strlen(end) + 1);
    if (copy) strcpy(stpcpy(copy, path), end);
    return copy;
}

// Files -------------------------------------------------------------------------------------------

bool journal_open_segment(struct journal *j, unsigned which, char error[JOURNAL_ERROR])
{
    struct journal_segment *s = &j->segments[which];
    struct stat st;
    s->file = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
    if (s->file < 0) return journal_refuse(error, "%s: %s", s->path, strerror(errno));
    if (fstat(s->file, &st)) return journal_refuse(error, "%s: %s", s->path, strerror(errno));
    if (!S_ISREG(st.st_mode)) return journal_refuse(error, "%s is no plain file", s->path);
    if (which == 0 && flock(s->file, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK) return journal_refuse(error, "%s: %s", s->path, strerror(errno));
        return journal_refuse(error, "%s is in use by another process", s->path);
    }
    if (which == 0) j->device = st.st_dev, j->inode = st.st_ino;
    return true;
}

static uint64_t journal_size(const struct journal_segment *s)
{
    struct stat st;
    return fstat(s->file, &st) ? 0 : (uint64_t)st.st_size;
}

// The old file is closed only in the end: until the new one was locked, nobody else could be here.
static bool journal_reopen_segment(struct journal *j, unsigned which, char error[JOURNAL_ERROR])
{
    int old = j->segments[which].file;
    bool ok = journal_open_segment(j, which, error);
    if (old >= 0) close(old);
    return ok;
}

bool journal_is_in_place(const struct journal_segment *s)
{
    struct stat named, ours;
    if (s->file < 0) return false;
    if (stat(s->path, &named)) return errno != ENOENT && errno != ENOTDIR;
    if (fstat(s->file, &ours)) return true;
    return named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

bool journal_was_cut(const struct journal *j)
{
    struct stat st;
    return fstat(j->segments[j->active].file, &st) == 0 && (uint64_t)st.st_size < j->len;
}

bool journal_restore_segment(struct journal *j, unsigned which)
{
    struct journal_segment *s = &j->segments[which];
    char error[JOURNAL_ERROR];
    if (journal_is_in_place(s)) return true;
    if (journal_reopen_segment(j, which, error) && journal_size(s) == 0) return true;
    if (s->file >= 0) close(s->file);
    s->file = -1;
    return false;
}

// So that the files' names are on the disk too.
static void journal_sync_folder(const char *path)
{
    char *copy = journal_path(path, "");
    if (!copy) return;
    int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
        (void)fsync(folder);
        close(folder);
    }
    mem_free(copy);
}

// Reading -----------------------------------------------------------------------------------------

// One segment to its end or its first fault; what the scan has met is left in it.
static bool journal_read_segment(struct journal_scan *s, const struct journal_segment *segment,
                                 char error[JOURNAL_ERROR])
{
    struct buf bytes = {0};
    uint64_t at = 0;
    bool ok = true;
    for (;;) {
        char *to = buf_reserve(&bytes, JOURNAL_PIECE);
        if (!to) ok = journal_no_memory(error);
        if (!ok) break;
        ssize_t len = pread(segment->file, to, JOURNAL_PIECE, (off_t)at);
        if (len < 0 && errno == EINTR) continue;
        if (len < 0) ok = journal_refuse(error, "%s: %s", segment->path, strerror(errno));
        if (len <= 0) break;
        at += (uint64_t)len;
        bytes.len += (size_t)len;
        buf_consume(&bytes, journal_scan(s, buf_slice(&bytes)));
        if (s->has_failed) ok = journal_no_memory(error);
        if (!ok || s->found == JOURNAL_BAD || s->found == JOURNAL_ALIEN) break;
    }
    if (!s->has_head && !journal_looks_like_head(buf_slice(&bytes))) s->found = JOURNAL_ALIEN;
    buf_reset(&bytes);
    return ok;
}

// A segment without a readable head: kept for whoever wants to look at it.
static bool journal_set_aside(struct journal *j, unsigned which, char error[JOURNAL_ERROR])
{
    struct journal_segment *s = &j->segments[which];
    char *aside = journal_path(s->path, ".damaged");
    if (!aside) return journal_no_memory(error);
    log_write(LOG_ERROR, "%s: damaged at byte 0: it has no head that can be read; kept as %s",
              s->path, aside);
    int failed = rename(s->path, aside);
    mem_free(aside);
    if (failed) return journal_refuse(error, "%s: %s", s->path, strerror(errno));
    return journal_reopen_segment(j, which, error);
}

static void journal_log_fault(const struct journal_segment *s, const struct journal_scan *scan,
                              bool is_active)
{
    uint64_t size = journal_size(s);
    unsigned long long at = scan->offset, rest = size > scan->offset ? size - scan->offset : 0;
    if (scan->found == JOURNAL_SHORT)
        log_write(LOG_WARN, "%s: cut off at byte %llu: the last %llu bytes are no whole record",
                  s->path, at, rest);
    else
        log_write(LOG_ERROR, "%s: damaged at byte %llu: %s%llu bytes from there on are lost%s",
                  s->path, at, is_active ? "the " : "what is older, and the ", rest,
                  is_active ? "; ids begin a new epoch" : "");
}

// Choosing ----------------------------------------------------------------------------------------

static bool journal_goes_before(const struct journal_scan *a, const struct journal_scan *b)
{
    return a->has_head && a->found == JOURNAL_GOOD && a->head.serial + 1 == b->head.serial &&
           a->next == b->head.base && memcmp(a->epoch, b->head.epoch, JOURNAL_EPOCH) == 0;
}

// A segment that was begun, but could not be used and not be cleared, is empty, and the older one
// has gone on. The same after a life that was not quite ended.
static bool journal_is_leftover(const struct journal_scan *newer, const struct journal_scan *older)
{
    return older->has_head && newer->offset <= JOURNAL_HEAD && older->next > newer->head.base;
}

static unsigned journal_choose(const struct journal_scan scans[2])
{
    if (!scans[1].has_head) return 0;
    if (!scans[0].has_head) return 1;
    unsigned newer = scans[1].head.serial > scans[0].head.serial;
    return journal_is_leftover(&scans[newer], &scans[!newer]) ? !newer : newer;
}

static void journal_take(struct journal *j, const struct journal_scan *active,
                         const char epoch[JOURNAL_EPOCH], bool is_damaged)
{
    const struct journal_segment *s = &j->segments[j->active];
    j->serial = active->has_head ? active->head.serial : 1;
    j->next = active->has_head ? active->next : 1;
    j->len = active->offset;
    j->has_end = active->has_end;
    j->is_headless = !active->has_head;
    j->is_renewed = is_damaged && active->has_head;
    j->is_torn = journal_size(s) > j->len;
    memcpy(j->epoch, is_damaged || !active->has_head ? epoch : active->epoch, JOURNAL_EPOCH);
}

// Telling -----------------------------------------------------------------------------------------

struct journal_teller {
    struct journal_scan scan; // first
    const struct journal *journal;
    struct journal_reader *reader;
};

static bool journal_tell_record(struct journal_scan *s, const struct journal_record *record)
{
    struct journal_teller *t = (struct journal_teller *)s;
    if (record->kind == JOURNAL_RENEWAL) return true;
    return t->reader->on_record(t->reader, t->journal, record);
}

static bool journal_tell(struct journal *j, unsigned which, struct journal_reader *reader,
                         char error[JOURNAL_ERROR])
{
    struct journal_teller t = {.journal = j, .reader = reader};
    t.scan.on_record = journal_tell_record;
    if (!journal_read_segment(&t.scan, &j->segments[which], error)) return false;
    j->segments[which].last = t.scan.next - 1;
    return true;
}

// Opening -----------------------------------------------------------------------------------------

static bool journal_open_files(struct journal *j, const char *path, struct journal_scan scans[2],
                               bool *is_damaged, char error[JOURNAL_ERROR])
{
    j->segments[0] = (struct journal_segment){.path = journal_path(path, ""), .file = -1};
    j->segments[1] = (struct journal_segment){.path = journal_path(path, "-2"), .file = -1};
    if (!j->segments[0].path || !j->segments[1].path) return journal_no_memory(error);
    for (unsigned i = 0; i < 2; i++) {
        if (!journal_open_segment(j, i, error)) return false;
        if (!journal_read_segment(&scans[i], &j->segments[i], error)) return false;
        if (scans[i].found == JOURNAL_ALIEN)
            return journal_refuse(error, "%s is not a channel's log", j->segments[i].path);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (scans[i].has_head || scans[i].found != JOURNAL_BAD) continue;
        *is_damaged = true;
        if (!journal_set_aside(j, i, error)) return false;
        scans[i] = (struct journal_scan){0};
    }
    return true;
}

static bool journal_recover(struct journal *j, const char *path, const char epoch[JOURNAL_EPOCH],
                            struct journal_reader *reader, char error[JOURNAL_ERROR])
{
    struct journal_scan scans[2] = {0};
    bool is_damaged = false;
    if (!journal_open_files(j, path, scans, &is_damaged, error)) return false;
    j->active = journal_choose(scans);
    const struct journal_scan *active = &scans[j->active], *other = &scans[!j->active];
    for (unsigned i = 0; i < 2; i++) {
        bool is_short = scans[i].found == JOURNAL_SHORT && journal_size(&j->segments[i]);
        if (is_short || scans[i].found == JOURNAL_BAD)
            journal_log_fault(&j->segments[i], &scans[i], i == j->active);
    }
    journal_take(j, active, epoch, is_damaged || active->found == JOURNAL_BAD);
    if (active->has_head && journal_goes_before(other, active)) {
        if (!journal_tell(j, !j->active, reader, error)) return false;
    }
    if (active->has_head && !journal_tell(j, j->active, reader, error)) return false;
    int failed = journal_settle(j);
    if (failed) log_write(LOG_ERROR, "%s: %s", j->segments[j->active].path, strerror(failed));
    return true;
}

bool journal_open(struct journal *j, const char *path, const char epoch[JOURNAL_EPOCH],
                  struct journal_reader *reader, char error[JOURNAL_ERROR])
{
    *j = (struct journal){0};
    if (!journal_recover(j, path, epoch, reader, error)) {
        journal_close(j);
        return false;
    }
    journal_sync_folder(path);
    return true;
}

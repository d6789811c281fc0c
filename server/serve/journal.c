#include "serve/journal.h"

#include <errno.h>
#include <unistd.h>
#include "base/log.h"
#include "base/mem.h"
#include "serve/journal_private.h"

enum { JOURNAL_GROUP = 128 }; // records in one call of the system

static int journal_file(const struct journal *j)
{
    return j->segments[j->active].file;
}

// A segment's first bytes, on the disk. A file that is cut first holds nothing of before.
static int journal_write_first(int file, const struct journal_head *head)
{
    char bytes[JOURNAL_HEAD];
    struct iovec part = {bytes, sizeof bytes};
    journal_write_head(bytes, head);
    int error = journal_truncate(file, 0);
    if (!error) error = journal_write_all(file, &part, 1, 0);
    return error ? error : journal_sync(file);
}

static int journal_write_epoch(struct journal *j)
{
    char head[JOURNAL_RECORD_HEAD];
    struct journal_record record = {
        .kind = JOURNAL_RENEWAL, .sequence = j->next, .data = {j->epoch, JOURNAL_EPOCH}};
    struct iovec parts[] = {{head, sizeof head}, {j->epoch, JOURNAL_EPOCH}};
    journal_write_record(head, &record, j->serial);
    int error = journal_write_all(journal_file(j), parts, 2, j->len);
    if (error) return error;
    return journal_sync(journal_file(j));
}

// The new epoch is written over the damage before the rest of it is cut off: whenever this is
// stopped, what is found next is either damage or the new epoch.
int journal_settle(struct journal *j)
{
    int error;
    if (j->is_headless) {
        struct journal_head head = {.serial = j->serial, .base = j->next};
        memcpy(head.epoch, j->epoch, JOURNAL_EPOCH);
        if ((error = journal_write_first(journal_file(j), &head))) return error;
        j->is_headless = j->is_renewed = j->is_torn = false;
        j->len = JOURNAL_HEAD;
    }
    if (j->is_renewed) {
        if ((error = journal_write_epoch(j))) return error;
        j->is_renewed = false;
        j->len += JOURNAL_RECORD_HEAD + JOURNAL_EPOCH;
    }
    if (j->is_torn) {
        if ((error = journal_truncate(journal_file(j), j->len))) return error;
        j->is_torn = false;
    }
    return 0;
}

// One group of records at `at`; moves `at` behind it.
static int journal_write_group(struct journal *j, const struct journal_record *list, size_t count,
                               uint64_t *at)
{
    char heads[JOURNAL_GROUP][JOURNAL_RECORD_HEAD];
    struct iovec parts[3 * JOURNAL_GROUP], *part = parts;
    uint64_t len = 0;
    for (size_t i = 0; i < count; i++) {
        journal_write_record(heads[i], &list[i], j->serial);
        *part++ = (struct iovec){heads[i], JOURNAL_RECORD_HEAD};
        *part++ = (struct iovec){(char *)list[i].event.ptr, list[i].event.len};
        *part++ = (struct iovec){(char *)list[i].data.ptr, list[i].data.len};
        len += JOURNAL_RECORD_HEAD + list[i].event.len + list[i].data.len;
    }
    int error = journal_write_all(journal_file(j), parts, (int)(part - parts), *at);
    *at += len;
    return error;
}

static int journal_write_list(struct journal *j, const struct journal_record *list, size_t count,
                              uint64_t *at)
{
    int error = 0;
    while (count && !error) {
        size_t group = count < JOURNAL_GROUP ? count : JOURNAL_GROUP;
        error = journal_write_group(j, list, group, at);
        list += group;
        count -= group;
    }
    return error ? error : journal_sync(journal_file(j));
}

// A file that was deleted, or moved away, would take what the next start does not find; and with
// the first one the lock is gone.
static bool journal_is_found(const struct journal *j)
{
    return journal_is_in_place(&j->segments[0]) && journal_is_in_place(&j->segments[j->active]);
}

// With a new head the ids go on; without one what follows could not be read again.
static void journal_mend_cut(struct journal *j)
{
    if (!journal_was_cut(j)) return;
    log_write(LOG_ERROR, "%s: cut off by another program: what it held is lost",
              j->segments[j->active].path);
    j->is_headless = true;
}

// After a failed sync nobody knows what of the file is on the disk: what was new is cut off and
// written again, so that no success rests on pages that were given up.
int journal_append(struct journal *j, const struct journal_record *list, size_t count)
{
    if (count == 0) return 0;
    if (!journal_is_found(j)) return ENOENT;
    journal_mend_cut(j);
    int error = journal_settle(j);
    if (error) return error;
    uint64_t end = j->len;
    error = journal_write_list(j, list, count, &end);
    if (error) {
        j->is_torn = journal_truncate(journal_file(j), j->len) != 0;
        return error;
    }
    j->len = end;
    for (size_t i = 0; i < count; i++) {
        if (list[i].kind == JOURNAL_EVENT || list[i].kind == JOURNAL_LAST) j->next++;
        if (list[i].kind == JOURNAL_LAST || list[i].kind == JOURNAL_END) j->has_end = true;
    }
    j->segments[j->active].last = j->next - 1;
    return 0;
}

bool journal_rotate(struct journal *j, uint64_t limit, uint64_t needed)
{
    unsigned to = !j->active;
    struct journal_head head = {.serial = j->serial + 1, .base = j->next};
    if (j->len < limit || j->len <= JOURNAL_HEAD || j->segments[to].last >= needed) return false;
    if (j->is_headless || j->is_renewed || j->is_torn) return false;
    if (!journal_restore_segment(j, to) || !journal_is_found(j)) return false;
    memcpy(head.epoch, j->epoch, JOURNAL_EPOCH);
    j->segments[to].last = 0;
    if (journal_write_first(j->segments[to].file, &head)) {
        (void)journal_truncate(j->segments[to].file, 0);
        return false;
    }
    j->active = to;
    j->serial++;
    j->len = JOURNAL_HEAD;
    return true;
}

// The higher serial counts, and with a base of 1 the other segment cannot go before it.
int journal_begin(struct journal *j, const char epoch[JOURNAL_EPOCH])
{
    unsigned to = !j->active;
    struct journal_head head = {.serial = j->serial + 1, .base = 1};
    memcpy(head.epoch, epoch, JOURNAL_EPOCH);
    int error = journal_write_first(j->segments[to].file, &head);
    if (error) return error;
    (void)journal_truncate(j->segments[j->active].file, 0);
    memcpy(j->epoch, epoch, JOURNAL_EPOCH);
    j->segments[0].last = j->segments[1].last = 0;
    j->active = to;
    j->serial++;
    j->next = 1;
    j->len = JOURNAL_HEAD;
    j->has_end = j->is_headless = j->is_renewed = j->is_torn = false;
    return 0;
}

void journal_close(struct journal *j)
{
    for (int i = 0; i < 2; i++) {
        struct journal_segment *s = &j->segments[i];
        if (s->path && s->file >= 0) close(s->file); // and with it goes the lock
        mem_free(s->path);
    }
    memset(j, 0, sizeof *j);
}

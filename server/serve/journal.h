// journal: a log of events in files, for one writer. What journal_append has acknowledged is on the
// disk. It lives in two segments, PATH and PATH-2, written in turn: when one has grown to the limit
// and nothing in the other is needed any more, the other is begun anew. So the files stay within
// twice the larger of the limit and what is needed.
//
// Whatever the files hold, opening finds the records that are whole: at the first one that is cut
// off or damaged it logs the file and the offset and goes on from there. Records that were damaged,
// not just cut off by the end of a process, may have been seen by others; so that none of their ids
// is ever given twice, the journal then gets a new epoch. A segment with a damaged head is kept as
// PATH.damaged; a file that never was a segment is refused.
//
// Nothing here locks: one thread at a time uses a journal.
#ifndef PHOTON_SERVE_JOURNAL_H
#define PHOTON_SERVE_JOURNAL_H

#include <sys/stat.h>
#include "serve/journal_format.h"

enum { JOURNAL_ERROR = 512 };

struct journal_segment {
    char *path;
    int file;      // -1: not open
    uint64_t last; // the last sequence in it that may be needed; 0: none
};

struct journal {
    struct journal_segment segments[2];
    unsigned active;
    uint64_t serial, next; // of the active one; the sequence that comes next
    uint64_t len;          // of the active one, as far as it is good and on the disk
    char epoch[JOURNAL_EPOCH];
    bool has_end;     // nothing can be appended
    bool is_headless; // the active segment is still to be begun, with a head
    bool is_renewed;  // the epoch is still to be written
    bool is_torn;     // behind `len` there is something that is to be cut off
    dev_t device;     // of PATH
    ino_t inode;
};

// What opening tells of: each record, oldest first, in an unbroken row of sequences; `j->epoch` and
// `j->next` are known by then. False gives up.
struct journal_reader {
    bool (*on_record)(struct journal_reader *r, const struct journal *j,
                      const struct journal_record *record);
};

// Opens and locks PATH, creating it if need be; `epoch` is for a new life. False with the reason in
// `error`, and then nothing is open. Writes nothing that a full disk would keep it from.
bool journal_open(struct journal *j, const char *path, const char epoch[JOURNAL_EPOCH],
                  struct journal_reader *reader, char error[JOURNAL_ERROR]);
void journal_close(struct journal *j); // harmless when repeated, or on a zeroed one

// Appends records, whose sequences follow one another from j->next on, and waits until they are on
// the disk. 0, or an errno: then none of them is in the journal, and it can be tried again.
int journal_append(struct journal *j, const struct journal_record *list, size_t count);

// Goes over to the other segment, if the active one has grown to `limit` and nothing from `needed`
// on is in the other. True when it has.
bool journal_rotate(struct journal *j, uint64_t limit, uint64_t needed);

// Forgets everything: a new life with sequences from 1. 0, or an errno.
int journal_begin(struct journal *j, const char epoch[JOURNAL_EPOCH]);

// For specs: `after` more calls of the system work, the next `count` fail with `error`, a write
// after having written half. Always linked.
void journal_fail(long after, long count, int error);

#endif

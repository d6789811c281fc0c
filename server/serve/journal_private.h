// journal_private: what the files of the room share; for them alone.
#ifndef PHOTON_SERVE_JOURNAL_PRIVATE_H
#define PHOTON_SERVE_JOURNAL_PRIVATE_H

#include <sys/uio.h>
#include "serve/journal.h"

// journal_io.c: calls of the system, whole or not at all; 0, or an errno.
int journal_write_all(int file, struct iovec *parts, int count, uint64_t at);
int journal_truncate(int file, uint64_t len);
int journal_sync(int file);

// Does what is still to be done before anything can be appended. 0, or an errno.
int journal_settle(struct journal *j);

// journal_open.c: the files
bool journal_open_segment(struct journal *j, unsigned which, char error[JOURNAL_ERROR]);
// Whether the next start finds the file that is open.
bool journal_is_in_place(const struct journal_segment *s);
// Whether another program has cut off what was written.
bool journal_was_cut(const struct journal *j);
// Makes a file that was deleted, or moved away, anew. False when it cannot be, or when another file
// with something in it stands there.
bool journal_restore_segment(struct journal *j, unsigned which);

#endif

// compress: gzip (RFC 1952) of a stream that is flushed as it goes, so that what goes in comes out
// at once. About 50 KiB for each stream that uses it.
#ifndef PHOTON_SERVE_COMPRESS_H
#define PHOTON_SERVE_COMPRESS_H

#include <stdbool.h>
#include "base/buf.h"
#include "text/headers.h"

struct compress;

// NULL when there is no memory.
struct compress *compress_new(void);
void compress_free(struct compress *c); // NULL is harmless

// Appends the compressed form of `bytes` to `to`, flushed so that all of it can be read (or, at the
// end, with the trailer). False when there is no memory; the stream cannot go on then.
bool compress_write(struct compress *c, struct slice bytes, bool is_end, struct buf *to);

// Whether the request's accept-encoding fields allow gzip (RFC 9110 12.5.3).
bool compress_is_accepted(const struct headers *request);

#endif

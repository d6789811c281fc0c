// http1_write: replies as HTTP/1.1 text. Pure.
#ifndef PHOTON_TEXT_HTTP1_WRITE_H
#define PHOTON_TEXT_HTTP1_WRITE_H

#include "base/buf.h"
#include "base/payload.h"
#include "text/message.h"

enum { HTTP1_CHUNK_HEAD = 20 }; // most bytes that a chunk size line takes

// Status line and field lines of `reply` (a prerendered reply->http1 is copied), with
// content-length when it is known and the status allows it (RFC 9110 8.6); without date and the
// final blank line.
bool http1_write_head(struct buf *to, const struct reply *reply);

// What completes a head: `date` (29 bytes of IMF-fixdate), connection and transfer-encoding as
// told, and the blank line.
struct http1_finish {
    struct slice date;
    bool close;      // connection: close
    bool keep_alive; // connection: keep-alive, for HTTP/1.0 peers
    bool chunked;    // transfer-encoding: chunked
    bool server;     // server: photon
};
bool http1_write_finish(struct buf *to, const struct http1_finish *f);

// The size line of a chunk of `len` bytes at `to` (HTTP1_CHUNK_HEAD bytes of room); its length.
size_t http1_write_chunk_head(char *to, size_t len);

// Frames a payload as one chunk, in its head and tail room; for its maker, once.
void http1_write_frame(struct payload *p);

#endif

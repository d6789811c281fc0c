// http1_read_response: HTTP/1.1 responses out of bytes, for clients: the part of http1_read that
// reads the other side. Pure: no I/O, no clock. Does not depend on how the bytes are cut: the
// caller keeps what was not consumed and calls again with more.
#ifndef PHOTON_TEXT_HTTP1_READ_RESPONSE_H
#define PHOTON_TEXT_HTTP1_READ_RESPONSE_H

#include <llhttp.h>
#include "text/headers.h"

enum { HTTP1_RESPONSE_HEAD_MAX = 32768 };

enum http1_response_event {
    HTTP1_RESPONSE_MORE,
    HTTP1_RESPONSE_HEAD,      // `response` is filled; its slices point into the given bytes
    HTTP1_RESPONSE_BODY,      // reader->piece is the next part of the body, within the given bytes
    HTTP1_RESPONSE_END,       // the response is complete; bytes that follow belong to the next one
    HTTP1_RESPONSE_TRUNCATED, // only at the end of the connection
    HTTP1_RESPONSE_ERROR,     // reader->detail (a constant) says why; the connection is of no use
};

// A head. Interim responses (1xx) are passed over.
struct http1_response {
    int status;
    bool is_chunked;
    struct headers headers; // items and cap are the caller's; fields beyond cap are left out
};

struct http1_response_reader {
    struct slice piece;
    const char *detail;
    size_t scanned; // how much of an unfinished head was looked at
    uint8_t state;
    bool is_head; // the request was a HEAD: no body follows
    bool keep_alive;
    bool is_done;
    llhttp_t parser;
};

// Once for each connection.
void http1_read_response_init(struct http1_response_reader *r);

// Before each response: what its request was.
void http1_read_response_begin(struct http1_response_reader *r, bool is_head);

// Looks at the `len` bytes at `bytes` (header names are made lower case in place) and returns the
// next event; *used tells how many bytes it has consumed. Call until HTTP1_RESPONSE_MORE or _END.
enum http1_response_event http1_read_response_next(struct http1_response_reader *r, char *bytes,
                                                   size_t len, size_t *used,
                                                   struct http1_response *response);

// The peer has closed, with `kept` bytes not consumed: _END when that completes the response (a
// body without a length), _MORE when no byte of one has come, else _TRUNCATED.
enum http1_response_event http1_read_response_finish(struct http1_response_reader *r, size_t kept);

#endif

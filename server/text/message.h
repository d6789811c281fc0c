// message: a request and a reply as data, whatever the protocol that carries them.
#ifndef PHOTON_TEXT_MESSAGE_H
#define PHOTON_TEXT_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/slice.h"
#include "text/headers.h"

// The methods that have a table of their own in the router; any other token is METHOD_OTHER.
enum method {
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_PATCH,
    METHOD_DELETE,
    METHOD_OPTIONS,
    METHOD_OTHER,
};

struct request {
    enum method method;
    struct slice method_name; // as sent
    struct slice target;      // as sent
    struct slice path;        // as sent, still escaped, begins with '/' (or is "*" for OPTIONS)
    struct slice query;       // after the first '?', without it; empty when there is none
    struct slice host;        // authority: of the target in absolute form, else the Host field
    struct headers headers;
    int64_t content_length; // announced length; 0 without a body, -1 when it is not known before
    bool is_http10;         // the peer speaks no chunked coding
    bool keep_alive;        // the peer wants the connection afterwards
    bool expects_continue;  // it waits for 100 before it sends the body (RFC 9110 10.1.1)
};

// The head of a reply. content_length -1: not known before (chunked in HTTP/1.1); it is never
// listed among `headers`, nor are date, connection, transfer-encoding: the protocol writes those.
struct reply {
    int status;
    int64_t content_length;
    struct headers headers;
    struct slice http1; // when set: status line and `headers` with content-length, prerendered by
                        // http1_write_head; the fields above say the same to other protocols
};

// The method of a name (case matters, RFC 9110 9.1).
enum method message_method(struct slice name);

// Its name; "" for METHOD_OTHER.
struct slice message_method_name(enum method m);

// The standard reason phrase (RFC 9110 15); "Unknown" for others.
const char *message_reason(int status);

// A deep copy of the request into the arena: bytes and header array. False when there is no memory.
bool message_copy_request(struct request *to, const struct request *from, struct arena *a);

// True for statuses that never carry a body: 1xx, 204, 304 (RFC 9110 6.4.1).
static inline bool message_is_bodyless(int status)
{
    return status < 200 || status == 204 || status == 304;
}

#endif

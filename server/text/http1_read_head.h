// http1_read_head: what a parsed HTTP/1.1 head means: its target, host, framing, persistence.
// Judges the request as data, after llhttp; only for http1_read.
#ifndef PHOTON_TEXT_HTTP1_READ_HEAD_H
#define PHOTON_TEXT_HTTP1_READ_HEAD_H

#include "text/http1_guard.h"
#include "text/message.h"

// From method, method_name, target, headers and is_http10 the rest of the request is filled in:
// path, query, host, content_length (-1 when the body is chunked), keep_alive, expects_continue.
// NULL when the request is in order. Slices point into what target and headers point into.
const struct http1_fault *http1_read_head_judge(struct request *request);

#endif

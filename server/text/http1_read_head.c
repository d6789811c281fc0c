#include "text/http1_read_head.h"

static const struct http1_fault no_host = {400, "no Host field"},
                                two_hosts = {400, "more than one Host field"},
                                bad_host = {400, "the host is malformed"},
                                bad_target = {400, "the request target is malformed"},
                                no_tunnel = {501, "CONNECT is not implemented"},
                                no_trace = {501, "TRACE is not implemented"},
                                bad_length = {400, "Content-Length is malformed"},
                                two_lengths = {400, "more than one Content-Length"},
                                huge_length = {413, "the body is too large"},
                                two_codings = {400, "more than one Transfer-Encoding"},
                                no_coding = {400, "Transfer-Encoding is empty"},
                                bad_coding = {501, "the transfer coding is not implemented"},
                                coding_and_length = {400, "Transfer-Encoding and Content-Length"},
                                old_coding = {400, "Transfer-Encoding in HTTP/1.0"},
                                bad_expect = {417, "the expectation is not known"};

// The fields that matter here, as they are met.
struct marks {
    const struct header *host, *length, *coding;
    const struct http1_fault *fault;
    bool close, keep_alive, expects;
};

static void mark_once(struct marks *m, const struct header **seen, const struct header *field,
                      const struct http1_fault *twice)
{
    if (*seen && !m->fault) m->fault = twice;
    *seen = field;
}

static void mark_expect(struct marks *m, struct slice value)
{
    if (slice_equals_nocase(value, SLICE("100-continue")))
        m->expects = true;
    else if (!m->fault)
        m->fault = &bad_expect;
}

static void mark_field(struct marks *m, const struct header *field, bool is_http10)
{
    const char *name = field->name.ptr;
    switch (field->name.len) {
    case 4:
        if (memcmp(name, "host", 4) == 0) mark_once(m, &m->host, field, &two_hosts);
        break;
    case 6:
        if (memcmp(name, "expect", 6) == 0 && !is_http10) mark_expect(m, field->value);
        break;
    case 10:
        if (memcmp(name, "connection", 10) != 0) break;
        if (headers_has_token(field->value, SLICE("close"))) m->close = true;
        if (headers_has_token(field->value, SLICE("keep-alive"))) m->keep_alive = true;
        break;
    case 14:
        if (memcmp(name, "content-length", 14) == 0) mark_once(m, &m->length, field, &two_lengths);
        break;
    case 17:
        if (memcmp(name, "transfer-encoding", 17) == 0)
            mark_once(m, &m->coding, field, &two_codings);
        break;
    }
}

static const struct http1_fault *judge_length(struct request *request, struct slice value)
{
    int64_t length = 0;
    if (value.len == 0) return &bad_length;
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9') return &bad_length;
        int digit = value.ptr[i] - '0';
        if (length > (INT64_MAX - digit) / 10) return &huge_length;
        length = length * 10 + digit;
    }
    request->content_length = length;
    return NULL;
}

static const struct http1_fault *judge_framing(struct request *request, const struct marks *m)
{
    if (!m->coding) return m->length ? judge_length(request, m->length->value) : NULL;
    if (request->is_http10) return &old_coding;
    if (m->length) return &coding_and_length;
    if (m->coding->value.len == 0) return &no_coding;
    if (!slice_equals_nocase(m->coding->value, SLICE("chunked"))) return &bad_coding;
    request->content_length = -1;
    return NULL;
}

static void split_query(struct request *request, struct slice path)
{
    const char *mark = memchr(path.ptr, '?', path.len);
    request->path = path;
    request->query = slice_of(path.ptr + path.len, 0);
    if (!mark) return;
    request->path.len = (size_t)(mark - path.ptr);
    request->query = slice_from(path, request->path.len + 1);
}

static bool has_prefix_nocase(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && strncasecmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

// http://host:port/path?query. The host takes the place of the Host field (RFC 9112 3.2.2).
static const struct http1_fault *judge_absolute(struct request *request)
{
    struct slice target = request->target, rest;
    if (has_prefix_nocase(target, SLICE("http://")))
        rest = slice_from(target, 7);
    else if (has_prefix_nocase(target, SLICE("https://")))
        rest = slice_from(target, 8);
    else
        return &bad_target;
    size_t host = 0;
    while (host < rest.len && rest.ptr[host] != '/' && rest.ptr[host] != '?') host++;
    request->host = slice_of(rest.ptr, host);
    if (!http1_guard_is_host(request->host)) return &bad_host;
    split_query(request, slice_from(rest, host));
    // Without a path it is the root; the scheme has a slash to point at.
    if (request->path.len == 0) request->path = slice_of(rest.ptr - 1, 1);
    return NULL;
}

static const struct http1_fault *judge_target(struct request *request)
{
    struct slice target = request->target;
    if (target.len == 0 || memchr(target.ptr, '#', target.len)) return &bad_target;
    if (target.ptr[0] == '/') {
        split_query(request, target);
        return NULL;
    }
    if (!slice_equals(target, SLICE("*"))) return judge_absolute(request);
    request->path = target;
    request->query = slice_of(target.ptr + 1, 0);
    return request->method == METHOD_OPTIONS ? NULL : &bad_target;
}

static const struct http1_fault *judge_host(struct request *request, const struct marks *m)
{
    if (m->host) {
        request->host = m->host->value;
        return http1_guard_is_host(request->host) ? NULL : &bad_host;
    }
    request->host = slice_of(request->target.ptr, 0);
    return request->is_http10 ? NULL : &no_host;
}

const struct http1_fault *http1_read_head_judge(struct request *request)
{
    struct marks m = {0};
    const struct http1_fault *fault;
    if (slice_equals(request->method_name, SLICE("CONNECT"))) return &no_tunnel;
    if (slice_equals(request->method_name, SLICE("TRACE"))) return &no_trace;
    for (uint32_t i = 0; i < request->headers.count; i++)
        mark_field(&m, &request->headers.items[i], request->is_http10);
    if (m.fault) return m.fault;
    if ((fault = judge_framing(request, &m))) return fault;
    if ((fault = judge_host(request, &m))) return fault;
    if ((fault = judge_target(request))) return fault;
    request->keep_alive = !m.close && (!request->is_http10 || m.keep_alive);
    // Without a body there is nothing to wait for (RFC 9110 10.1.1).
    request->expects_continue = m.expects && request->content_length != 0;
    return NULL;
}

#include "bench_request.h"

#include <errno.h>
#include <stdio.h>
#include "text/headers.h"

enum { BENCH_HOST = 256, BENCH_PATH = 108 };

// The parts of a URL: http://HOST:PORT/TARGET or unix:/PATH:/TARGET.
struct bench_url {
    char host[BENCH_HOST]; // or the path of a unix socket
    char port[8];
    struct slice authority; // for the host field
    struct slice target;    // "/path?query", or empty
    bool is_unix;
};

static bool bench_refuse(char *error, size_t size, const char *url, const char *why)
{
    snprintf(error, size, "%s: %s", url, why);
    return false;
}

static bool bench_copy(char *to, size_t room, struct slice from)
{
    if (from.len >= room) return false;
    memcpy(to, from.ptr, from.len);
    to[from.len] = 0;
    return true;
}

// What is wrong, or NULL.
static const char *bench_url_read_authority(struct bench_url *url)
{
    struct slice host = url->authority, port = SLICE("80");
    const char *end = host.ptr + host.len, *colon = memrchr(host.ptr, ':', host.len);
    bool has_bracket = host.len && host.ptr[0] == '[';
    if (memchr(host.ptr, '@', host.len)) return "give the user by -H 'authorization: …'";
    if (colon && has_bracket && colon[-1] != ']') colon = NULL;
    if (colon) {
        port = slice_of(colon + 1, (size_t)(end - colon) - 1);
        host.len = (size_t)(colon - host.ptr);
    }
    if (has_bracket) {
        if (host.len < 3 || host.ptr[host.len - 1] != ']') return "the bracket is not closed";
        host = slice_of(host.ptr + 1, host.len - 2);
    }
    if (host.len == 0) return "the host is missing";
    if (!bench_copy(url->host, sizeof(url->host), host)) return "the host name is too long";
    unsigned value = 0;
    for (size_t i = 0; i < port.len && i < 6; i++)
        value = port.ptr[i] >= '0' && port.ptr[i] <= '9'
                    ? value * 10 + (unsigned)(port.ptr[i] - '0')
                    : 65536;
    if (value < 1 || value > 65535) return "the port is a number from 1 to 65535";
    return bench_copy(url->port, sizeof(url->port), port) ? NULL : "the port has too many digits";
}

static const char *bench_url_read_unix(struct bench_url *url, struct slice rest)
{
    const char *colon = memmem(rest.ptr, rest.len, ":/", 2);
    struct slice path = slice_of(rest.ptr, colon ? (size_t)(colon - rest.ptr) : rest.len);
    url->target = slice_from(rest, colon ? path.len + 1 : path.len);
    url->is_unix = true;
    url->authority = SLICE("localhost");
    if (path.len == 0) return "the path of the socket is missing";
    return bench_copy(url->host, BENCH_PATH, path)
               ? NULL
               : "the path of a unix socket has at most 107 bytes";
}

static const char *bench_url_read_http(struct bench_url *url, struct slice rest)
{
    size_t len = 0;
    while (len < rest.len && !strchr("/?", rest.ptr[len])) len++;
    url->authority = slice_of(rest.ptr, len);
    url->target = slice_from(rest, len);
    return bench_url_read_authority(url);
}

static const char *bench_url_read(struct bench_url *url, const char *text)
{
    struct slice all = slice_of_text(text);
    const char *fragment = strchr(text, '#');
    if (fragment) all.len = (size_t)(fragment - text);
    for (size_t i = 0; i < all.len; i++)
        if ((unsigned char)text[i] <= ' ' || text[i] == 127) return "a URL has no spaces";
    if (strncasecmp(text, "https:", 6) == 0)
        return "bench speaks no TLS; measure the plain http:// port behind it";
    if (strncasecmp(text, "http://", 7) == 0) return bench_url_read_http(url, slice_from(all, 7));
    if (strncmp(text, "unix:", 5) == 0) return bench_url_read_unix(url, slice_from(all, 5));
    return "write http://HOST:PORT/PATH or unix:/PATH.sock:/PATH";
}

// A header as given, in its parts. False when it is none.
static bool bench_header_read(const char *text, struct header *to)
{
    const char *colon = strchr(text, ':');
    if (!colon) return false;
    to->name = slice_of(text, (size_t)(colon - text));
    to->value = slice_trim(slice_of_text(colon + 1));
    return headers_is_name(to->name) && headers_is_value(to->value);
}

static bool bench_has_header(const struct bench_request *r, struct slice name)
{
    struct header h;
    for (unsigned i = 0; i < r->header_count; i++)
        if (bench_header_read(r->headers[i], &h) && slice_equals_nocase(h.name, name)) return true;
    return false;
}

static bool bench_add(struct buf *b, struct slice name, struct slice value)
{
    return buf_append_slice(b, name) && buf_append_slice(b, SLICE(": ")) &&
           buf_append_slice(b, value) && buf_append_slice(b, SLICE("\r\n"));
}

static bool bench_add_default(struct buf *b, const struct bench_request *r, struct slice name,
                              struct slice value)
{
    return bench_has_header(r, name) || bench_add(b, name, value);
}

static struct slice bench_accept(enum bench_mode mode)
{
    return mode == BENCH_SSE ? SLICE("text/event-stream") : SLICE("*/*");
}

static bool bench_write_head(struct bench_options *o, const struct bench_request *r,
                             const struct bench_url *url, size_t body)
{
    struct buf *b = &o->request;
    struct header h;
    char length[24];
    snprintf(length, sizeof(length), "%zu", body);
    bool ok = buf_append_slice(b, o->method) && buf_append(b, " ", 1) &&
              (url->target.len && url->target.ptr[0] == '/' ? true : buf_append(b, "/", 1)) &&
              buf_append_slice(b, url->target) && buf_append_slice(b, SLICE(" HTTP/1.1\r\n")) &&
              bench_add_default(b, r, SLICE("host"), url->authority) &&
              bench_add_default(b, r, SLICE("user-agent"), SLICE("photon-bench")) &&
              bench_add_default(b, r, SLICE("accept"), bench_accept(o->mode));
    for (unsigned i = 0; ok && i < r->header_count; i++)
        ok = bench_header_read(r->headers[i], &h) && bench_add(b, h.name, h.value);
    if (ok && (r->body || slice_equals(o->method, SLICE("POST"))))
        ok = bench_add_default(b, r, SLICE("content-length"), slice_of_text(length));
    return ok && buf_append_slice(b, SLICE("\r\n"));
}

static bool bench_check_headers(const struct bench_request *r, char *error, size_t size)
{
    struct header h;
    for (unsigned i = 0; i < r->header_count; i++) {
        if (bench_header_read(r->headers[i], &h)) continue;
        snprintf(error, size, "-H %s: write 'name: value'", r->headers[i]);
        return false;
    }
    if (r->method && !headers_is_name(slice_of_text(r->method))) {
        snprintf(error, size, "-X %s is no method", r->method);
        return false;
    }
    return true;
}

static bool bench_find_peer(struct bench_options *o, const struct bench_url *url, char *error,
                            size_t size)
{
    if (!url->is_unix) return connector_resolve(&o->target, url->host, url->port, error, size);
    return connector_set_path(&o->target, url->host);
}

bool bench_request_make(struct bench_options *o, const struct bench_request *r, char *error,
                        size_t size)
{
    struct bench_url url = {0};
    struct buf body = {0};
    const char *why = bench_url_read(&url, o->url);
    if (why) return bench_refuse(error, size, o->url, why);
    if (!bench_check_headers(r, error, size)) return false;
    bool is_file = r->body && r->body[0] == '@';
    if (is_file && !bench_file_read(&body, r->body + 1)) {
        buf_reset(&body);
        return bench_refuse(error, size, r->body + 1, strerror(errno));
    }
    if (r->body && !is_file && !buf_append(&body, r->body, strlen(r->body)))
        return bench_refuse(error, size, "--body", "not enough memory");
    o->method = slice_of_text(r->method ? r->method : r->body ? "POST" : "GET");
    bool ok =
        bench_write_head(o, r, &url, body.len) && buf_append_slice(&o->request, buf_slice(&body));
    buf_reset(&body);
    if (!ok) return bench_refuse(error, size, "the request", "not enough memory");
    return bench_find_peer(o, &url, error, size);
}

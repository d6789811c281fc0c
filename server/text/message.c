#include "text/message.h"

static const struct slice message_methods[] = {
    [METHOD_GET] = SLICE_INIT("GET"),         [METHOD_HEAD] = SLICE_INIT("HEAD"),
    [METHOD_POST] = SLICE_INIT("POST"),       [METHOD_PUT] = SLICE_INIT("PUT"),
    [METHOD_PATCH] = SLICE_INIT("PATCH"),     [METHOD_DELETE] = SLICE_INIT("DELETE"),
    [METHOD_OPTIONS] = SLICE_INIT("OPTIONS"), [METHOD_OTHER] = SLICE_INIT(""),
};

// RFC 9110 15 and what IANA's registry of status codes adds.
static const char *const message_reasons[600] = {
    [100] = "Continue",
    [101] = "Switching Protocols",
    [102] = "Processing",
    [103] = "Early Hints",
    [200] = "OK",
    [201] = "Created",
    [202] = "Accepted",
    [203] = "Non-Authoritative Information",
    [204] = "No Content",
    [205] = "Reset Content",
    [206] = "Partial Content",
    [207] = "Multi-Status",
    [208] = "Already Reported",
    [226] = "IM Used",
    [300] = "Multiple Choices",
    [301] = "Moved Permanently",
    [302] = "Found",
    [303] = "See Other",
    [304] = "Not Modified",
    [305] = "Use Proxy",
    [307] = "Temporary Redirect",
    [308] = "Permanent Redirect",
    [400] = "Bad Request",
    [401] = "Unauthorized",
    [402] = "Payment Required",
    [403] = "Forbidden",
    [404] = "Not Found",
    [405] = "Method Not Allowed",
    [406] = "Not Acceptable",
    [407] = "Proxy Authentication Required",
    [408] = "Request Timeout",
    [409] = "Conflict",
    [410] = "Gone",
    [411] = "Length Required",
    [412] = "Precondition Failed",
    [413] = "Content Too Large",
    [414] = "URI Too Long",
    [415] = "Unsupported Media Type",
    [416] = "Range Not Satisfiable",
    [417] = "Expectation Failed",
    [421] = "Misdirected Request",
    [422] = "Unprocessable Content",
    [423] = "Locked",
    [424] = "Failed Dependency",
    [425] = "Too Early",
    [426] = "Upgrade Required",
    [428] = "Precondition Required",
    [429] = "Too Many Requests",
    [431] = "Request Header Fields Too Large",
    [451] = "Unavailable For Legal Reasons",
    [500] = "Internal Server Error",
    [501] = "Not Implemented",
    [502] = "Bad Gateway",
    [503] = "Service Unavailable",
    [504] = "Gateway Timeout",
    [505] = "HTTP Version Not Supported",
    [506] = "Variant Also Negotiates",
    [507] = "Insufficient Storage",
    [508] = "Loop Detected",
    [511] = "Network Authentication Required",
};

enum method message_method(struct slice name)
{
    for (int m = METHOD_GET; m < METHOD_OTHER; m++) {
        if (slice_equals(message_methods[m], name)) return (enum method)m;
    }
    return METHOD_OTHER;
}

struct slice message_method_name(enum method m)
{
    return message_methods[m];
}

const char *message_reason(int status)
{
    const char *reason = status >= 100 && status < 600 ? message_reasons[status] : NULL;
    return reason ? reason : "Unknown";
}

static size_t message_size_request(const struct request *r)
{
    size_t size = r->headers.count * sizeof(struct header);
    size += r->method_name.len + r->target.len + r->path.len + r->query.len + r->host.len;
    for (uint32_t i = 0; i < r->headers.count; i++) {
        size += r->headers.items[i].name.len + r->headers.items[i].value.len;
    }
    return size;
}

static inline struct slice message_copy_slice(char **at, struct slice s)
{
    char *to = *at;
    if (s.len) memcpy(to, s.ptr, s.len);
    *at += s.len;
    return (struct slice){to, s.len};
}

bool message_copy_request(struct request *to, const struct request *from, struct arena *a)
{
    struct header *items = arena_alloc(a, message_size_request(from));
    if (!items) return false;
    uint32_t count = from->headers.count;
    char *at = (char *)(items + count);
    for (uint32_t i = 0; i < count; i++) {
        items[i].name = message_copy_slice(&at, from->headers.items[i].name);
        items[i].value = message_copy_slice(&at, from->headers.items[i].value);
    }
    *to = *from;
    to->method_name = message_copy_slice(&at, from->method_name);
    to->target = message_copy_slice(&at, from->target);
    to->path = message_copy_slice(&at, from->path);
    to->query = message_copy_slice(&at, from->query);
    to->host = message_copy_slice(&at, from->host);
    to->headers = (struct headers){items, count, count};
    return true;
}

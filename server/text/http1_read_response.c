#include "text/http1_read_response.h"

enum { RESPONSE_IN_HEAD, RESPONSE_IN_BODY, RESPONSE_COMPLETE, RESPONSE_FAILED };

// What llhttp's callbacks need: the reader is found by the parser's `data`.
struct response_work {
    struct http1_response_reader *reader;
    struct http1_response *response; // NULL in a body: trailers are dropped
    char *bytes;
    struct header *last; // NULL: the field was left out
};

static int on_header_field(llhttp_t *parser, const char *at, size_t len)
{
    struct response_work *w = parser->data;
    if (!w->response) return 0;
    struct headers *h = &w->response->headers;
    w->last = NULL;
    if (h->count == h->cap) return 0;
    char *name = w->bytes + (at - w->bytes);
    for (size_t i = 0; i < len; i++)
        if (name[i] >= 'A' && name[i] <= 'Z') name[i] = (char)(name[i] | 32);
    w->last = &h->items[h->count++];
    *w->last = (struct header){slice_of(at, len), slice_of(at + len, 0)};
    return 0;
}

// A folded value comes in parts.
static int on_header_value(llhttp_t *parser, const char *at, size_t len)
{
    struct response_work *w = parser->data;
    if (!w->response || !w->last) return 0;
    const char *begin = w->last->value.len ? w->last->value.ptr : at;
    w->last->value = slice_trim(slice_of(begin, (size_t)(at - begin) + len));
    return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct response_work *w = parser->data;
    if (!w->response) return 0;
    w->response->status = parser->status_code;
    w->response->is_chunked = parser->flags & F_CHUNKED;
    if (parser->status_code == 101) return -1;
    bool is_bodyless = parser->status_code == 204 || parser->status_code == 304;
    return w->reader->is_head || is_bodyless;
}

static int on_body(llhttp_t *parser, const char *at, size_t len)
{
    struct response_work *w = parser->data;
    w->reader->piece = slice_of(at, len);
    return len ? HPE_PAUSED : 0; // llhttp also tells of the nothing that came
}

static int on_message_complete(llhttp_t *parser)
{
    struct response_work *w = parser->data;
    w->reader->is_done = true;
    w->reader->keep_alive = llhttp_should_keep_alive(parser);
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

static enum http1_response_event fail(struct http1_response_reader *r, const char *detail)
{
    r->state = RESPONSE_FAILED;
    r->detail = detail;
    return HTTP1_RESPONSE_ERROR;
}

// Gives bytes to llhttp, which stops after a piece of the body and at the end of the response.
// Returns how many it took, or -1 when they are malformed.
static long parse(struct http1_response_reader *r, char *bytes, size_t len,
                  struct http1_response *response)
{
    struct response_work w = {.reader = r, .response = response, .bytes = bytes};
    r->parser.data = &w;
    r->piece = (struct slice){0};
    llhttp_errno_t error = llhttp_execute(&r->parser, bytes, len);
    r->parser.data = NULL;
    if (error == HPE_OK) return (long)len;
    if (error != HPE_PAUSED) return -1;
    long used = llhttp_get_error_pos(&r->parser) - bytes;
    llhttp_resume(&r->parser);
    return used;
}

// The length of the head with its blank line; 0 when it is not complete. Whether bare LFs may end
// lines is for llhttp to say.
static size_t find_head(struct http1_response_reader *r, const char *bytes, size_t len)
{
    size_t from = r->scanned > 2 ? r->scanned - 2 : 0;
    const char *lf;
    r->scanned = len;
    while (from < len && (lf = memchr(bytes + from, '\n', len - from))) {
        from = (size_t)(lf - bytes) + 1;
        if (from < len && bytes[from] == '\n') return from + 1;
        if (from + 1 < len && bytes[from] == '\r' && bytes[from + 1] == '\n') return from + 2;
    }
    return 0;
}

static bool is_http(const char *bytes, size_t len)
{
    return memcmp(bytes, "HTTP/1.", len < 7 ? len : 7) == 0;
}

static enum http1_response_event read_head(struct http1_response_reader *r, char *bytes, size_t len,
                                           size_t *used, struct http1_response *response)
{
    if (!is_http(bytes, len)) return fail(r, "what came is not an HTTP/1.1 response");
    size_t head = find_head(r, bytes, len);
    if (head > HTTP1_RESPONSE_HEAD_MAX || (!head && len > HTTP1_RESPONSE_HEAD_MAX))
        return fail(r, "the response head is too large");
    if (!head) return HTTP1_RESPONSE_MORE;
    *response = (struct http1_response){
        .headers = {.items = response->headers.items, .cap = response->headers.cap}};
    llhttp_reset(&r->parser);
    r->is_done = false;
    long taken = parse(r, bytes, head, response);
    if (taken < 0 && response->status == 101) return fail(r, "the server switched the protocol");
    if (taken < 0) return fail(r, "the response head is malformed");
    *used += head;
    r->scanned = 0;
    if (response->status < 200) return HTTP1_RESPONSE_MORE;
    r->state = r->is_done ? RESPONSE_COMPLETE : RESPONSE_IN_BODY;
    return HTTP1_RESPONSE_HEAD;
}

static enum http1_response_event read_body(struct http1_response_reader *r, char *bytes, size_t len,
                                           size_t *used)
{
    long taken = parse(r, bytes, len, NULL);
    if (taken < 0) return fail(r, "the framing of the body is malformed");
    *used += (size_t)taken;
    if (r->is_done) r->state = RESPONSE_COMPLETE;
    if (r->piece.len) return HTTP1_RESPONSE_BODY;
    return r->is_done ? HTTP1_RESPONSE_END : HTTP1_RESPONSE_MORE;
}

void http1_read_response_init(struct http1_response_reader *r)
{
    *r = (struct http1_response_reader){0};
    llhttp_init(&r->parser, HTTP_RESPONSE, &settings);
}

void http1_read_response_begin(struct http1_response_reader *r, bool is_head)
{
    r->state = RESPONSE_IN_HEAD;
    r->scanned = 0;
    r->is_head = is_head;
    r->keep_alive = false;
}

enum http1_response_event http1_read_response_next(struct http1_response_reader *r, char *bytes,
                                                   size_t len, size_t *used,
                                                   struct http1_response *response)
{
    *used = 0;
    while (r->state == RESPONSE_IN_HEAD && *used < len) {
        size_t before = *used;
        enum http1_response_event event =
            read_head(r, bytes + before, len - before, used, response);
        if (event != HTTP1_RESPONSE_MORE || *used == before) return event;
    }
    if (r->state == RESPONSE_COMPLETE) return HTTP1_RESPONSE_END;
    if (r->state == RESPONSE_FAILED) return HTTP1_RESPONSE_ERROR;
    if (r->state == RESPONSE_IN_HEAD) return HTTP1_RESPONSE_MORE;
    return read_body(r, bytes, len, used);
}

enum http1_response_event http1_read_response_finish(struct http1_response_reader *r, size_t kept)
{
    struct response_work w = {.reader = r};
    if (r->state == RESPONSE_COMPLETE) return HTTP1_RESPONSE_END;
    if (r->state == RESPONSE_FAILED) return HTTP1_RESPONSE_ERROR;
    if (r->state == RESPONSE_IN_HEAD) return kept ? HTTP1_RESPONSE_TRUNCATED : HTTP1_RESPONSE_MORE;
    r->parser.data = &w;
    llhttp_finish(&r->parser);
    r->parser.data = NULL;
    r->state = r->is_done ? RESPONSE_COMPLETE : RESPONSE_FAILED;
    return r->is_done ? HTTP1_RESPONSE_END : HTTP1_RESPONSE_TRUNCATED;
}

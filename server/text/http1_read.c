#include "text/http1_read.h"

#include "text/http1_read_head.h"

enum {
    READ_HEAD,
    READ_BODY,      // of announced length; `left` bytes are to come
    READ_SIZE,      // a chunk line
    READ_CHUNK,     // `left` bytes of a chunk are to come
    READ_CHUNK_END, // the CRLF after them
    READ_TRAILER,
    READ_DONE, // HTTP1_END is to be told
    READ_OVER, // the peer wanted no further request; whatever comes is dropped
    READ_FAILED,
};

enum { MAX_BLANK_LINES = 4, CHUNK_LINE = 18 /* sixteen digits and CRLF */ };

// One call of http1_read_next: what llhttp's callbacks need, and what they tell.
struct work {
    struct http1_reader *reader;
    char *at; // what is not consumed yet
    size_t len;
    struct request *request;
    struct http1_found *found;
    const struct http1_fault *fault;
    size_t body;         // bytes of body that llhttp reported
    bool has_size, done; // llhttp reported a chunk header, the end of the message
};

// What a step tells when the next state is to be entered at once.
enum { STEP_ON = -1 };

static const struct http1_fault bad_head = {400, "the request head is malformed"},
                                bad_method = {501, "the method is not implemented"},
                                bad_framing = {400, "the framing of the body is malformed"},
                                big_body = {413, "the body is too large"},
                                big_framing = {431, "chunk extensions or trailers are too large"},
                                blank_lines = {400, "blank lines before the request line"},
                                many_fields = {431, "too many header fields"},
                                failed_before = {400, "the connection has failed before"};

static int on_url(llhttp_t *parser, const char *at, size_t len)
{
    struct work *w = parser->data;
    w->request->target = slice_of(at, len);
    return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t len)
{
    struct work *w = parser->data;
    struct headers *h = &w->request->headers;
    if (h->count == h->cap) {
        w->fault = &many_fields;
        return -1;
    }
    char *name = w->at + (at - w->at);
    for (size_t i = 0; i < len; i++) // without a branch: capitals are not to be foretold
        name[i] = (char)(name[i] | ((unsigned char)(name[i] - 'A') < 26) << 5);
    h->items[h->count++] = (struct header){slice_of(at, len), slice_of(at + len, 0)};
    return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t len)
{
    struct headers *h = &((struct work *)parser->data)->request->headers;
    h->items[h->count - 1].value = slice_trim(slice_of(at, len));
    return 0;
}

static enum method method_of(const llhttp_t *parser)
{
    switch (parser->method) {
    case HTTP_GET: return METHOD_GET;
    case HTTP_HEAD: return METHOD_HEAD;
    case HTTP_POST: return METHOD_POST;
    case HTTP_PUT: return METHOD_PUT;
    case HTTP_PATCH: return METHOD_PATCH;
    case HTTP_DELETE: return METHOD_DELETE;
    case HTTP_OPTIONS: return METHOD_OPTIONS;
    default: return METHOD_OTHER;
    }
}

// The head is judged here and not after llhttp has gone on, so that our verdict on the framing
// (501 for an unknown coding, for instance) comes before its own.
static int on_headers_complete(llhttp_t *parser)
{
    struct work *w = parser->data;
    struct request *request = w->request;
    request->method = method_of(parser);
    request->method_name = slice_of(w->at, (size_t)(request->target.ptr - w->at) - 1);
    request->is_http10 = parser->http_minor == 0;
    w->fault = http1_read_head_judge(request);
    return w->fault ? -1 : 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t len)
{
    struct work *w = parser->data;
    (void)at;
    w->body += len;
    return 0;
}

static int on_chunk_header(llhttp_t *parser)
{
    struct work *w = parser->data;
    w->has_size = true;
    w->reader->left = parser->content_length;
    return 0;
}

static int on_message_complete(llhttp_t *parser)
{
    ((struct work *)parser->data)->done = true;
    return 0;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

// Gives the next `len` bytes to llhttp; false when it refuses them. At the end of a request that
// asks for an upgrade it pauses. Nobody here takes one: what follows is HTTP as before, and the
// pause ends with the reset before the next head.
static bool parse(struct work *w, const char *bytes, size_t len)
{
    llhttp_t *parser = &w->reader->parser;
    parser->data = w;
    llhttp_errno_t error = llhttp_execute(parser, bytes, len);
    parser->data = NULL;
    if (error == HPE_PAUSED_UPGRADE) return w->done && llhttp_get_error_pos(parser) == bytes + len;
    return error == HPE_OK;
}

static void consume(struct work *w, size_t n)
{
    w->at += n;
    w->len -= n;
}

static int fail(struct work *w, const struct http1_fault *fault)
{
    w->reader->state = READ_FAILED;
    w->found->status = fault->status;
    w->found->detail = fault->detail;
    return HTTP1_ERROR;
}

// Blank lines before a request are skipped, but not endlessly (RFC 9112 2.2).
static bool skip_blank_lines(struct work *w)
{
    struct http1_reader *r = w->reader;
    if (r->guard.scanned) return true;
    while (w->len >= 2 && w->at[0] == '\r' && w->at[1] == '\n') {
        if (r->blank_lines++ == MAX_BLANK_LINES) return false;
        consume(w, 2);
    }
    return true;
}

static const struct http1_fault *fault_of_head(const struct work *w)
{
    if (w->fault) return w->fault;
    // The guard saw a sound request line, so that these can only mean the method: an unknown one,
    // or one of RTSP's or ICE's.
    int error = llhttp_get_errno(&w->reader->parser);
    return error == HPE_INVALID_METHOD || error == HPE_INVALID_CONSTANT ? &bad_method : &bad_head;
}

static void begin_message(struct http1_reader *r, const struct request *request)
{
    r->guard = (struct http1_guard){0};
    r->scanned = r->chunk_extra = 0;
    r->blank_lines = 0;
    r->body_seen = 0;
    r->max_body = r->limits->max_body;
    r->left = request->content_length > 0 ? (uint64_t)request->content_length : 0;
    r->is_last = !request->keep_alive;
    r->state = request->content_length < 0    ? READ_SIZE
               : request->content_length == 0 ? READ_DONE
                                              : READ_BODY;
}

static int read_head(struct work *w)
{
    struct http1_reader *r = w->reader;
    size_t head;
    if (!skip_blank_lines(w)) return fail(w, &blank_lines);
    const struct http1_fault *fault = http1_guard_head(&r->guard, w->at, w->len, r->limits, &head);
    if (fault) return fail(w, fault);
    if (head == 0) return HTTP1_MORE;
    struct headers *h = &w->request->headers;
    *w->request = (struct request){.headers = {.items = h->items, .cap = h->cap}};
    llhttp_reset(&r->parser);
    if (!parse(w, w->at, head)) return fail(w, fault_of_head(w));
    begin_message(r, w->request);
    // Two readings of one head must not differ on whether a body follows.
    if (w->done != (r->state == READ_DONE)) return fail(w, &bad_framing);
    consume(w, head);
    return HTTP1_HEAD;
}

// Whether what was announced is more than the limit leaves.
static bool is_over(const struct http1_reader *r)
{
    return r->body_seen > r->max_body || r->left > r->max_body - r->body_seen;
}

// The next piece of a body or chunk of which `left` bytes are to come.
static int read_piece(struct work *w, uint8_t next)
{
    struct http1_reader *r = w->reader;
    if (is_over(r)) return fail(w, &big_body);
    if (w->len == 0) return HTTP1_MORE;
    size_t n = w->len < r->left ? w->len : (size_t)r->left;
    if (!parse(w, w->at, n) || w->body != n) return fail(w, &bad_framing);
    w->found->piece = slice_of(w->at, n);
    r->body_seen += n;
    r->left -= n;
    if (r->left == 0) r->state = next;
    if (w->done != (r->state == READ_DONE)) return fail(w, &bad_framing);
    consume(w, n);
    return HTTP1_BODY;
}

// The length of the line that begins here, LF included; 0 when it is not complete. What the line
// adds to the extensions and trailers so far is limited before the line is looked at.
static size_t find_line(struct work *w, size_t free_bytes, const struct http1_fault **fault)
{
    struct http1_reader *r = w->reader;
    const char *lf = memchr(w->at + r->scanned, '\n', w->len - r->scanned);
    size_t known = lf ? (size_t)(lf - w->at) + 1 : w->len;
    *fault = r->chunk_extra + known > r->limits->max_header + free_bytes ? &big_framing : NULL;
    r->scanned = lf || *fault ? 0 : (uint32_t)known;
    return lf ? known : 0;
}

static int read_size(struct work *w)
{
    struct http1_reader *r = w->reader;
    const struct http1_fault *fault;
    size_t digits, n = find_line(w, CHUNK_LINE, &fault);
    if (fault) return fail(w, fault);
    if (n == 0) return HTTP1_MORE;
    if ((fault = http1_guard_chunk(slice_of(w->at, n), &digits))) return fail(w, fault);
    r->chunk_extra += (uint32_t)(n - digits - 2);
    w->has_size = false;
    // The extension has been judged and means nothing here; llhttp gets the size alone.
    if (!parse(w, w->at, digits) || !parse(w, w->at + n - 2, 2) || !w->has_size)
        return fail(w, &bad_framing);
    r->state = r->left ? READ_CHUNK : READ_TRAILER;
    consume(w, n);
    return STEP_ON;
}

static int read_chunk_end(struct work *w)
{
    if (w->len > 0 && w->at[0] != '\r') return fail(w, &bad_framing);
    if (w->len < 2) return HTTP1_MORE;
    if (w->at[1] != '\n' || !parse(w, w->at, 2)) return fail(w, &bad_framing);
    w->reader->state = READ_SIZE;
    consume(w, 2);
    return STEP_ON;
}

// Trailers are checked and dropped: llhttp gets the empty line alone, so that no field among them
// can have a meaning.
static int read_trailer(struct work *w)
{
    struct http1_reader *r = w->reader;
    const struct http1_fault *fault;
    bool is_last;
    size_t n = find_line(w, 0, &fault);
    if (fault) return fail(w, fault);
    if (n == 0) return HTTP1_MORE;
    if ((fault = http1_guard_trailer(slice_of(w->at, n), &is_last))) return fail(w, fault);
    r->chunk_extra += (uint32_t)n;
    if (is_last) {
        if (!parse(w, w->at, n) || !w->done) return fail(w, &bad_framing);
        r->state = READ_DONE;
    }
    consume(w, n);
    return STEP_ON;
}

static int read_step(struct work *w)
{
    struct http1_reader *r = w->reader;
    switch (r->state) {
    case READ_HEAD: return read_head(w);
    case READ_BODY: return read_piece(w, READ_DONE);
    case READ_SIZE: return read_size(w);
    case READ_CHUNK: return read_piece(w, READ_CHUNK_END);
    case READ_CHUNK_END: return read_chunk_end(w);
    case READ_TRAILER: return read_trailer(w);
    case READ_DONE: r->state = r->is_last ? READ_OVER : READ_HEAD; return HTTP1_END;
    case READ_OVER: consume(w, w->len); return HTTP1_MORE;
    default: return fail(w, &failed_before);
    }
}

void http1_read_init(struct http1_reader *r, const struct limits *limits)
{
    *r = (struct http1_reader){.limits = limits, .max_body = limits->max_body};
    llhttp_init(&r->parser, HTTP_REQUEST, &settings);
}

enum http1_event http1_read_next(struct http1_reader *r, char *bytes, size_t len, size_t *used,
                                 struct request *request, struct http1_found *found)
{
    struct work w = {.reader = r, .at = bytes, .len = len, .request = request, .found = found};
    int event;
    *found = (struct http1_found){0};
    do event = read_step(&w);
    while (event == STEP_ON);
    *used = len - w.len;
    return (enum http1_event)event;
}

void http1_read_set_max_body(struct http1_reader *r, uint64_t max_body)
{
    r->max_body = max_body;
}

bool http1_read_is_idle(const struct http1_reader *r)
{
    return (r->state == READ_HEAD && r->guard.scanned == 0) || r->state == READ_OVER;
}

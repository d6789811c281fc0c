#include "serve/fixed.h"

#include "base/mem.h"
#include "text/http1_write.h"

// Larger bodies are sent from where they are, smaller ones are cheaper copied into the output.
enum { FIXED_SHARED = 16384, FIXED_ETAG = 34 };

struct fixed {
    struct reply full, unchanged;
    struct slice body, tag;  // `tag`: the opaque part of the ETag, with its quotes
    struct payload *payload; // owns a large body
    struct arena arena;      // everything else
    bool is_conditional;     // may be answered by `unchanged`
};

// FNV-1a of 128 bits.
static unsigned __int128 fixed_hash(unsigned __int128 hash, struct slice s)
{
    const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
    for (size_t i = 0; i < s.len; i++) hash = (hash ^ (unsigned char)s.ptr[i]) * prime;
    return hash;
}

static void fixed_format_etag(char to[FIXED_ETAG], struct slice type, struct slice body)
{
    unsigned __int128 hash =
        (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d; // the offset basis
    hash = fixed_hash(hash, type);
    hash = fixed_hash(hash, SLICE("\0"));
    hash = fixed_hash(hash, body);
    to[0] = to[FIXED_ETAG - 1] = '"';
    for (int i = FIXED_ETAG - 2; i > 0; i--, hash >>= 4)
        to[i] = "0123456789abcdef"[(unsigned)hash & 15];
}

static struct slice fixed_lower(struct arena *a, struct slice s)
{
    struct slice copy = arena_copy(a, s);
    for (size_t i = 0; copy.ptr && i < copy.len; i++)
        if (copy.ptr[i] >= 'A' && copy.ptr[i] <= 'Z') ((char *)copy.ptr)[i] += 'a' - 'A';
    return copy;
}

static bool fixed_copy_headers(struct fixed *f, const struct headers *headers)
{
    struct headers *to = &f->full.headers;
    for (uint32_t i = 0; headers && i < headers->count; i++) {
        struct slice name = fixed_lower(&f->arena, headers->items[i].name);
        struct slice value = arena_copy(&f->arena, headers->items[i].value);
        if (!name.ptr || !value.ptr || !headers_add(to, &f->arena, name, value)) return false;
    }
    return true;
}

static bool fixed_copy_body(struct fixed *f, struct slice body)
{
    if (body.len <= FIXED_SHARED) {
        f->body = arena_copy(&f->arena, body);
        return f->body.ptr != NULL;
    }
    f->payload = payload_new_copy(body);
    if (f->payload) f->body = payload_slice(f->payload);
    return f->payload != NULL;
}

// The opaque part alone: If-None-Match compares weakly (RFC 9110 13.1.2, 8.8.3.2).
static struct slice fixed_opaque(struct slice etag)
{
    bool is_weak = etag.len > 2 && etag.ptr[0] == 'W' && etag.ptr[1] == '/';
    return slice_from(etag, is_weak ? 2 : 0);
}

// Errors and redirects are not validated, so that a tag would say nothing.
static bool fixed_add_etag(struct fixed *f)
{
    const struct header *given = headers_find(&f->full.headers, SLICE("etag"));
    const struct header *type = headers_find(&f->full.headers, SLICE("content-type"));
    if (given) {
        f->tag = fixed_opaque(slice_trim(given->value));
        return true;
    }
    if (f->full.status > 299 || message_is_bodyless(f->full.status)) return true;
    char *etag = arena_alloc(&f->arena, FIXED_ETAG);
    if (!etag) return false;
    fixed_format_etag(etag, type ? type->value : (struct slice){0}, f->body);
    f->tag = slice_of(etag, FIXED_ETAG);
    return headers_add(&f->full.headers, &f->arena, SLICE("etag"), f->tag);
}

// What a 304 repeats of the reply that it stands for (RFC 9110 15.4.5).
static bool fixed_is_kept(struct slice name)
{
    static const struct slice kept[] = {
        SLICE_INIT("etag"),    SLICE_INIT("cache-control"),    SLICE_INIT("vary"),
        SLICE_INIT("expires"), SLICE_INIT("content-location"),
    };
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (slice_equals(name, kept[i])) return true;
    return false;
}

static bool fixed_make_unchanged(struct fixed *f)
{
    const struct headers *all = &f->full.headers;
    f->unchanged = (struct reply){.status = 304, .content_length = -1};
    for (uint32_t i = 0; i < all->count; i++) {
        const struct header *h = &all->items[i];
        if (fixed_is_kept(h->name) &&
            !headers_add(&f->unchanged.headers, &f->arena, h->name, h->value))
            return false;
    }
    return true;
}

static bool fixed_render(struct fixed *f, struct reply *reply)
{
    struct buf text = {0};
    if (http1_write_head(&text, reply)) reply->http1 = arena_copy(&f->arena, buf_slice(&text));
    buf_reset(&text);
    return reply->http1.ptr != NULL;
}

static bool fixed_fill(struct fixed *f, const struct headers *headers, struct slice body)
{
    if (message_is_bodyless(f->full.status)) body.len = 0;
    f->full.content_length = (int64_t)body.len;
    if (!fixed_copy_headers(f, headers) || !fixed_copy_body(f, body) || !fixed_add_etag(f))
        return false;
    f->is_conditional = f->full.status == 200;
    return fixed_make_unchanged(f) && fixed_render(f, &f->full) && fixed_render(f, &f->unchanged);
}

struct fixed *fixed_new(int status, const struct headers *headers, struct slice body)
{
    struct fixed *f = mem_zalloc(sizeof *f);
    if (!f) return NULL;
    f->full.status = status;
    if (fixed_fill(f, headers, body)) return f;
    fixed_free(f);
    return NULL;
}

void fixed_free(struct fixed *f)
{
    if (!f) return;
    payload_release(f->payload);
    arena_reset(&f->arena);
    mem_free(f);
}

// Takes the next entity-tag off a list, without its W/. An opaque part may hold commas. Empty at
// the end, and where the list is malformed.
static struct slice fixed_next_tag(struct slice *list)
{
    struct slice s = *list, tag = {0};
    while (s.len && (s.ptr[0] == ',' || s.ptr[0] == ' ' || s.ptr[0] == '\t')) s = slice_from(s, 1);
    s = fixed_opaque(s);
    const char *end = s.len && s.ptr[0] == '"' ? memchr(s.ptr + 1, '"', s.len - 1) : NULL;
    if (end) tag = slice_of(s.ptr, (size_t)(end + 1 - s.ptr));
    *list = slice_from(s, tag.len);
    return tag;
}

static bool fixed_matches(const struct fixed *f, struct slice list)
{
    struct slice tag;
    if (slice_equals(slice_trim(list), SLICE("*"))) return true;
    while ((tag = fixed_next_tag(&list)).len)
        if (slice_equals(tag, f->tag)) return true;
    return false;
}

// The field may come in several lines (RFC 9110 5.3).
static bool fixed_is_unchanged(const struct fixed *f, const struct headers *h)
{
    for (uint32_t i = 0; i < h->count; i++) {
        if (slice_equals(h->items[i].name, SLICE("if-none-match")) &&
            fixed_matches(f, h->items[i].value))
            return true;
    }
    return false;
}

void fixed_serve(const struct fixed *f, struct exchange *x)
{
    if (f->is_conditional && fixed_is_unchanged(f, &x->request.headers)) {
        exchange_head(x, &f->unchanged);
    } else {
        exchange_head(x, &f->full);
        if (x->is_head_request) {
            // The head says it all, its content-length too.
        } else if (f->payload) {
            exchange_body_payload(x, f->payload);
        } else {
            exchange_body(x, f->body);
        }
    }
    exchange_end(x);
}

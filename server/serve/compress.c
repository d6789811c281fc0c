#include "serve/compress.h"

#include <stdlib.h>
#include <zlib.h>
#include "base/mem.h"

enum {
    COMPRESS_LEVEL = 5,
    COMPRESS_WINDOW = 13 + 16, // 8 KiB of window; 16 asks zlib for the gzip form
    COMPRESS_MEMORY = 5,
    COMPRESS_STEP = 4096,
};

struct compress {
    z_stream z;
};

static void *compress_alloc(void *unused, unsigned count, unsigned size)
{
    (void)unused;
    return mem_zalloc((size_t)count * size);
}

static void compress_release(void *unused, void *ptr)
{
    (void)unused;
    mem_free(ptr);
}

struct compress *compress_new(void)
{
    struct compress *c = mem_zalloc(sizeof *c);
    if (!c) return NULL;
    c->z.zalloc = compress_alloc;
    c->z.zfree = compress_release;
    if (deflateInit2(&c->z, COMPRESS_LEVEL, Z_DEFLATED, COMPRESS_WINDOW, COMPRESS_MEMORY,
                     Z_DEFAULT_STRATEGY) == Z_OK) {
        return c;
    }
    mem_free(c);
    return NULL;
}

void compress_free(struct compress *c)
{
    if (!c) return;
    deflateEnd(&c->z);
    mem_free(c);
}

bool compress_write(struct compress *c, struct slice bytes, bool is_end, struct buf *to)
{
    c->z.next_in = (z_const Bytef *)bytes.ptr;
    c->z.avail_in = (uInt)bytes.len;
    do { // until zlib leaves room: then everything has come out
        char *room = buf_reserve(to, COMPRESS_STEP);
        if (!room) return false;
        c->z.next_out = (Bytef *)room;
        c->z.avail_out = COMPRESS_STEP;
        deflate(&c->z, is_end ? Z_FINISH : Z_SYNC_FLUSH);
        to->len += COMPRESS_STEP - c->z.avail_out;
    } while (c->z.avail_out == 0);
    return true;
}

// One member of the list: `gzip;q=0.5`. The quality, -1 when it is another coding.
static double compress_quality(struct slice member)
{
    const char *semicolon = memchr(member.ptr, ';', member.len);
    struct slice name = member, rest = {0};
    if (semicolon) {
        name.len = (size_t)(semicolon - member.ptr);
        rest = slice_trim(slice_from(member, name.len + 1));
    }
    name = slice_trim(name);
    if (!slice_equals_nocase(name, SLICE("gzip")) && !slice_equals(name, SLICE("*"))) return -1;
    if (rest.len < 3 || strncasecmp(rest.ptr, "q=", 2) != 0) return 1;
    // Only zero refuses; digits beyond that do not matter with one coding to offer.
    for (size_t i = 2; i < rest.len; i++) {
        if (rest.ptr[i] >= '1' && rest.ptr[i] <= '9') return 1;
    }
    return 0;
}

// gzip's own word counts more than the star's.
bool compress_is_accepted(const struct headers *request)
{
    bool is_accepted = false, is_named = false;
    for (uint32_t i = 0; i < request->count; i++) {
        struct slice rest = request->items[i].value;
        if (!slice_equals(request->items[i].name, SLICE("accept-encoding"))) continue;
        while (rest.len) {
            const char *comma = memchr(rest.ptr, ',', rest.len);
            struct slice member = rest;
            member.len = comma ? (size_t)(comma - rest.ptr) : rest.len;
            rest = slice_from(rest, comma ? member.len + 1 : rest.len);
            member = slice_trim(member);
            double quality = member.len ? compress_quality(member) : -1;
            bool is_star = member.len && member.ptr[0] == '*';
            if (quality < 0 || (is_star && is_named)) continue;
            is_accepted = quality > 0;
            is_named = is_named || !is_star;
        }
    }
    return is_accepted;
}

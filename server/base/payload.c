#include "base/payload.h"

#include "base/mem.h"

struct payload *payload_new(size_t len)
{
    if (len > PTRDIFF_MAX - sizeof(struct payload) - PAYLOAD_HEAD - PAYLOAD_TAIL) return NULL;
    struct payload *p = mem_alloc(sizeof *p + PAYLOAD_HEAD + len + PAYLOAD_TAIL);
    if (!p) return NULL;
    atomic_init(&p->refs, 1);
    p->head_len = p->tail_len = 0;
    p->len = len;
    return p;
}

struct payload *payload_new_copy(struct slice bytes)
{
    struct payload *p = payload_new(bytes.len);
    if (p && bytes.len) memcpy(payload_data(p), bytes.ptr, bytes.len);
    return p;
}

void payload_release(struct payload *p)
{
    // The release orders our reads before the count drops; the acquire, the free after all of them.
    if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1) mem_free(p);
}

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include "base/mem.h"

// Under AddressSanitizer what no one has allocated, or what was reset, must not be touched.
#if !defined(__SANITIZE_ADDRESS__) && defined(__has_feature)
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(ptr, size)   ((void)(ptr), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(ptr, size) ((void)(ptr), (void)(size))
#endif

enum { ARENA_FIRST = 1024, ARENA_ALIGN = 16, ARENA_POOLED = 64 };

struct arena_chunk {
    struct arena_chunk *next;
    unsigned size; // ARENA_SIZES: one of its own
    _Alignas(ARENA_ALIGN) char bytes[];
};

static inline size_t arena_room(unsigned size)
{
    return ((size_t)ARENA_FIRST << size) - sizeof(struct arena_chunk);
}

static struct arena_chunk *arena_chunk_new(struct arena_pool *pool, unsigned size, size_t room)
{
    struct arena_chunk *chunk = pool && size < ARENA_SIZES ? pool->free[size] : NULL;
    if (chunk) {
        pool->free[size] = chunk->next;
        pool->count[size]--;
        return chunk;
    }
    chunk = mem_alloc(sizeof *chunk + room);
    if (!chunk) return NULL;
    chunk->size = size;
    ASAN_POISON_MEMORY_REGION(chunk->bytes, room);
    return chunk;
}

static void arena_chunk_free(struct arena_pool *pool, struct arena_chunk *chunk)
{
    unsigned size = chunk->size;
    if (!pool || size == ARENA_SIZES || pool->count[size] == ARENA_POOLED) {
        mem_free(chunk);
        return;
    }
    ASAN_POISON_MEMORY_REGION(chunk->bytes, arena_room(size));
    chunk->next = pool->free[size];
    pool->free[size] = chunk;
    pool->count[size]++;
}

// What no chunk can hold gets one of its own; the rest of the current one stays usable.
static void *arena_alloc_large(struct arena *a, size_t size)
{
    if (size > PTRDIFF_MAX - 2 * ARENA_FIRST) return NULL;
    size_t room = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    struct arena_chunk *chunk = arena_chunk_new(NULL, ARENA_SIZES, room);
    if (!chunk) return NULL;
    chunk->next = a->chunks;
    a->chunks = chunk;
    ASAN_UNPOISON_MEMORY_REGION(chunk->bytes, size);
    return chunk->bytes;
}

// A chunk that has room for `size` bytes, which the largest has.
static bool arena_grow(struct arena *a, size_t size)
{
    while (size > arena_room(a->size)) a->size++;
    size_t room = arena_room(a->size);
    struct arena_chunk *chunk = arena_chunk_new(a->pool, a->size, room);
    if (!chunk) return false;
    if (a->size < ARENA_SIZES - 1) a->size++;
    chunk->next = a->chunks;
    a->chunks = chunk;
    a->next = chunk->bytes;
    a->end = chunk->bytes + room;
    return true;
}

void *arena_alloc(struct arena *a, size_t size)
{
    size += !size;
    if (__builtin_expect(size > (size_t)(a->end - a->next), 0)) {
        if (size > arena_room(ARENA_SIZES - 1)) return arena_alloc_large(a, size);
        if (!arena_grow(a, size)) return NULL;
    }
    // Both ends are aligned, so a size that fits also fits when it is rounded up.
    char *ptr = a->next;
    a->next += (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    ASAN_UNPOISON_MEMORY_REGION(ptr, size);
    return ptr;
}

void *arena_zalloc(struct arena *a, size_t size)
{
    void *ptr = arena_alloc(a, size);
    if (ptr) memset(ptr, 0, size);
    return ptr;
}

struct slice arena_copy(struct arena *a, struct slice s)
{
    if (!s.len) return SLICE("");
    char *ptr = arena_alloc(a, s.len);
    if (ptr) memcpy(ptr, s.ptr, s.len);
    return (struct slice){ptr, ptr ? s.len : 0};
}

void arena_reset(struct arena *a)
{
    while (a->chunks) {
        struct arena_chunk *chunk = a->chunks;
        a->chunks = chunk->next;
        arena_chunk_free(a->pool, chunk);
    }
    a->next = a->end = NULL;
    a->size = 0;
}

void arena_pool_reset(struct arena_pool *pool)
{
    for (unsigned size = 0; size < ARENA_SIZES; size++) {
        while (pool->free[size]) {
            struct arena_chunk *chunk = pool->free[size];
            pool->free[size] = chunk->next;
            mem_free(chunk);
        }
        pool->count[size] = 0;
    }
}

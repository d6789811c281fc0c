// arena: memory that dies with a request. Allocation is a pointer step; nothing is freed alone.
// An arena without allocations holds no memory. The first chunk is small, so that thousands of held
// requests cost little; the next ones are larger. Chunks come from a pool, one per worker, that
// keeps a bounded number of free ones.
#ifndef PHOTON_BASE_ARENA_H
#define PHOTON_BASE_ARENA_H

#include <stddef.h>
#include "base/slice.h"

struct arena_chunk;

enum { ARENA_SIZES = 3 }; // 1, 2 and 4 KiB

struct arena_pool {
    struct arena_chunk *free[ARENA_SIZES];
    unsigned count[ARENA_SIZES];
};

struct arena {
    struct arena_pool *pool; // may be NULL: chunks then come from mem and go back to it
    struct arena_chunk *chunks;
    char *next, *end;
    unsigned size; // which of the sizes its next chunk has
};

// 16-byte aligned, not zeroed; NULL when there is no memory.
void *arena_alloc(struct arena *a, size_t size);
void *arena_zalloc(struct arena *a, size_t size);

// A copy in the arena; ptr is NULL when there is no memory (an empty slice copies to a non-NULL).
struct slice arena_copy(struct arena *a, struct slice s);

// Gives all memory back; the arena keeps its pool and may be used again.
void arena_reset(struct arena *a);

// Frees the chunks that the pool keeps.
void arena_pool_reset(struct arena_pool *pool);

#endif

// mem: where Photon's own memory comes from. One door, so that a hostile build can close it.
#ifndef PHOTON_BASE_MEM_H
#define PHOTON_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

// As malloc, calloc(1, size), realloc and free. NULL when there is no memory; every caller copes.
void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_realloc(void *ptr, size_t size);
void mem_free(void *ptr);

// Counts as an allocation and tells whether it must fail: for allocators that are not mem's own.
bool mem_fails(void);

// How many allocations this thread has made; specs count with it.
unsigned long mem_count(void);

// From now on this thread's allocations fail one time in `one_in` (0: never), by a fixed pseudo
// random sequence begun with `seed`. Always linked, so that unit specs can fail each in turn:
// mem_fail_after(n) lets n more succeed, then fails one (n < 0: never).
void mem_fail_rate(unsigned one_in, unsigned seed);
void mem_fail_after(long n);

#endif

#include "base/mem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

// All faults hide behind one flag, so that a normal build pays one branch that never goes wrong.
static _Thread_local struct {
    unsigned long count;
    bool is_armed, has_countdown;
    unsigned one_in;
    uint32_t random;
    long countdown;
} mem_thread;

static bool mem_fails_by_chance(void)
{
    uint32_t x = mem_thread.random;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    mem_thread.random = x;
    return x % mem_thread.one_in == 0;
}

static void mem_arm(void)
{
    mem_thread.is_armed = mem_thread.has_countdown || mem_thread.one_in;
}

static bool mem_must_fail(void)
{
    if (mem_thread.has_countdown && mem_thread.countdown-- == 0) {
        mem_thread.has_countdown = false;
        mem_arm();
        return true;
    }
    return mem_thread.one_in && mem_fails_by_chance();
}

static inline bool mem_is_refused(void)
{
    mem_thread.count++;
    return __builtin_expect(mem_thread.is_armed, 0) && mem_must_fail();
}

bool mem_fails(void)
{
    return mem_is_refused();
}

void *mem_alloc(size_t size)
{
    return mem_is_refused() ? NULL : malloc(size);
}

void *mem_zalloc(size_t size)
{
    return mem_is_refused() ? NULL : calloc(1, size);
}

void *mem_realloc(void *ptr, size_t size)
{
    // realloc to zero would free and return NULL, which callers read as "no memory".
    return mem_is_refused() ? NULL : realloc(ptr, size ? size : 1);
}

void mem_free(void *ptr)
{
    free(ptr);
}

unsigned long mem_count(void)
{
    return mem_thread.count;
}

void mem_fail_rate(unsigned one_in, unsigned seed)
{
    mem_thread.one_in = one_in;
    mem_thread.random = seed ? seed : 1; // xorshift stays at zero for ever
    mem_arm();
}

void mem_fail_after(long n)
{
    mem_thread.has_countdown = n >= 0;
    mem_thread.countdown = n;
    mem_arm();
}

#include "script/guard_thread.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/mem.h"

// Only what is touched of it takes memory. Kept free: what one coroutine can take.
enum {
    STACK_SIZE = 128 << 20,
    STACK_FREE = 120 << 20,
    STACK_LESS = 4 << 20,
    STACK_NEAR = 256 << 10,
};

struct start {
    void *(*run)(void *data);
    void *data;
};

static _Thread_local char *stack_end, *stack_low;

static void learn_stack(void)
{
    pthread_attr_t attr;
    void *end;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attr) != 0) return;
    if (pthread_attr_getstack(&attr, &end, &size) == 0 && size >= STACK_SIZE) {
        stack_end = end;
        stack_low = stack_end + STACK_FREE;
    }
    pthread_attr_destroy(&attr);
}

static void *thread_run(void *data)
{
    struct start start = *(struct start *)data;
    mem_free(data);
    learn_stack();
    return start.run(start.data);
}

bool guard_thread_start(pthread_t *thread, void *(*run)(void *data), void *data, bool is_detached)
{
    pthread_attr_t attr;
    struct start *start = mem_alloc(sizeof *start);
    if (!start || pthread_attr_init(&attr) != 0) {
        mem_free(start);
        return false;
    }
    *start = (struct start){run, data};
    pthread_attr_setdetachstate(&attr,
                                is_detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE);
    pthread_attr_setstacksize(&attr, STACK_SIZE);
    int failed = pthread_create(thread, &attr, thread_run, start);
    if (failed) { // the address space may be limited
        pthread_attr_setstacksize(&attr, 1 << 20);
        failed = pthread_create(thread, &attr, thread_run, start);
    }
    pthread_attr_destroy(&attr);
    if (failed) mem_free(start);
    return !failed;
}

enum guard_room guard_thread_room(void)
{
    char *here = __builtin_frame_address(0);
    if (here >= stack_low) return GUARD_ROOM;
    return here >= stack_low - STACK_LESS ? GUARD_LITTLE_ROOM : GUARD_NO_ROOM;
}

void guard_thread_trim(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t here = (uintptr_t)__builtin_frame_address(0) - STACK_NEAR;
    if (!stack_end || here <= (uintptr_t)stack_end) return;
    madvise(stack_end, (here - (uintptr_t)stack_end) & ~(page - 1), MADV_DONTNEED);
}

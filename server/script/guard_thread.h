// guard_thread: threads that run Lua, with room for Lua's recursion on the C stack. LuaJIT bounds
// the stack of a coroutine in Lua only: string.gsub that calls itself by a tail call takes 118 MB
// of the C stack until that is full (65,500 slots, 5 and 9 kB a call), and coroutines that resume
// one another take it without any bound.
#ifndef PHOTON_SCRIPT_GUARD_THREAD_H
#define PHOTON_SCRIPT_GUARD_THREAD_H

#include <pthread.h>
#include <stdbool.h>

// Like pthread_create. `is_detached`: nobody joins it. False when there is no thread to be had.
bool guard_thread_start(pthread_t *thread, void *(*run)(void *data), void *data, bool is_detached);

// What is left of the calling thread's stack: room for one more coroutine at the least, or less, or
// far less. Always room on a thread that was not started here.
enum guard_room { GUARD_ROOM, GUARD_LITTLE_ROOM, GUARD_NO_ROOM };
enum guard_room guard_thread_room(void);

// What recursion has used of the calling thread's stack goes back to the system; not below the
// caller.
void guard_thread_trim(void);

#endif

// task_private: what the files of the task room share; for them alone.
#ifndef PHOTON_SCRIPT_TASK_PRIVATE_H
#define PHOTON_SCRIPT_TASK_PRIVATE_H

#include "script/task.h"

// Puts the task into the queue of those that run on the next turn.
void task_make_ready(struct task *t);

// It ends: whoever asked for that is told.
void task_tell_end(struct task *t);

// Sends what the running slice has written so far.
void task_flush(struct vm *vm);

// An idle task, with or without a coroutine; NULL when there are too many or no memory.
struct task *task_find(struct vm *vm);

// Makes the coroutine of a task that stands in the idle list. May raise; nothing is lost then.
void task_make_coroutine(lua_State *L, struct task *t);

// The same from C, outside of Lua. False when there is no memory.
bool task_give_coroutine(struct task *t);

// Collects all garbage, under guard: the VM may be abandoned then, or replaced because it is full.
void task_collect_garbage(struct vm *vm);

// Takes a task that has a coroutine out of the idle list.
void task_begin(struct task *t, enum task_kind kind);

// All of that from C, outside of Lua: a task that can begin, or NULL.
struct task *task_take(struct vm *vm, enum task_kind kind);

// Its work is done: back to the idle list.
void task_release(struct task *t);

// Logs and counts a slice that took `ms`, over lua_slow.
void task_report_slow(struct task *t, uint64_t ms);

#endif

// task_private: what the files of the task room share; for them alone.
#ifndef PHOTON_SCRIPT_TASK_PRIVATE_H
#define PHOTON_SCRIPT_TASK_PRIVATE_H

#include "script/task.h"

// Puts the task into the queue of those that run on the next turn.
void task_make_ready(struct task *t);

// Logs and counts a slice that took `ms`, over lua_slow.
void task_report_slow(struct task *t, uint64_t ms);

#endif

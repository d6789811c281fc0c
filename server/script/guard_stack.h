// guard_stack: whether a thread that was interrupted by a signal may leave LuaJIT by a jump. It may
// when every frame between the interrupted instruction and the entry into Lua belongs to LuaJIT or
// its machine code: no C function of ours, of libc or of any module is then in the middle of
// something. This is proved by unwinding, frame by frame, with LuaJIT's own unwind tables; the
// proof holds only when it ends exactly at the entry's stack pointer. When unsure the answer is no.
//
// For guard alone. guard_stack_is_lua is safe in a signal handler.
#ifndef PHOTON_SCRIPT_GUARD_STACK_H
#define PHOTON_SCRIPT_GUARD_STACK_H

#include <stdbool.h>
#include <stdint.h>

// The linker marks the section that the build puts LuaJIT's code into.
extern const char __start_luajit_text[] __attribute__((weak));
extern const char __stop_luajit_text[] __attribute__((weak));

struct guard_registers {
    uintptr_t pc, sp, bp;
};

// Finds the unwind tables of the program. False when they or the bounds of LuaJIT's code are
// missing (another processor, another linker): guard_stack_is_lua then always says no.
bool guard_stack_learn(void);

// Whether all frames from `r` up to the call that was made with the stack pointer `floor` are
// Lua's.
bool guard_stack_is_lua(struct guard_registers r, uintptr_t floor);

#endif

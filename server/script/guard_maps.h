// guard_maps: the executable mappings of this process, read from the kernel. Machine code that
// LuaJIT made stands in one without a file. For guard_stack alone; safe in a signal handler.
#ifndef PHOTON_SCRIPT_GUARD_MAPS_H
#define PHOTON_SCRIPT_GUARD_MAPS_H

#include <stdbool.h>
#include <stdint.h>

enum { GUARD_MAX_RANGES = 768 };

struct guard_range {
    uintptr_t from, to;
    bool has_file;
};

struct guard_ranges {
    struct guard_range at[GUARD_MAX_RANGES];
    unsigned count;
};

// False when they cannot be read, or are too many.
bool guard_maps_read(struct guard_ranges *all);

// The one that holds `pc`, NULL when none does.
const struct guard_range *guard_maps_find(const struct guard_ranges *all, uintptr_t pc);

#endif

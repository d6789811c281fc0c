#include "script/guard_maps.h"

#include <fcntl.h>
#include <unistd.h>

struct line {
    uintptr_t from, to;
    unsigned field;
    bool is_executable, has_file;
};

// One character of /proc/self/maps: "from-to rwxp offset device inode   path\n". False when there
// are too many mappings.
static bool take_char(struct guard_ranges *all, struct line *l, char c)
{
    if (c == '\n') {
        if (l->is_executable) {
            if (all->count == GUARD_MAX_RANGES) return false;
            all->at[all->count++] = (struct guard_range){l->from, l->to, l->has_file};
        }
        *l = (struct line){0};
    } else if (l->field < 2) {
        uintptr_t *value = l->field ? &l->to : &l->from;
        if (c == '-' || c == ' ')
            l->field++;
        else
            *value = *value * 16 + (uintptr_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    } else if (c == ' ') {
        l->field += l->field < 6;
    } else {
        if (l->field == 2 && c == 'x') l->is_executable = true;
        if (l->field == 6) l->has_file = true;
    }
    return true;
}

bool guard_maps_read(struct guard_ranges *all)
{
    char piece[4096];
    struct line line = {0};
    ssize_t n;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

    all->count = 0;
    if (fd < 0) return false;
    while ((n = read(fd, piece, sizeof piece)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            if (!take_char(all, &line, piece[i])) n = -1;
        }
        if (n < 0) break;
    }
    close(fd);
    return n == 0;
}

const struct guard_range *guard_maps_find(const struct guard_ranges *all, uintptr_t pc)
{
    for (unsigned i = 0; i < all->count; i++) {
        if (pc >= all->at[i].from && pc < all->at[i].to) return &all->at[i];
    }
    return NULL;
}

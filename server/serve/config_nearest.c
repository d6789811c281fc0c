#include "serve/config_settings.h"

#include <ctype.h>

enum { NEAREST_MOST = CONFIG_NAME };

static unsigned nearest_least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool nearest_same(char a, char b)
{
    if (a == '-') a = '_';
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

// How many letters must be changed, added, dropped or swapped with their neighbour.
static unsigned nearest_distance(struct slice a, struct slice b)
{
    unsigned rows[NEAREST_MOST + 1][NEAREST_MOST + 1];
    for (unsigned j = 0; j <= b.len; j++) rows[0][j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        rows[i][0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            bool is_same = nearest_same(a.ptr[i - 1], b.ptr[j - 1]);
            unsigned best = rows[i - 1][j - 1] + !is_same;
            best = nearest_least(best, nearest_least(rows[i - 1][j], rows[i][j - 1]) + 1);
            if (i > 1 && j > 1 && nearest_same(a.ptr[i - 1], b.ptr[j - 2]) &&
                nearest_same(a.ptr[i - 2], b.ptr[j - 1]))
                best = nearest_least(best, rows[i - 2][j - 2] + 1);
            rows[i][j] = best;
        }
    }
    return rows[a.len][b.len];
}

static void nearest_try(struct slice name, const char *candidate, unsigned *least,
                        const char **best)
{
    unsigned distance = nearest_distance(name, slice_of_text(candidate));
    if (distance >= *least) return;
    *least = distance;
    *best = candidate;
}

// A third of the letters may differ, as in lua/photon/suggest.lua.
const char *config_nearest(struct slice name, const char *const more[])
{
    const char *best = NULL;
    unsigned least = (name.len < 6 ? 1 : (unsigned)name.len / 3) + 1;
    if (name.len > NEAREST_MOST) return NULL;
    for (int i = 0; i < CONFIG_SETTINGS; i++)
        nearest_try(name, config_settings[i].name, &least, &best);
    for (; more && *more; more++) nearest_try(name, *more, &least, &best);
    return best;
}

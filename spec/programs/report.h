// report: what the programs of the specs share. A program runs its cases and prints one line for
// each, "ok NAME" or "not ok NAME: WHY", which a spec turns into a test (spec/programs.lua).
#ifndef PHOTON_SPEC_REPORT_H
#define PHOTON_SPEC_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct report_case {
    const char *name;
    void (*run)(void);
};

static char report_problem[512]; // the first one of the case that runs

// Notes a failed expectation and goes on. Returns `is_good`, so that a case can stop by itself.
static inline bool report_check(bool is_good, const char *what, const char *file, int line)
{
    if (!is_good && !report_problem[0])
        snprintf(report_problem, sizeof(report_problem), "%s:%d: %s", file, line, what);
    return is_good;
}

static inline bool report_equal(long long got, long long wanted, const char *what, const char *file,
                                int line)
{
    char text[256];
    snprintf(text, sizeof(text), "%s is %lld, not %lld", what, got, wanted);
    return report_check(got == wanted, text, file, line);
}

#define CHECK(condition) report_check((condition), #condition, __FILE__, __LINE__)
#define EQUAL(got, wanted)                                                                         \
    report_equal((long long)(got), (long long)(wanted), #got, __FILE__, __LINE__)

// The exit status of the program.
static inline int report_run(const struct report_case *cases)
{
    bool has_failed = false;
    for (const struct report_case *c = cases; c->name; c++) {
        report_problem[0] = 0;
        c->run();
        has_failed |= report_problem[0] != 0;
        if (report_problem[0])
            printf("not ok %s: %s\n", c->name, report_problem);
        else
            printf("ok %s\n", c->name);
        fflush(stdout);
    }
    return has_failed;
}

// Pseudo random numbers, the same in each run.
static inline uint32_t report_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#endif

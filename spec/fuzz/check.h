// check: what a fuzz target says of an input that breaks a rule; libFuzzer keeps that input.
#ifndef PHOTON_SPEC_FUZZ_CHECK_H
#define PHOTON_SPEC_FUZZ_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#endif

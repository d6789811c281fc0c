// folder_probe: files in a folder of their own, which is gone when the program's cases have run.
#ifndef PHOTON_SPEC_FOLDER_PROBE_H
#define PHOTON_SPEC_FOLDER_PROBE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "report.h"

// In memory where that can be had: here the calls count, not the disk.
static char folder[40] = "/dev/shm/photon-spec-XXXXXX";

// A journal, the one before it, and where a damaged one is put aside.
static char path[64], path2[80], aside[96], aside2[96];

static inline void forget(void)
{
    unlink(path);
    unlink(path2);
    unlink(aside);
    unlink(aside2);
}

static inline uint64_t size_of(const char *name)
{
    struct stat st;
    return stat(name, &st) ? 0 : (uint64_t)st.st_size;
}

// Returns the exit status of the program.
static inline int folder_run(const struct report_case *cases)
{
    if (!mkdtemp(folder) && !mkdtemp(strcpy(folder, "/tmp/photon-spec-XXXXXX"))) return 1;
    snprintf(path, sizeof path, "%s/log", folder);
    snprintf(path2, sizeof path2, "%s-2", path);
    snprintf(aside, sizeof aside, "%s.damaged", path);
    snprintf(aside2, sizeof aside2, "%s.damaged", path2);
    log_open(LOG_OFF, LOG_ERROR);
    int status = report_run(cases);
    forget();
    rmdir(folder);
    log_close();
    return status;
}

#endif

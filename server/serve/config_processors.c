#include "serve/config_processors.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>
#include "serve/config.h"

enum { PROCESSORS_PATH = 4096, PROCESSORS_WORDS = 1024 };

// A file's first numbers; "max" and a missing file give none. Returns how many were read.
static int processors_read(const char *path, double numbers[2])
{
    FILE *file = fopen(path, "re");
    int count = file ? fscanf(file, "%lf %lf", &numbers[0], &numbers[1]) : 0;
    if (file) fclose(file);
    return count < 0 ? 0 : count;
}

// v2: `quota period` in one file, or `max period`.
static double processors_quota_v2(const char *folder)
{
    char path[PROCESSORS_PATH + 32];
    double numbers[2];
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    bool has_both = processors_read(path, numbers) == 2;
    return has_both && numbers[0] > 0 && numbers[1] > 0 ? numbers[0] / numbers[1] : 0;
}

// v1: two files; no quota is -1.
static double processors_quota_v1(const char *folder)
{
    char path[PROCESSORS_PATH + 32];
    double quota[2], period[2];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (processors_read(path, quota) < 1 || quota[0] <= 0) return 0;
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    return processors_read(path, period) < 1 || period[0] <= 0 ? 0 : quota[0] / period[0];
}

// The least of the folder root/group and of all above it up to `root`. A group that is named as the
// host sees it may not exist here: then its container's own files stand at the root.
static double processors_least(const char *root, const char *group,
                               double (*quota_of)(const char *folder))
{
    char folder[PROCESSORS_PATH];
    double least = 0;
    size_t root_len = strlen(root);
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", root, group) >= sizeof folder)
        folder[root_len] = '\0';
    for (;;) {
        double quota = quota_of(folder);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
        char *slash = strrchr(folder + root_len, '/');
        if (!slash) return least;
        *slash = '\0';
    }
}

// A line of /proc/self/cgroup is `number:controllers:path`; v2 names no controllers.
static double processors_quota_of_line(char *line, const char *root)
{
    char mount[PROCESSORS_PATH / 2];
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) return 0;
    *group++ = '\0';
    controllers++;
    group[strcspn(group, "\n")] = '\0';
    if (!*controllers) return processors_least(root, group, processors_quota_v2);
    for (char *at = controllers, *rest; at; at = rest) {
        if ((rest = strchr(at, ','))) rest++;
        if (strncmp(at, "cpu", 3) != 0 || (at[3] && at[3] != ',')) continue;
        snprintf(mount, sizeof mount, "%s/cpu", root); // a link to the mount, where they are joined
        return processors_least(mount, group, processors_quota_v1);
    }
    return 0;
}

double config_cgroup_quota(const char *membership, const char *root)
{
    char line[PROCESSORS_PATH];
    double least = 0;
    FILE *file = fopen(membership, "re");
    while (file && fgets(line, sizeof line, file)) {
        double quota = processors_quota_of_line(line, root);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
    }
    if (file) fclose(file);
    return least;
}

static unsigned processors_by_affinity(void)
{
    unsigned long mask[PROCESSORS_WORDS] = {0}; // more than cpu_set_t knows of
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)mask) == 0)
        return (unsigned)CPU_COUNT_S(sizeof mask, (cpu_set_t *)mask);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

unsigned config_processors(void)
{
    unsigned count = processors_by_affinity();
    double quota = config_cgroup_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    if (quota > 0 && ceil(quota) < count) count = (unsigned)ceil(quota);
    if (count > CONFIG_MAX_WORKERS) count = CONFIG_MAX_WORKERS;
    return count ? count : 1;
}

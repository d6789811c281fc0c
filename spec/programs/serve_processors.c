// config: the processors that may be used.
#include "serve/config.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "report.h"
#include "serve/config_processors.h"

static char root[] = P_tmpdir "/photon-cgroup-XXXXXX";

static void put(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = '\0';
        mkdir(whole, 0700);
    }
    FILE *file = fopen(whole, "w");
    if (!CHECK(file)) return;
    fputs(text, file);
    fclose(file);
}

static double quota(const char *membership)
{
    char path[64];
    put("membership", membership);
    snprintf(path, sizeof path, "%s/membership", root);
    return config_cgroup_quota(path, root);
}

static void quotas_are_read(void)
{
    char command[64];
    CHECK(mkdtemp(root));
    CHECK(quota("0::/\n") == 0);
    put("a/b/cpu.max", "max 100000\n");
    CHECK(quota("0::/a/b\n") == 0);
    put("a/cpu.max", "150000 100000\n");
    CHECK(quota("0::/a/b\n") == 1.5);
    put("a/b/cpu.max", "200000 100000\n");
    CHECK(quota("0::/a/b\n") == 1.5);
    put("a/b/cpu.max", "50000 100000\n");
    CHECK(quota("0::/a/b\n") == 0.5);
    CHECK(quota("0::/\n") == 0);
    put("cpu.max", "300000 100000\n"); // a container's own group stands at the root
    CHECK(quota("0::/no/such/group\n") == 3);
    put("cpu/c/cpu.cfs_quota_us", "-1\n");
    put("cpu/c/cpu.cfs_period_us", "100000\n");
    CHECK(quota("5:memory:/c\n4:cpu,cpuacct:/c\n") == 0);
    put("cpu/c/cpu.cfs_quota_us", "250000\n");
    CHECK(quota("5:memory:/c\n4:cpuacct,cpu:/c\n") == 2.5);
    CHECK(quota("5:cpuset:/c\n") == 0);
    CHECK(quota("nonsense\n\n::\n") == 3); // the last is v2's root, if oddly put
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK(system(command) == 0);
    CHECK(config_cgroup_quota("/nonexistent", "/nonexistent") == 0);
}

static void affinity_counts(void)
{
    cpu_set_t all, one;
    unsigned count = config_processors();
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CHECK(count >= 1 && count <= (unsigned)CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    EQUAL(config_processors(), 1);
    sched_setaffinity(0, sizeof all, &all);
}

int main(void)
{
    static const struct report_case cases[] = {
        {"quotas are read", quotas_are_read},
        {"affinity counts", affinity_counts},
        {0},
    };
    return report_run(cases);
}

// config_processors: what a cgroup allows, read from files. For config alone; specs give it files
// of their own.
#ifndef PHOTON_SERVE_CONFIG_PROCESSORS_H
#define PHOTON_SERVE_CONFIG_PROCESSORS_H

// The least quota, in processors, on the way from this process's cgroup up to the root; 0 when
// there is none. `membership` is /proc/self/cgroup, `root` /sys/fs/cgroup.
double config_cgroup_quota(const char *membership, const char *root);

#endif

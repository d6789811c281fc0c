// limits: every setting that bounds what a peer or a script may take, as one plain struct. The
// names are those of docs/settings.md. Times are milliseconds here (seconds for users), sizes
// bytes.
#ifndef PHOTON_BASE_LIMITS_H
#define PHOTON_BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

struct limits {
    uint32_t max_header;  // request line and header block together, also a trailer section
    uint32_t max_headers; // field lines
    uint32_t max_target;
    uint64_t max_body;
    uint32_t header_timeout, body_timeout, idle_timeout, write_timeout;
    uint32_t max_connections, max_streams, max_streams_per_ip, max_tasks, max_channels, max_event;
    uint64_t shared_memory, lua_memory;
    uint32_t lua_budget, lua_slow;
    uint32_t max_generations;
    uint32_t drain;
    bool server_header;
};

#define LIMITS_DEFAULT                                                                             \
    ((struct limits){.max_header = 16384,                                                          \
                     .max_headers = 100,                                                           \
                     .max_target = 8192,                                                           \
                     .max_body = 1 << 20,                                                          \
                     .header_timeout = 10000,                                                      \
                     .body_timeout = 30000,                                                        \
                     .idle_timeout = 75000,                                                        \
                     .write_timeout = 60000,                                                       \
                     .max_connections = 100000,                                                    \
                     .max_streams = 50000,                                                         \
                     .max_streams_per_ip = 0,                                                      \
                     .max_tasks = 100000,                                                          \
                     .max_channels = 10000,                                                        \
                     .max_event = 256 << 10,                                                       \
                     .shared_memory = 16 << 20,                                                    \
                     .lua_memory = 512 << 20,                                                      \
                     .lua_budget = 5000,                                                           \
                     .lua_slow = 50,                                                               \
                     .max_generations = 8,                                                         \
                     .drain = 10000})

#endif

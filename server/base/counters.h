// counters: what a worker counts. Each worker writes its own struct, anyone may read it; a sum over
// all is made when somebody asks. No locks, no shared cache lines.
#ifndef PHOTON_BASE_COUNTERS_H
#define PHOTON_BASE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

// name, kind (counter or gauge), help text. The metric is photon_<name>, with _total for counters.
#define COUNTERS_EACH(X)                                                                           \
    X(requests, counter, "requests answered")                                                      \
    X(connections_accepted, counter, "connections accepted")                                       \
    X(connections, gauge, "open connections")                                                      \
    X(connections_refused, counter, "connections refused at max_connections")                      \
    X(accept_errors, counter, "failed accepts, for instance for want of descriptors")              \
    X(streams, gauge, "open streams")                                                              \
    X(streams_opened, counter, "streams opened")                                                   \
    X(stream_events, counter, "events and comments written to streams")                            \
    X(streams_refused, counter, "streams refused at max_streams or max_streams_per_ip")            \
    X(channels, gauge, "living channels")                                                          \
    X(channels_refused, counter, "channels refused at max_channels")                               \
    X(channel_events, counter, "events published to channels")                                     \
    X(channel_subscribers, gauge, "subscribers of channels")                                       \
    X(channel_deliveries, counter, "events given to subscribers of channels")                      \
    X(channel_gaps, counter, "gaps that subscribers were told of")                                 \
    X(channel_slow_closed, counter, "subscribers ended because they were too slow (slow = close)") \
    X(channel_log_errors, counter, "logs that could not be opened and events they could not take") \
    X(bytes_in, counter, "bytes received")                                                         \
    X(bytes_out, counter, "bytes sent")                                                            \
    X(bad_requests, counter, "requests refused by the parser or its guard")                        \
    X(limit_header, counter, "requests over max_header or max_headers")                            \
    X(limit_target, counter, "requests over max_target")                                           \
    X(limit_body, counter, "requests over max_body")                                               \
    X(timeout_header, counter, "connections ended by header_timeout")                              \
    X(timeout_body, counter, "requests ended by body_timeout")                                     \
    X(timeout_idle, counter, "connections ended by idle_timeout")                                  \
    X(timeout_write, counter, "connections ended by write_timeout")                                \
    X(lua_entries, counter, "entries into Lua")                                                    \
    X(lua_errors, counter, "Lua errors that became a 500 or ended a task")                         \
    X(lua_slow, counter, "slices over lua_slow")                                                   \
    X(lua_stopped, counter, "slices stopped at lua_budget")                                        \
    X(vms_abandoned, counter, "virtual machines given up because their code could not be stopped") \
    X(vms_full, counter, "virtual machines replaced because what they kept filled lua_memory")     \
    X(vm_leaked_bytes, counter, "heap of the virtual machines that were given up")                 \
    X(tasks, gauge, "living tasks")                                                                \
    X(tasks_refused, counter, "tasks refused at max_tasks")                                        \
    X(log_dropped, counter, "log lines dropped because the ring was full")                         \
    X(reloads, counter, "reloads that succeeded")                                                  \
    X(reload_failures, counter, "reloads that changed nothing")

struct counters {
#define COUNTERS_FIELD(name, kind, help) _Atomic uint64_t name;
    COUNTERS_EACH(COUNTERS_FIELD)
#undef COUNTERS_FIELD
};

// Only the owner adds, so no read-modify-write instruction is needed. Gauges go down by adding -1.
static inline void counters_add(_Atomic uint64_t *counter, int64_t n)
{
    uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, now + (uint64_t)n, memory_order_relaxed);
}

// sum += one, field by field.
void counters_sum(struct counters *sum, const struct counters *one);

#endif

#include "script/guard_watch.h"

#include <signal.h>
#include "base/log.h"

enum {
    POLL_BUSY = 50,  // ms, at most, while some thread runs Lua
    POLL_IDLE = 200, // ms, at most, while none does
    POLL_OVER = 2,   // ms, while a slice is over its budget
    PATIENCE = 100,  // ms of CPU that the hook gets before the jump is tried
    COMPLAINT = 500, // signals without effect, after which the log says so
};

struct watchdog {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    struct list guards;
    bool is_running, is_stopping;
};

static struct watchdog dog = {.lock = PTHREAD_MUTEX_INITIALIZER};

int guard_watch_signal(void)
{
    return SIGRTMIN + 7;
}

void guard_watch_add(struct guard *g)
{
    pthread_mutex_lock(&dog.lock);
    if (!dog.guards.next) list_init(&dog.guards);
    list_append(&dog.guards, &g->node);
    pthread_mutex_unlock(&dog.lock);
}

void guard_watch_remove(struct guard *g)
{
    pthread_mutex_lock(&dog.lock);
    list_remove(&g->node);
    pthread_mutex_unlock(&dog.lock);
}

static uint64_t cpu_time(const struct guard *g)
{
    struct timespec t;
    if (clock_gettime(g->clock, &t) != 0) return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void accuse(struct guard *g, uint64_t slice, uint64_t budget, uint64_t over_ns)
{
    uint64_t patience = budget < PATIENCE ? budget : PATIENCE;

    if (atomic_load(&g->accused) != slice) {
        g->attempts = 0;
        atomic_store(&g->step, 1);
        atomic_store(&g->accused, slice);
    } else if (over_ns > patience * 1000000u) {
        atomic_store(&g->step, 2);
    }
    if (++g->attempts == COMPLAINT)
        log_write(LOG_ERROR,
                  "guard: a handler over its lua_budget cannot be stopped yet: it is in a C "
                  "function or in a foreign function (FFI)");
    pthread_kill(g->thread, guard_watch_signal());
}

// Looks at one thread; returns in how many milliseconds to look again.
static uint64_t look_at(struct guard *g)
{
    uint64_t slice = atomic_load_explicit(&g->slice, memory_order_acquire);
    uint64_t budget = atomic_load_explicit(&g->budget, memory_order_relaxed);
    uint64_t busy = budget / 10 < POLL_BUSY ? budget / 10 + 1 : POLL_BUSY;
    uint64_t idle = busy * (POLL_IDLE / POLL_BUSY);

    if (slice & 1) {
        if (slice != g->seen) {
            g->seen = slice;
            g->seen_cpu = cpu_time(g);
            return busy;
        }
        uint64_t used = cpu_time(g) - g->seen_cpu;
        if (budget == 0 || used < budget * 1000000u) return busy;
        accuse(g, slice, budget, used - budget * 1000000u);
        return g->attempts < COMPLAINT ? POLL_OVER : POLL_BUSY;
    }
    return idle;
}

static void wait_ms(uint64_t ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += (time_t)(ms / 1000) + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&dog.stop, &dog.lock, &until);
}

static void *watch(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "photon-guard");
    pthread_mutex_lock(&dog.lock);
    while (!dog.is_stopping) {
        uint64_t next = POLL_IDLE;
        for (struct list *n = dog.guards.next; n != &dog.guards; n = n->next) {
            uint64_t again = look_at(list_entry(n, struct guard, node));
            if (again < next) next = again;
        }
        wait_ms(next);
    }
    pthread_mutex_unlock(&dog.lock);
    return NULL;
}

static void init_dog(void)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&dog.stop, &attr);
    pthread_condattr_destroy(&attr);
    if (!dog.guards.next) list_init(&dog.guards);
}

bool guard_watch_start(void)
{
    sigset_t all, before;

    if (dog.is_running) return true;
    init_dog();
    dog.is_stopping = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    dog.is_running = pthread_create(&dog.thread, NULL, watch, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return dog.is_running;
}

void guard_watch_stop(void)
{
    if (!dog.is_running) return;
    pthread_mutex_lock(&dog.lock);
    dog.is_stopping = true;
    pthread_cond_signal(&dog.stop);
    pthread_mutex_unlock(&dog.lock);
    pthread_join(dog.thread, NULL);
    pthread_cond_destroy(&dog.stop);
    dog.is_running = false;
}

// The reaper closes retired VMs on a thread of its own: a large heap takes its time.
#include <pthread.h>
#include <time.h>
#include "script/app_private.h"
#include "script/guard_thread.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t thread;
    struct list parts;
    bool is_running, is_ending;
} reaper = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static void *reaper_run(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "photon-reaper");
    pthread_mutex_lock(&reaper.lock);
    for (;;) {
        struct list *node = list_take(&reaper.parts);
        if (node) {
            pthread_mutex_unlock(&reaper.lock);
            app_part_free(list_entry(node, struct app_part, node));
            pthread_mutex_lock(&reaper.lock);
        } else if (reaper.is_ending) {
            break;
        } else {
            pthread_cond_wait(&reaper.news, &reaper.lock);
        }
    }
    pthread_mutex_unlock(&reaper.lock);
    return NULL;
}

bool app_reaper_start(void)
{
    list_init(&reaper.parts);
    reaper.is_ending = false;
    reaper.is_running = guard_thread_start(&reaper.thread, reaper_run, NULL, false);
    return reaper.is_running;
}

bool app_reaper_stop(void)
{
    enum { PATIENCE = 10 }; // seconds; a heap of 130 MB takes a third of one
    struct timespec limit;
    if (!reaper.is_running) return true;
    pthread_mutex_lock(&reaper.lock);
    reaper.is_ending = true;
    pthread_cond_signal(&reaper.news);
    pthread_mutex_unlock(&reaper.lock);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += PATIENCE;
    if (pthread_timedjoin_np(reaper.thread, NULL, &limit) != 0) return false;
    reaper.is_running = false;
    return true;
}

void app_reap(struct app_part *part)
{
    if (!reaper.is_running) {
        app_part_free(part);
        return;
    }
    pthread_mutex_lock(&reaper.lock);
    list_append(&reaper.parts, &part->node);
    pthread_cond_signal(&reaper.news);
    pthread_mutex_unlock(&reaper.lock);
}

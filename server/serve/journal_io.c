#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>
#include "serve/journal_private.h"

// Faults on demand --------------------------------------------------------------------------------

static _Atomic long journal_fail_after, journal_fail_count;
static _Atomic int journal_fail_error;

void journal_fail(long after, long count, int error)
{
    atomic_store(&journal_fail_after, after);
    atomic_store(&journal_fail_count, count);
    atomic_store(&journal_fail_error, error);
}

static int journal_fault(void)
{
    if (atomic_load_explicit(&journal_fail_count, memory_order_relaxed) == 0) return 0;
    if (atomic_fetch_sub(&journal_fail_after, 1) > 0) return 0;
    atomic_fetch_sub(&journal_fail_count, 1);
    return atomic_load(&journal_fail_error);
}

// Calls -------------------------------------------------------------------------------------------

static ssize_t journal_write(int file, const struct iovec *parts, int count, uint64_t at)
{
    int fault = journal_fault();
    if (!fault) return pwritev(file, parts, count, (off_t)at);
    struct iovec half = {parts->iov_base, parts->iov_len / 2};
    (void)!pwritev(file, &half, 1, (off_t)at);
    errno = fault;
    return -1;
}

// Leaves the parts as what is still to be written.
static int journal_drop_written(struct iovec **parts, int count, size_t len)
{
    while (count && len >= (*parts)->iov_len) {
        len -= (*parts)->iov_len;
        ++*parts;
        count--;
    }
    if (count) {
        (*parts)->iov_base = (char *)(*parts)->iov_base + len;
        (*parts)->iov_len -= len;
    }
    return count;
}

int journal_write_all(int file, struct iovec *parts, int count, uint64_t at)
{
    count = journal_drop_written(&parts, count, 0);
    while (count) {
        ssize_t len = journal_write(file, parts, count, at);
        if (len < 0 && errno == EINTR) continue;
        if (len < 0) return errno;
        if (len == 0) return ENOSPC;
        at += (uint64_t)len;
        count = journal_drop_written(&parts, count, (size_t)len);
    }
    return 0;
}

int journal_truncate(int file, uint64_t len)
{
    int fault = journal_fault();
    if (fault) return fault;
    return ftruncate(file, (off_t)len) ? errno : 0;
}

int journal_sync(int file)
{
    int fault = journal_fault();
    if (fault) return fault;
    return fdatasync(file) ? errno : 0;
}

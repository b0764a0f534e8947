/* Loaded before libfaketime 0.9.10, for two calls that it does not get right.

   It leaves a process's monotonic clock alone, as one has to, but then refuses every sleep by that clock (EINVAL).  And it
   does not know C11's cnd_timedwait, by which librdkafka waits: the kernel would wait until the right clock shows what the
   wrong one was read for, minutes later. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *remain)
{
    return syscall(SYS_clock_nanosleep, clock, flags, request, remain) ? errno : 0;
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until)
{
    /* The same objects in glibc; libfaketime knows this call. */
    switch (pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until)) {
    case 0:
        return thrd_success;
    case ETIMEDOUT:
        return thrd_timedout;
    default:
        return thrd_error;
    }
}

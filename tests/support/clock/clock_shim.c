/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a process whose wall clock a test steps: CLOCK_REALTIME is the machine's plus what
 * the file PAY_CLOCK_FILE says (8 bytes, microseconds, this machine's byte order), read at every
 * call. The monotonic clock stays. As with a real step, a wait for a moment of the wall clock
 * (librdkafka waits so) lasts longer when the clock goes back, and ends when it has jumped over it.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)
#define SLICE_NS INT64_C(20000000)

static int (*real_clock_gettime)(clockid_t id, struct timespec *now);
static int (*real_cnd_timedwait)(cnd_t *cond, mtx_t *lock, const struct timespec *until);
static const volatile int64_t *offset_us;

static void find(const char *name, void *place, size_t size)
{
    void *found = dlsym(RTLD_NEXT, name);
    memcpy(place, (const void *)&found, size);
}

/* At the first use: constructors of other libraries ask for the time before one here would run. */
static void start(void)
{
    const char *path = getenv("PAY_CLOCK_FILE"); /* NOLINT(concurrency-mt-unsafe) */
    find("cnd_timedwait", (void *)&real_cnd_timedwait, sizeof real_cnd_timedwait);
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        void *page = mmap(NULL, sizeof *offset_us, PROT_READ, MAP_SHARED, file, 0);
        offset_us = page == MAP_FAILED ? NULL : page;
        (void)close(file);
    }
    find("clock_gettime", (void *)&real_clock_gettime, sizeof real_clock_gettime);
}

static int real_time(clockid_t id, struct timespec *now)
{
    if (real_clock_gettime == NULL) {
        start();
    }
    return real_clock_gettime(id, now);
}

static int64_t wall_ns(void)
{
    struct timespec now = {0, 0};
    (void)real_time(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec +
           (offset_us == NULL ? 0 : *offset_us * 1000);
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): glibc's names are reserved. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) {
        return real_time(id, now);
    }
    const int64_t ns = wall_ns();
    *now = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
    return 0;
}

int timespec_get(struct timespec *now, int base)
{
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    (void)zone;
    const int64_t ns = wall_ns();
    *now = (struct timeval){ns / NS_PER_S, ns % NS_PER_S / 1000};
    return 0;
}

time_t time(time_t *place)
{
    const time_t now = wall_ns() / NS_PER_S;
    if (place != NULL) {
        *place = now;
    }
    return now;
}

/* In slices, so that a step in the middle of the wait counts. */
int cnd_timedwait(cnd_t *cond, mtx_t *lock, const struct timespec *until)
{
    const int64_t until_ns = (int64_t)until->tv_sec * NS_PER_S + until->tv_nsec;
    int rc = thrd_timedout;
    int64_t left_ns = until_ns - wall_ns();
    while (rc == thrd_timedout && left_ns > 0) {
        struct timespec slice;
        (void)real_time(CLOCK_REALTIME, &slice);
        const int64_t end_ns = (int64_t)slice.tv_sec * NS_PER_S + slice.tv_nsec +
                               (left_ns < SLICE_NS ? left_ns : SLICE_NS);
        slice = (struct timespec){end_ns / NS_PER_S, end_ns % NS_PER_S};
        rc = real_cnd_timedwait(cond, lock, &slice);
        left_ns = until_ns - wall_ns();
    }
    return rc;
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

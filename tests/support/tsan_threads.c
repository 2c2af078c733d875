/* SPDX-License-Identifier: Apache-2.0 */
/* Under ThreadSanitizer only: C11 threads as the POSIX ones that they are in glibc. TSan knows no
 * thrd_create() or mtx_lock(): a thread that librdkafka made so would end the process at its first
 * instrumented function, and what its locks order would look like a race. Linked before the C
 * library, so that librdkafka calls these. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "glibc's mutexes are one thing");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "glibc's conditions are one thing");

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library has reserved
 * names. */
struct start {
    thrd_start_t run;
    void *arg;
};

static int result(int code)
{
    return code == 0           ? thrd_success
           : code == EBUSY     ? thrd_busy
           : code == ETIMEDOUT ? thrd_timedout
                               : thrd_error;
}

static void *run(void *arg)
{
    const struct start start = *(struct start *)arg;

    free(arg);
    return (void *)(intptr_t)start.run(start.arg);
}

int thrd_create(thrd_t *thread, thrd_start_t start, void *arg)
{
    struct start *made = malloc(sizeof *made);

    if (made == NULL) {
        return thrd_nomem;
    }
    *made = (struct start){start, arg};
    const int code = pthread_create(thread, NULL, run, made);
    if (code != 0) {
        free(made);
    }
    return result(code);
}

int thrd_join(thrd_t thread, int *ret_value)
{
    void *value = NULL;
    const int code = pthread_join(thread, &value);

    if (ret_value != NULL) {
        *ret_value = (int)(intptr_t)value;
    }
    return result(code);
}

int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attr;
    int code = pthread_mutexattr_init(&attr);

    if (code == 0 && (type & mtx_recursive) != 0) {
        code = pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
    }
    if (code == 0) {
        code = pthread_mutex_init((pthread_mutex_t *)mutex, &attr);
    }
    return result(code);
}

int mtx_lock(mtx_t *mutex)
{
    return result(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_unlock(mtx_t *mutex)
{
    return result(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

void mtx_destroy(mtx_t *mutex)
{
    (void)pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int cnd_init(cnd_t *condition)
{
    return result(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

int cnd_signal(cnd_t *condition)
{
    return result(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition)
{
    return result(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return result(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until)
{
    return result(
        pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}

void cnd_destroy(cnd_t *condition)
{
    (void)pthread_cond_destroy((pthread_cond_t *)condition);
}

void call_once(once_flag *flag, void (*function)(void))
{
    (void)pthread_once((pthread_once_t *)flag, function);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

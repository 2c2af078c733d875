/* SPDX-License-Identifier: Apache-2.0 */
/** @file fake.h @brief A registry that answers what it is told to: for what a real one does only in
 * bad hours. One connection at a time, one request each; the last answer is repeated. */
#ifndef PAY_TEST_REGISTRY_FAKE_H
#define PAY_TEST_REGISTRY_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define FAKE_ANSWERS_MAX 16
#define FAKE_REQUEST_MAX 8192

struct fake_answer {
    int status;       /* 0: the connection ends without an answer. */
    const char *body; /* Copied by fake_say(). */
};

struct fake {
    int listener;
    char url[64];
    pthread_t thread;
    pthread_mutex_t lock;
    struct fake_answer answers[FAKE_ANSWERS_MAX];
    size_t answer_count, next;
    char last[FAKE_REQUEST_MAX]; /* The last request, head and body. */
    atomic_int requests;
    atomic_bool ending;
};

/* Both abort the test program when the machine does not play along. */
void fake_start(struct fake *fake);
void fake_stop(struct fake *fake);
/** Replace what it answers from now on. */
void fake_say(struct fake *fake, const struct fake_answer *answers, size_t count);

#endif /* PAY_TEST_REGISTRY_FAKE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file psp_watch.h
 * @brief Whether the database is usable, for /readyz of role psp: its workers look at theirs only
 *        when a job needs a gate, and a money job needs it then.
 *
 * Ownership: the watch owns its connection and thread. Threads: start and stop by the role's loop.
 */
#ifndef PAY_INGEST_PSP_WATCH_H
#define PAY_INGEST_PSP_WATCH_H

#include <pthread.h>

#include "common/io/pg/pg.h"
#include "services/ingest/ingest.h"

struct pay_psp_watch {
    struct pay_ingest *ingest;
    struct pay_pg *pg;
    pthread_t thread;
    bool is_started;
    atomic_bool is_ending;
    atomic_bool ok;
};

/** @brief Adds the check "database". */
PAY_MUST_CHECK enum pay_status pay_psp_watch_start(struct pay_psp_watch *watch,
                                                   struct pay_ingest *ingest, struct pay_err *err);
/** Waits for the thread, at most as long as its statement lasts. Copes with a zeroed one. */
void pay_psp_watch_stop(struct pay_psp_watch *watch);

#endif /* PAY_INGEST_PSP_WATCH_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file worker.h
 * @brief One worker: its own connection, codec and arenas; takes a batch of records to its end.
 *
 * Ownership: accounts store, keyring and metrics are borrowed. Threads: one per worker.
 *
 *     pay_worker_open -> { pay_worker_turn } -> pay_worker_close
 */
#ifndef PAY_PROCESSOR_WORKER_H
#define PAY_PROCESSOR_WORKER_H

#include "services/processor/work.h"

/** @brief Does not connect: the first turn does. */
PAY_MUST_CHECK enum pay_status pay_worker_open(const struct pay_worker_options *options,
                                               struct pay_worker **ret_worker, struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_worker *pay_worker_close(struct pay_worker *worker);
/**
 * @brief Decide @p count records and commit, whatever it takes.
 * @return PAY_OK: all are committed and their dead letters acknowledged, so offsets may be stored.
 *         PAY_RETRY: given up by wait(); nothing may be stored. PAY_FATAL: a bug; stop.
 */
PAY_MUST_CHECK enum pay_status pay_worker_turn(struct pay_worker *worker,
                                               const struct pay_accounts *accounts,
                                               const struct pay_kafka_msg *msgs, size_t count,
                                               struct pay_err *err);
/**
 * @brief What a turn means for the loop. Given up while draining, nothing was stored and another
 * member takes it; given up otherwise, the next batch's offsets would be committed past it.
 * @return PAY_OK: go on. PAY_FATAL: end the process, so that the batch is delivered again.
 */
PAY_MUST_CHECK enum pay_status pay_worker_outcome(enum pay_status status, bool is_draining,
                                                  struct pay_err *err);
/** @brief Connected, with a schema that this binary knows? Connects when it is not. */
PAY_MUST_CHECK enum pay_status pay_worker_connect(struct pay_worker *worker, struct pay_err *err);
/** @brief The same, and asks the server: for a worker that has had nothing to do for a while. */
PAY_MUST_CHECK enum pay_status pay_worker_probe(struct pay_worker *worker, struct pay_err *err);
bool pay_worker_connected(const struct pay_worker *worker);
/** @brief Seal with another ring from the next turn on; borrowed as the former one was. */
void pay_worker_use_keyring(struct pay_worker *worker, struct pay_keyring *keyring);

#endif /* PAY_PROCESSOR_WORKER_H */

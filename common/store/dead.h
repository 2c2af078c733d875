/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file dead.h
 * @brief The dead letters as an operator sees them: inputs that nobody could decide and rows that
 * Kafka refused. Read only, with the rights of payfact_operator; no sealed column is read.
 *
 * An id names one of them for ever: psp/psp_account/transport_key of an input, the event id of an
 * event, psp-jobs/<shard>/<id> of a job. Ownership: rows belong to the arena given.
 */
#ifndef PAY_STORE_DEAD_H
#define PAY_STORE_DEAD_H

#include "common/store/explain.h"

#define PAY_STORE_DEAD_MAX PAY_EXPLAIN_ROWS_MAX /**< Rows of one list. */

/** One thing that was given up. Fields that it does not have are absent or 0. */
struct pay_dead_thing {
    struct pay_str id;
    struct pay_str what;   /**< INPUT, EVENT or JOB. */
    struct pay_str kind;   /**< PSP_EVENT, POISON, REFUSED_NOTIFICATION; the event's type. */
    struct pay_str status; /**< Of an input: DEAD, ORPHAN (still retried) or DECIDED. */
    struct pay_str reason;
    struct pay_str payment_id;
    struct pay_str psp, psp_account, transport_key;
    struct pay_str source, verification, input_id, trace_id;
    struct pay_str case_status; /**< OPEN, RESOLVED; absent: it has no case. */
    int64_t case_version;
    int64_t tries; /**< Deliveries of an input, refusals of a row. */
    int64_t held;  /**< Later rows of the payment that wait behind it. */
    int64_t first_at, last_at;
};

/** @return the static table of pay_dead_thing. */
const struct pay_explain_spec *pay_dead_spec(void);
/**
 * @brief What waits for a person, oldest first: inputs with an open case, then dead rows; the
 * oldest PAY_STORE_DEAD_MAX of each.
 */
PAY_MUST_CHECK enum pay_status pay_store_dead_list(struct pay_store *store, struct pay_arena *arena,
                                                   struct pay_explain_rows ret_rows[2],
                                                   struct pay_err *err);
/** @brief One by its id, open or not. @param ret_rows 0 or 1 row. */
PAY_MUST_CHECK enum pay_status pay_store_dead_get(struct pay_store *store, const char *id,
                                                  struct pay_arena *arena,
                                                  struct pay_explain_rows *ret_rows,
                                                  struct pay_err *err);

/** Sealed bytes as they were received. */
struct pay_store_evidence {
    bool found;
    struct pay_bytes body; /**< Sealed; absent: the row has none. */
    struct pay_str key_id;
    struct pay_bytes sha256; /**< Of the plain bytes. */
};
/** Who reads raw evidence, and why: written down with it. */
struct pay_store_reader {
    const char *who, *reason, *from_where;
};
/**
 * @brief Read the sealed bytes behind an input's id; the audit row is written in the same
 * transaction, whether they are there or not.
 * @return PAY_REJECT: the reader does not say who or why.
 */
PAY_MUST_CHECK enum pay_status pay_store_evidence_read(struct pay_store *store, const char *id,
                                                       const struct pay_store_reader *reader,
                                                       struct pay_arena *arena,
                                                       struct pay_store_evidence *ret_evidence,
                                                       struct pay_err *err);

#endif /* PAY_STORE_DEAD_H */

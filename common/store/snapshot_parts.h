/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file snapshot_parts.h
 * @brief Inside common/store: statements of a snapshot's load and the readers of their rows.
 *
 * Every statement takes $1 = payment ids, those of requests and approvals $2 = request ids too, and
 * answers payment_id as column 0, sorted. A reader appends one row; there is room for it.
 */
#ifndef PAY_STORE_SNAPSHOT_PARTS_H
#define PAY_STORE_SNAPSHOT_PARTS_H

#include "common/core/snapshot.h"
#include "common/store/statement.h"

extern const struct pay_pg_stmt pay_load_captures;
extern const struct pay_pg_stmt pay_load_refunds;
extern const struct pay_pg_stmt pay_load_disputes;
extern const struct pay_pg_stmt pay_load_requests;
extern const struct pay_pg_stmt pay_load_approvals;

/** @return -1: it was committed after the attempts were read; the version is old, the CAS fails. */
int pay_store_attempt_index(const struct pay_snapshot *snapshot, struct pay_str attempt_id);

void pay_read_capture(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row);
void pay_read_refund(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row);
void pay_read_dispute(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row);
void pay_read_request(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row);
void pay_read_approval(struct pay_snapshot *snapshot, const struct pay_pg_result *r, size_t row);

#endif /* PAY_STORE_SNAPSHOT_PARTS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file id.h
 * @brief Ids that a decision makes: derived from (payment_id, number), never random.
 *
 * Deciding again, after a crash or a restore, makes the same ids (data-model, "Ids").
 */
#ifndef PAY_CORE_ID_H
#define PAY_CORE_ID_H

#include "common/core/types.h"

/** @return true for a ULID as payment_id must be: ^[0-7][0-9A-HJKMNP-TV-Z]{25}$ */
bool pay_id_is_payment(struct pay_str text);
/** @return true for payment_id + one of A C R D + two digits 01..99. */
bool pay_id_is_action(struct pay_str text);
/** @param letter 'A', 'C', 'R' or 'D'; @param number 1..99. */
void pay_id_action(char dst[PAY_ACTION_ID_SIZE], const char *payment_id, char letter, int number);
/** payment_id of an action id: its first 26 characters. */
void pay_id_payment_of(char dst[PAY_PAYMENT_ID_SIZE], const char *action_id);
/** "<action id>.<kind>", with ".<n>" for n > 1 (CONFIRM always carries its n). */
void pay_id_job(char dst[PAY_JOB_ID_SIZE], const char *action_id, enum pay_job_kind kind, int n);
/** @brief The kind in a job id ("<action id>.<kind>[.<n>]"). @return false for any other text. */
bool pay_id_job_kind(struct pay_str job_id, enum pay_job_kind *ret_kind);
/** "<action id>.QUERY.v<payment version>": the processor's queries. */
void pay_id_query_by_version(char dst[PAY_JOB_ID_SIZE], const char *action_id, int64_t version);
/** "<action id>.QUERY.<due time in ms>": recovery's queries. */
void pay_id_query_by_due(char dst[PAY_JOB_ID_SIZE], const char *action_id, int64_t due_us);
/** A cause that came at this version of its row: told apart from the same cause at another. */
void pay_id_cause_at(char dst[PAY_CAUSE_SIZE + 24], const char *cause, int64_t version);
/** Text of any length in @p size bytes: what is longer ends in the hash of the whole. */
void pay_id_shorten(char *dst, size_t size, struct pay_str text);
/** A cause of any length in PAY_CAUSE_SIZE bytes: what is longer ends in the hash of the whole. */
void pay_id_cause(char dst[PAY_CAUSE_SIZE], struct pay_str cause);
/** "<type>/<aggregate id>/<16 hex of the cause>". */
void pay_id_fact(char dst[PAY_EVENT_ID_SIZE], enum pay_fact_type type, const char *aggregate_id,
                 const char *cause);

#endif /* PAY_CORE_ID_H */

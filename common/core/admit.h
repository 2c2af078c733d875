/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file admit.h
 * @brief Which attempt an event is about, whether it is believed, and which column of the attempt
 * table it stands in.
 *
 * Internal to common/core. Message content is judged here; nothing of it may reach an assertion.
 */
#ifndef PAY_CORE_ADMIT_H
#define PAY_CORE_ADMIT_H

#include "common/core/attempt_table.h"
#include "common/core/turn.h"

/** What shall happen to the attempt, and beside it. */
struct pay_ruling {
    enum pay_cell_kind kind;      /**< MOVE, STAY, IGNORE, REJECT or RECONCILE. */
    enum pay_attempt_status next; /**< MOVE only. */
    const char *reason_code;      /**< Static. */
    enum pay_case_kind case_kind; /**< RECONCILE; REJECT where has_case. */
    bool has_case;                /**< REJECT: with a case. */
    bool asks;                    /**< A query now. */
    bool counts;                  /**< NFD: one more in the row. */
    bool restarts;                /**< NFD: the row begins with this one. */
};

/** @return evidence of the input, lowered to SYNC_RESPONSE for the answer of a replay: it is the
 *          PSP's stored first answer, never a look at what is. */
enum pay_evidence pay_admit_evidence(const struct pay_decide_input *in);

/** @return true when the event's merchant reference is not of our form: it is not ours. */
bool pay_admit_is_foreign(const struct pay_turn *turn);
/** @return true when it names another payment, or, without our number, only a reference of one. */
bool pay_admit_is_of_other(const struct pay_turn *turn);
/** @return index of the attempt that the event is about; -1: not there (yet). */
int pay_admit_find_attempt(const struct pay_turn *turn);

/** @brief The column of the event for this attempt's capture mode.
 *  @return false when it has none yet (captures have a lifecycle of their own). */
bool pay_admit_column(const struct pay_turn *turn, int attempt_index,
                      enum pay_attempt_event *ret_column);
/** @return true when CAN was asked for too early to mean anything: it is NFD (note 3). */
bool pay_admit_is_early_cancel(const struct pay_turn *turn, int attempt_index);
/** @return true when "unpaid" or "not found" was asked after the PSP's own expiry: CAN (note 3). */
bool pay_admit_is_expired_unpaid(const struct pay_turn *turn, int attempt_index,
                                 enum pay_attempt_event column);

/** @brief Account, evidence, amount, reference.
 *  @return true when the event is believed; false: ret_ruling says what becomes of it. */
bool pay_admit(const struct pay_turn *turn, int attempt_index, enum pay_attempt_event column,
               struct pay_ruling *ret_ruling);

/** @brief Bind every reference that the event names; each is a proof that the PSP has the attempt.
 *  @return true when one was new. */
bool pay_admit_bind(struct pay_turn *turn, int attempt_index);
/** @return true when the event names an object under our number that is not the known one. */
bool pay_admit_is_unexpected(const struct pay_turn *turn, int attempt_index);
bool pay_admit_is_bound(const struct pay_turn *turn, int attempt_index,
                        enum pay_reference_kind kind, struct pay_str reference);
/** Bind one more, unless it is bound or absent. @return true when it was new. */
bool pay_admit_bind_one(struct pay_turn *turn, int attempt_index, enum pay_reference_kind kind,
                        struct pay_str reference);

#endif /* PAY_CORE_ADMIT_H */

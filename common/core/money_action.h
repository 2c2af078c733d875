/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file money_action.h
 * @brief How a capture or a refund begins, is sent, and changes its state; what then waits for it;
 * and what its state does to the attempt's amounts.
 *
 * Internal to common/core. These are the only functions that write an action's status. Reserving is
 * the caller's (amounts.h): an action holds its reservation exactly while it is open.
 */
#ifndef PAY_CORE_MONEY_ACTION_H
#define PAY_CORE_MONEY_ACTION_H

#include "common/core/gate.h"
#include "common/core/turn.h"

/** Which one: index into snapshot.captures or snapshot.refunds. */
struct pay_money_ref {
    enum pay_money_kind kind;
    int index; /**< -1: none. */
};

struct pay_money_new {
    enum pay_money_kind kind;
    int attempt_index;
    struct pay_money amount;
    enum pay_origin origin;
    bool is_final;
    struct pay_str key;                /**< Idempotency key. */
    struct pay_str reason_code;        /**< Refund: the requester's; may be absent. */
    struct pay_str provider_reference; /**< Origin PSP; may be absent. */
};

struct pay_money_action *pay_money_at(const struct pay_turn *turn, struct pay_money_ref ref);
size_t pay_money_count(const struct pay_turn *turn, enum pay_money_kind kind);
/** @return the action with that id; index -1: none. */
struct pay_money_ref pay_money_find(const struct pay_turn *turn, struct pay_str action_id);
/** @return false when the payment has the most that it may have. */
bool pay_money_has_room(const struct pay_turn *turn, enum pay_money_kind kind);

/** @brief Create the row, CREATED, with its RESERVATION deadline. Its amount is reserved already.
 */
struct pay_money_ref pay_money_begin(struct pay_turn *turn, const struct pay_money_new *from);
/** @brief The next money job of the action, with its gate row and SEND deadline. */
void pay_money_send(struct pay_turn *turn, struct pay_money_ref ref);
/** @brief Ask the PSP what became of it, where the PSP can be asked. */
void pay_money_query(struct pay_turn *turn, struct pay_money_ref ref);
/** @return true where the PSP has a query for such an action. */
bool pay_money_is_asked(const struct pay_turn *turn, struct pay_money_ref ref);

/**
 * @brief Move the action: status, amounts, gates, deadlines, history and its fact.
 * The amounts must allow it (money_rule.c, control.c): that is asserted.
 */
void pay_money_move(struct pay_turn *turn, struct pay_money_ref ref, enum pay_money_status next,
                    enum pay_evidence certainty, const char *reason_code);
/** @brief The gates prove that it was never sent, or it never had one: CANCELED. */
void pay_money_withdraw(struct pay_turn *turn, struct pay_money_ref ref, const char *reason_code);
/** @brief The attempt is withdrawn: no capture of it may leave any more. */
void pay_money_withdraw_captures(struct pay_turn *turn, int attempt_index);
/** @return an open capture of the attempt; index -1: none. */
struct pay_money_ref pay_money_open_capture(const struct pay_turn *turn, int attempt_index);
/** @brief The PSP has asked to come again under the same number: then, unless the end comes first.
 */
void pay_money_repeat_at(struct pay_turn *turn, struct pay_money_ref ref, int64_t at_us);

/** @return what its gates came to. */
struct pay_gate_sum pay_money_gates(const struct pay_turn *turn, struct pay_money_ref ref);
/** @return true while a job of the action may have been sent. */
bool pay_money_was_sent(const struct pay_turn *turn, struct pay_money_ref ref);
/** @return the latest gate of the action; NULL: none. */
struct pay_gate *pay_money_gate(const struct pay_turn *turn, struct pay_money_ref ref);
/** Nothing of it is sent, retried or replayed any more. */
void pay_money_close_gates(struct pay_turn *turn, struct pay_money_ref ref);

/** One history row about the action: nothing moved. */
void pay_money_record(struct pay_turn *turn, struct pay_money_ref ref);
/** @return whether a deadline row of the kind waits in the state; false for kinds of others. */
bool pay_money_waits(enum pay_money_status status, enum pay_deadline_kind kind);

#endif /* PAY_CORE_MONEY_ACTION_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file money_rule.h
 * @brief Which capture or refund an event is about, whether it is believed, and what it shall do:
 * the money table with its notes. Reads, changes nothing.
 *
 * Internal to common/core. Message content is judged here; nothing of it may reach an assertion.
 */
#ifndef PAY_CORE_MONEY_RULE_H
#define PAY_CORE_MONEY_RULE_H

#include "common/core/money_action.h"
#include "common/core/money_table.h"

struct pay_money_ruling {
    enum pay_cell_kind kind;      /**< MOVE, IGNORE, REJECT or RECONCILE. */
    enum pay_money_status next;   /**< MOVE only. */
    const char *reason_code;      /**< Static. */
    enum pay_case_kind case_kind; /**< RECONCILE; REJECT where has_case. */
    bool has_case;                /**< REJECT: with a case. */
    bool asks;                    /**< A query now. */
    bool counts;                  /**< Not found: one more in the row. */
    bool restarts;                /**< Not found: the row begins with this one. */
};

/** @return the column of an event's type, and of which kind it is; false: of neither. */
bool pay_money_column(enum pay_event_type type, enum pay_money_kind *ret_kind,
                      enum pay_money_event *ret_event);

/** @return the action that the event names, by our number, our job or the PSP's name; index -1:
 *          it names none of ours. */
struct pay_money_ref pay_money_named(const struct pay_turn *turn, int attempt_index,
                                     enum pay_money_kind kind);
/** @return true when the event has no name of an action at all, neither ours nor the PSP's. */
bool pay_money_is_nameless(const struct pay_event *event);
/** @return the only open capture of exactly the event's amount that no settled one explains; index
 *          -1: there is none, or it is not the only one. */
struct pay_money_ref pay_money_by_amount(const struct pay_turn *turn, int attempt_index);
/** @return the capture of exactly that amount that has succeeded without the PSP's name; index -1:
 *          none. */
struct pay_money_ref pay_money_unnamed(const struct pay_turn *turn, int attempt_index);
/** @return true when a capture of exactly that amount has succeeded. */
bool pay_money_is_explained(const struct pay_turn *turn, int attempt_index);

/** @brief Account, evidence, amount, reference of an event about this action.
 *  @return true when it is believed; false: ret_ruling says what becomes of it. */
bool pay_money_admit(const struct pay_turn *turn, struct pay_money_ref ref,
                     enum pay_money_event column, struct pay_money_ruling *ret_ruling);
/** @return the cell, changed by its notes. */
struct pay_money_ruling pay_money_rule(const struct pay_turn *turn, struct pay_money_ref ref,
                                       enum pay_money_event column);
/** @return whether a success that is not reserved could be booked. */
bool pay_money_fits(const struct pay_turn *turn, struct pay_money_ref ref);

#endif /* PAY_CORE_MONEY_RULE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file guard.h
 * @brief The rules without which money is charged twice, lost or published wrongly, by name.
 *
 * In the library that ships, PAY_GUARD(NAME, condition) is the condition and nothing else. In
 * pay_core_switchable (compiled with PAY_GUARDS_SWITCHABLE=1, linked only by the explorer) each
 * guard can be switched off, so that it can be shown that every one of them is needed: without it
 * the explorer must find a broken invariant. A guard that is off behaves as if its condition were
 * false.
 *
 * The switch is the only global of common/core, and only that second library has it. Not for
 * threads.
 */
#ifndef PAY_CORE_GUARD_H
#define PAY_CORE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#if !defined(PAY_GUARDS_SWITCHABLE)
#define PAY_GUARDS_SWITCHABLE 0
#endif

enum pay_guard {
    /* Whether an attempt may be created (orchestrate.c). */
    PAY_GUARD_LIVE_RULE,             /**< None while another attempt is live: UNKNOWN blocks too. */
    PAY_GUARD_SUCCESS_BLOCKS,        /**< None after a success. */
    PAY_GUARD_FINAL_ORDER,           /**< None on a final order, and a final order never moves. */
    PAY_GUARD_INTENT_CANCEL,         /**< None once the merchant asked for CANCEL. */
    PAY_GUARD_ORDER_EXPIRED,         /**< None from expires_at on. */
    PAY_GUARD_FAILOVER_UNTIL,        /**< None from failover_until on. */
    PAY_GUARD_LATE_MONEY_BLOCKS,     /**< None while a money case is open. */
    PAY_GUARD_ROUTE_PAUSED,          /**< None on a paused route. */
    PAY_GUARD_FAILOVER_ON_NOT_FOUND, /**< After a not-found by itself only where the route says so.
                                      */

    /* What is believed (admit.c). */
    PAY_GUARD_EVIDENCE,             /**< Below the least evidence: rejected. */
    PAY_GUARD_AMOUNT,               /**< Another amount or currency: rejected. */
    PAY_GUARD_ACCOUNT,              /**< Another PSP or account than the attempt's: rejected. */
    PAY_GUARD_UNEXPECTED_REFERENCE, /**< Success of an object that is not the known one. */

    /* What moves an attempt (rule.c, gate.c). */
    PAY_GUARD_STALE_SUCCESS,        /**< A success is left by nothing below CONTROLLED. */
    PAY_GUARD_NOT_SENT_GATE,        /**< NSN only with a gate that is closed unsent. */
    PAY_GUARD_NOT_FOUND_REFERENCE,  /**< Never by not-found once a reference was bound. */
    PAY_GUARD_NOT_FOUND_ACTION,     /**< Never by not-found once an action was handed out. */
    PAY_GUARD_NOT_FOUND_BY_NUMBER,  /**< Only a query by our number can say it. */
    PAY_GUARD_NOT_FOUND_ASKED_LATE, /**< Only if asked after every send can have ended. */
    PAY_GUARD_CANCELED_ASKED_LATE, /**< CAN of a query only if asked after the attempt was known. */
    PAY_GUARD_UNKNOWN_WEAK_NEWS,   /**< UNKNOWN is not left by PRC or ACT of a replay. */
    PAY_GUARD_UNKNOWN_OVER_WEBHOOK,  /**< A time-out does not undo what a webhook said. */
    PAY_GUARD_LATE_SUCCESS_EVIDENCE, /**< Late money needs WEBHOOK. */
    PAY_GUARD_AUTHORIZED_CANCEL,     /**< AUTHORIZED is left by CAN of our cancel, or WEBHOOK. */

    /* What is sent (withdraw.c, confirm.c, order.c). */
    PAY_GUARD_WITHDRAWAL_CLOSES_GATES, /**< No send after an attempt was withdrawn. */
    PAY_GUARD_CANCEL_KNOWN,            /**< CANCEL only when the attempt is known to exist. */
    PAY_GUARD_OTHERS_WITHDRAWN,        /**< A success withdraws every other live attempt. */
    PAY_GUARD_CONFIRM_BLOCKED, /**< No CONFIRM under an intent, money case, final order, success. */
    PAY_GUARD_CONFIRM_ONCE,    /**< One CONFIRM for each action handed out. */
    PAY_GUARD_ACTION_NOT_WHILE_CANCELED, /**< No page to pay on while the attempt is withdrawn. */

    /* What a replayed or late input does (decide_deadline.c, rule.c). */
    PAY_GUARD_OLD_DEADLINE,    /**< A deadline whose row has moved decides nothing. */
    PAY_GUARD_EXPIRY_WAITS,    /**< An order does not expire beside a live attempt. */
    PAY_GUARD_REVERSAL_REPLAY, /**< One reversal is booked once. */
    PAY_GUARD_COUNT
};

/** @return its name as in the enum, without the prefix; "?" for a value that is none. */
const char *pay_guard_name(enum pay_guard guard);

#if PAY_GUARDS_SWITCHABLE
/** Bit (1 << guard) set: that guard is off. */
extern uint64_t pay_guards_off;
#define PAY_GUARD(name, condition) \
    ((pay_guards_off >> PAY_GUARD_##name & UINT64_C(1)) == 0 && (condition))
/** The core's own results are asserted only while every guard holds. */
#define PAY_GUARDS_ALL_ON (pay_guards_off == 0)
#else
#define PAY_GUARD(name, condition) (condition)
#define PAY_GUARDS_ALL_ON true
#endif

#endif /* PAY_CORE_GUARD_H */

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

/* One list: the enum, the names and the texts of the document come from it. */
/* clang-format off */
#define PAY_GUARD_LIST(X) \
    /* Whether an attempt may be created (orchestrate.c). */ \
    X(LIVE_RULE,                "no attempt while another is live; UNKNOWN is live") \
    X(SUCCESS_BLOCKS,           "no attempt after a success") \
    X(FINAL_ORDER,              "no attempt on a final order, and a final order never moves") \
    X(INTENT_CANCEL,            "no attempt once the merchant asked for CANCEL") \
    X(ORDER_EXPIRED,            "no attempt from expires_at on") \
    X(FAILOVER_UNTIL,           "no attempt from failover_until on") \
    X(LATE_MONEY_BLOCKS,        "no attempt while a money case is open") \
    X(ROUTE_PAUSED,             "no attempt on a paused route") \
    X(FAILOVER_ON_NOT_FOUND,    "after a not-found by itself only where the route says so") \
    /* What is believed (admit.c). */ \
    X(EVIDENCE,                 "evidence outside what the event admits is rejected") \
    X(AMOUNT,                   "another amount or currency is rejected") \
    X(ACCOUNT,                  "another PSP or account than the attempt's is rejected") \
    X(UNEXPECTED_REFERENCE,     "an object that is not the known one moves nothing") \
    /* What moves an attempt (rule.c, decide_event.c). */ \
    X(STALE_SUCCESS,            "a success is left by nothing below CONTROLLED") \
    X(NOT_SENT_GATE,            "not sent only with a gate that is closed unsent") \
    X(ONLY_SEND,                "a definite no only if no other send of the job exists") \
    X(NOT_FOUND_REFERENCE,      "never not-found once a reference was bound") \
    X(NOT_FOUND_ACTION,         "never not-found once an action was handed out") \
    X(NOT_FOUND_BY_NUMBER,      "not-found only from a query by our request number") \
    X(NOT_FOUND_ASKED_LATE,     "not-found only if asked after every send can have ended") \
    X(CANCELED_ASKED_LATE,      "canceled by a job only if made after the attempt was known") \
    X(UNKNOWN_WEAK_NEWS,        "UNKNOWN is not left by what a replay answers") \
    X(UNKNOWN_OVER_WEBHOOK,     "a time-out does not undo what a webhook said") \
    X(LATE_SUCCESS_EVIDENCE,    "late money needs a webhook or more") \
    X(AUTHORIZED_CANCEL,        "AUTHORIZED is left only by our own cancel's answer, or a webhook") \
    /* What is sent (withdraw.c, confirm.c, order.c). */ \
    X(WITHDRAWAL_CLOSES_GATES,  "nothing is sent after an attempt was withdrawn") \
    X(CANCEL_KNOWN,             "a cancel only when the attempt is known to exist") \
    X(OTHERS_WITHDRAWN,         "a success withdraws every other live attempt") \
    X(CONFIRM_BLOCKED,          "no confirm under an intent, money case, final order or success") \
    X(CONFIRM_ONCE,             "one confirm for each action handed out") \
    X(ACTION_NOT_WHILE_CANCELED, "no page to pay on while the attempt is withdrawn") \
    /* What a late or repeated input does (decide_deadline.c, rule.c). */ \
    X(OLD_DEADLINE,             "a deadline whose row has moved decides nothing") \
    X(EXPIRY_WAITS,             "an order does not expire beside a live attempt") \
    X(REVERSAL_REPLAY,          "one reversal is booked once") \
    /* Captures, refunds and disputes (amounts.c, money_rule.c, decide_money.c, command_money.c). */ \
    X(REFUNDABLE,               "no refund of more than is captured and not yet given back or reserved") \
    X(MONEY_ONCE,               "a capture or refund that is known is not made again by its next report") \
    X(MONEY_NOT_SENT,           "sent again only if no job of the action may have left") \
    X(MONEY_NOT_FOUND,          "a capture or refund not-found only as an attempt is") \
    X(MONEY_REVERSAL,           "taken back only when a query confirms it, where there is one") \
    X(REFUND_SUM,               "a sum of refunds is no refund while a refund of ours is open") \
    X(REFUND_SUM_NEW,           "a sum of refunds is compared only with what was known when it was asked for") \
    X(DISPUTE_FUNDS_ONCE,       "what a dispute withdrew or reinstated is booked once") \
    /* Two people (command_control.c). */ \
    X(APPROVAL_OWN,             "the requester approves nothing of his own") \
    X(APPROVAL_TWICE,           "one principal counts once") \
    X(APPROVAL_DIGEST,          "an approval names the bytes that it approves") \
    X(APPROVAL_VERSION,         "an approved request is stale once its row has changed") \
    X(REFUND_THRESHOLD,         "a refund beyond the thresholds waits for two approvals")
/* clang-format on */

#define PAY_GUARD_MEMBER(name, text) PAY_GUARD_##name,
enum pay_guard { PAY_GUARD_LIST(PAY_GUARD_MEMBER) PAY_GUARD_COUNT };
#undef PAY_GUARD_MEMBER

/** @return its name as in the enum, without the prefix; "?" for a value that is none. */
const char *pay_guard_name(enum pay_guard guard);
/** @return the rule in words; "?" for a value that is none. */
const char *pay_guard_text(enum pay_guard guard);

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

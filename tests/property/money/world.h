/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file world.h
 * @brief The small world of the money explorer: one payment's captures, refunds, dispute and
 * request as the core has decided them, and what its PSPs really hold.
 *
 * Every member is one byte and there is no padding: a world is its own key. There are no moments in
 * it, only "young" and "old": a job that was made or sent a short time ago, or so long ago that
 * every send of it has ended. A deadline that has a row may come at any time. What the core counts
 * without end (versions, sequences) is not part of a state. Nothing is owned.
 *
 * Messages that exist stay on their way: delivered now, later, again or never.
 */
#ifndef PAY_TESTS_MONEY_WORLD_H
#define PAY_TESTS_MONEY_WORLD_H

#include "common/core/decide.h"

#define MX_ATTEMPTS 2
#define MX_CAPTURES 3
#define MX_REFUNDS 3
#define MX_JOBS 3    /**< Of one action; a step that would make one more is beyond the bound. */
#define MX_OBJECTS 4 /**< At a PSP: those of our numbers 1 to 3, and the console's. */
#define MX_CONSOLE 3
#define MX_DUES 5 /**< SEND ANSWER QUERY MANUAL RESERVATION */

/** A capture or a refund at its PSP. */
enum mx_object {
    MX_NONE,
    MX_PENDING,
    MX_DONE,
    MX_REFUSED, /**< It made nothing, and will not. */
    MX_FAILED,  /**< It had been pending, or done: taken back. */
    MX_OBJECT_COUNT
};

enum mx_gate { MX_GATE_EXISTS = 1, MX_GATE_SENDING = 2, MX_GATE_CLOSED = 4, MX_GATE_AGAIN = 8 };

struct mx_action {
    uint8_t exists, attempt, amount, is_final, status, origin, is_named, not_founds, retry;
    uint8_t object;   /**< Index of what it is at the PSP, by the name that we know. */
    uint8_t is_old;   /**< Its last send, and its windows, are over. */
    uint8_t wire;     /**< A request of it may still be executed. */
    uint8_t was_told; /**< Its success was published; for the checks. */
    uint8_t jobs[MX_JOBS];
    uint8_t due; /**< Bits of rows. */
};

struct mx_object_state {
    uint8_t state, amount;
    uint8_t hooks;   /**< Bit of each state that a callback tells. */
    uint8_t answers; /**< As the answer of our own call; bit 0: "not now". */
    uint8_t not_now; /**< Which job was told so last. */
};

struct mx_attempt {
    uint8_t status, live, cancels, authorized, capture_reserved, captured, refund_reserved,
        refunded, withdrawn, sum;
    /* At the PSP. */
    uint8_t holds; /**< Authorized, or captured at once. */
    uint8_t voided, void_told;
    struct mx_object_state captures[MX_OBJECTS], refunds[MX_OBJECTS];
    uint8_t sums; /**< Bit of each cumulative sum that a callback tells. */
};

/** One query in flight: what it was about and what the PSP saw. */
struct mx_slot {
    /** index: the action's, or of the attempt (kind 2: its sum); object: what it was about;
     * is_late: a not-found counts; of a sum: no refund has changed since. */
    uint8_t is_set, kind, index, state, is_late, object;
};

struct mx_dispute {
    uint8_t exists, status, funds, withdrawn; /**< As decided. */
    uint8_t opened, truth, taken, given_back; /**< At the PSP; truth: its outcome. */
};

/** A request that waits for two people. */
struct mx_request {
    uint8_t exists, status, type, target, outcome, is_stale, approvals; /**< Bit of bob, of cat. */
    uint8_t words; /**< What the checks counted by themselves. */
};

struct mx_world {
    uint8_t order, cases, commands, controls;
    struct mx_attempt attempts[MX_ATTEMPTS];
    struct mx_action captures[MX_CAPTURES], refunds[MX_REFUNDS];
    struct mx_slot slot;
    struct mx_dispute dispute;
    struct mx_request request;
};

/** Cases that a world remembers, as bits. */
enum mx_case {
    MX_CASE_OVER_REFUND = 1, /**< Of the first attempt; both bits: one case, of the payment. */
    MX_CASE_CONTRADICTION = 2,
    MX_CASE_AMOUNT = 4,
    MX_CASE_REVERSED = 8,
    MX_CASE_REFERENCE = 16,
    MX_CASE_DUPLICATE = 32,
    MX_CASE_OTHER = 64,
    MX_CASE_OVER_REFUND_2 = 128 /**< Of the second attempt. */
};

enum mx_control {
    MX_FORCE = 1,
    MX_RELEASE = 2,
    MX_CORRECT = 4,
};

struct mx_config {
    const char *name;
    uint8_t is_manual, attempts;
    uint8_t held;               /**< Units of each attempt. */
    uint8_t captures, refunds;  /**< Of ours, at most. */
    uint8_t console;            /**< Bit 0: a refund, bit 1: a capture. */
    uint8_t console_amount;     /**< Units of it; 0: one. */
    uint8_t queries, by_number; /**< The PSP can be asked; a not-found can count. */
    uint8_t takes_back;         /**< Something done may fail later. */
    uint8_t says_not_now;
    uint8_t sums, disputes;
    uint8_t controls; /**< Bits of enum mx_control. */
    uint8_t needs_approval;
    uint8_t only_full;
};

extern const struct mx_config mx_configs[];
extern const size_t mx_config_count;

#endif /* PAY_TESTS_MONEY_WORLD_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file turn.h
 * @brief What the files behind pay_decide() share: one input being decided, and the only ways in
 * which rows are touched and effects are added.
 *
 * Internal to common/core. Everything lives as long as one call of pay_decide(); nothing is owned.
 * Appending beyond a capacity that the caller gave is a bug of the caller (PAY_DECIDE_ROOM_*).
 */
#ifndef PAY_CORE_TURN_H
#define PAY_CORE_TURN_H

#include "common/base/assert.h"
#include "common/core/decide.h"
#include "common/core/guard.h"

/** The core asserts its own results, never what a message says; not while a guard is off. */
#define PAY_INVARIANT(condition) PAY_ASSERT(!PAY_GUARDS_ALL_ON || (condition))

struct pay_turn {
    struct pay_snapshot *snap;
    const struct pay_decide_input *in;
    struct pay_decision *out;
    enum pay_evidence evidence; /**< The input's, lowered where the way it was asked says so. */
    const char *event_name;     /**< For history: SUC, AEX, CREATE_PAYMENT ... */
};

/** One history row, and the fact that it publishes, if it does. */
struct pay_record {
    enum pay_aggregate aggregate;
    const char *aggregate_id; /**< Borrowed. */
    int attempt_index;        /**< -1: none. */
    int case_index;           /**< -1: none. */
    const char *from_status;
    const char *to_status;
    enum pay_verdict verdict;
    const char *reason_code;
    bool publishes;
    enum pay_fact_type fact;
    bool recurs;     /**< The fact can recur for this aggregate: its id takes the row's version. */
    bool unnumbered; /**< Sequence 0: an answer outside the payment's order. */
    bool outside;    /**< Not of the payment's history either: its caller has no part in it. */
    const struct pay_money *amount; /**< Of the row, its fact; NULL: the event's, the attempt's. */
    struct pay_str reference;       /**< The PSP's name of the aggregate; absent: the event's. */
};

#define PAY_RECORD_NONE .attempt_index = -1, .case_index = -1

/** Adds the row and the fact. @return index of the fact's effect, -1 when none is published. */
int pay_turn_record(struct pay_turn *turn, const struct pay_record *record);

void pay_turn_verdict(struct pay_turn *turn, enum pay_verdict verdict, const char *reason_code);

void pay_row_touch(enum pay_row_change *change);
/** Only its counters of queries have changed: written, and its version stays. */
void pay_row_count(enum pay_row_change *change);
/** @return from + span, INT64_MAX when that is not a number. */
int64_t pay_time_after(int64_t from_us, int64_t span_us);
int64_t pay_time_earlier(int64_t a_us, int64_t b_us);
int64_t pay_time_later(int64_t a_us, int64_t b_us);

/** Upsert the row; the last word of a decision about one row counts. */
void pay_deadline_set(struct pay_turn *turn, enum pay_deadline_kind kind, const char *aggregate_id,
                      int64_t due_at_us);
void pay_deadline_clear(struct pay_turn *turn, enum pay_deadline_kind kind,
                        const char *aggregate_id);

/** @return the attempt; index must be one of the snapshot's. */
struct pay_attempt *pay_turn_attempt(const struct pay_turn *turn, int attempt_index);
/** @return the traits of the route that the attempt runs on. */
const struct pay_psp_traits *pay_turn_traits(const struct pay_turn *turn, int attempt_index);

/** A money job of an attempt, a capture or a refund. */
struct pay_gated_job {
    int attempt_index;
    const char *action_id; /**< Borrowed: the attempt's own id, or the action's. */
    enum pay_job_kind kind;
    int number;     /**< From 1. */
    int64_t end_us; /**< It may not be sent from then on, whatever the window. */
};
/** Make it, its gate row and the SEND deadline. @return the job, to be completed. */
struct pay_job_effect *pay_job_gated(struct pay_turn *turn, const struct pay_gated_job *from);
/** Ask about an attempt or an action. @param about_job_id may be replayed; NULL: none.
 *  @return the job; NULL: it is asked already in this turn. */
struct pay_job_effect *pay_job_ask(struct pay_turn *turn, int attempt_index, enum pay_job_kind kind,
                                   const char *action_id, const char *about_job_id);
/** The rows behind such a question, for what no row of its state's asks about: the job alone is
 * dropped where the PSP's role is away for as long as it lives. Recovery asks by the QUERY row
 * until an answer comes, and by the MANUAL row a person looks. */
void pay_job_until_answered(struct pay_turn *turn, int attempt_index, const char *action_id);
/** The event answers what was asked about the attempt or action: the rows go, unless they were set
 * after that was asked, or by this very turn. */
void pay_job_answered(struct pay_turn *turn, const char *action_id);
/** A money job of the attempt itself and its gate row; number from 1. */
void pay_job_money(struct pay_turn *turn, int attempt_index, enum pay_job_kind kind, int number);
/** The next CANCEL of the attempt (no gate: it fails on a paid transaction). */
void pay_job_cancel(struct pay_turn *turn, int attempt_index);

/** Open a case of the kind, or add this evidence to the open one.
 *  @return true when it was opened, false when one was open already. */
bool pay_case_open(struct pay_turn *turn, enum pay_case_kind kind, int attempt_index,
                   int64_t proposed_refund_minor);
/** @return index of the open case of that kind, of which there is at most one; -1: none. */
int pay_case_find_open(const struct pay_turn *turn, enum pay_case_kind kind);
bool pay_case_is_open(const struct pay_turn *turn, enum pay_case_kind kind);
/** @return whether an OVER_REFUND is open that concerns this attempt. */
bool pay_case_blocks_refunds(const struct pay_turn *turn, int attempt_index);
bool pay_case_money_open(const struct pay_turn *turn);

#endif /* PAY_CORE_TURN_H */

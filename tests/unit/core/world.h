/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file world.h
 * @brief One payment in memory, and the store's part played by a few lines: what the unit tests of
 * the core stand on.
 *
 * A test writes an event, a command or a deadline into the world and looks at the snapshot and the
 * decision. Deadline rows are kept, so that "every state that waits has a row" is checked after
 * every decision. Nothing is owned.
 */
#ifndef PAY_TESTS_CORE_WORLD_H
#define PAY_TESTS_CORE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>
#include <string.h>

#include "common/core/decide.h"
#include "common/core/id.h"

#define WORLD_PAYMENT "01J9ZQ4V7M3N8P5R2T6W0X1YAB"
#define WORLD_OTHER_PAYMENT "01J9ZQ4V7M3N8P5R2T6W0X1YAC"
#define SECOND INT64_C(1000000)
#define WORLD_START (INT64_C(1000000) * SECOND)
#define WORLD_AMOUNT INT64_C(10000)

#define WORLD_SEND_WINDOW (60 * SECOND)
#define WORLD_ANSWER (30 * SECOND)
#define WORLD_CALL_BUDGET (10 * SECOND)
#define WORLD_LONGEST (20 * SECOND)
#define WORLD_GRACE (5 * SECOND)
#define WORLD_QUERY_FIRST (15 * SECOND)
#define WORLD_PERSON_AFTER (3600 * SECOND)
#define WORLD_ACTION_LIFETIME (900 * SECOND)
#define WORLD_CANCEL_RETRY (40 * SECOND)
#define WORLD_ORDER_LIFETIME (7200 * SECOND)
#define WORLD_FAILOVER (900 * SECOND)

struct world_row {
    enum pay_deadline_kind kind;
    char aggregate_id[PAY_CAUSE_SIZE];
    int64_t due_at_us;
    int64_t set_at_us;
};

struct world {
    struct pay_snapshot snap;
    struct pay_route routes[PAY_ROUTES_MAX];
    struct pay_attempt attempts[PAY_ATTEMPTS_MAX];
    struct pay_gate gates[300];
    struct pay_bound_reference references[400];
    struct pay_case cases[100];
    struct pay_money_action captures[PAY_CAPTURES_MAX];
    struct pay_money_action refunds[PAY_REFUNDS_MAX];
    struct pay_dispute disputes[PAY_DISPUTES_MAX];
    struct pay_approval_request requests[40];
    struct pay_approval approvals[80];
    struct pay_policy policy;
    struct pay_route offered[PAY_ROUTES_MAX + 1]; /**< What a command's routes resolve to. */
    struct world_row rows[64];
    size_t row_count;
    int64_t now_us;
    uint8_t digest[32]; /**< Of the command that was begun last. */
    int causes;         /**< Makes causes unlike one another. */
    char cause[PAY_CAUSE_SIZE];
    struct pay_event event;
    struct pay_command command;
    struct pay_decide_input input;
    struct pay_decision out;
};

/** A payment that does not exist yet, three routes to offer. */
void world_init(struct world *w);
/** A payment with its first attempt CREATED on route 0; three routes; changes committed. */
void world_start(struct world *w);
/** As world_start, manual capture. */
void world_start_manual(struct world *w);

/* ---- captures, refunds, disputes, approvals ---- */

/** The store keeps them from now on; the routes' PSPs can do all of it. */
void world_keep_actions(struct world *w);
/** Automatic capture, the first attempt SUCCEEDED: WORLD_AMOUNT is captured. */
void world_paid(struct world *w);
/** Manual capture, the first attempt AUTHORIZED for WORLD_AMOUNT. */
void world_authorized(struct world *w);
/** "R01" and so on, as an id of the world's payment; static, four at a time. */
const char *world_id(const char *tail);
struct pay_money_action *world_action(struct world *w, const char *tail);
/** Begin an event about a capture or refund: its own number, its amount, attempt 1. */
struct pay_event *world_action_event(struct world *w, enum pay_event_type type, const char *tail);
void world_action_say(struct world *w, enum pay_event_type type, const char *tail,
                      enum pay_evidence evidence);
/** The event begun last answers that job: "R01.REFUND", sent as its first. */
void world_action_answers(struct world *w, const char *job, enum pay_query_by by,
                          int64_t asked_at_us);
/** The sender passed, or gave back, that job's gate. */
void world_action_pass(struct world *w, const char *job);
struct pay_gate *world_action_gate(struct world *w, const char *job);
/** CAPTURE or REQUEST_REFUND by the merchant, with a key of its own. */
void world_money_command(struct world *w, enum pay_command_type type, int64_t amount_minor);
/** Begin a command of an operator; a controlled one is complete but for what it is about. */
struct pay_command *world_operator_command(struct world *w, enum pay_command_type type,
                                           const char *caller);
/** APPROVE or DECLINE of the request begun with that cause. */
void world_word(struct world *w, enum pay_command_type type, const char *caller,
                const char *request_id);
/** @return due time of the row, -1: no row. */
int64_t world_row_of(const struct world *w, enum pay_deadline_kind kind, const char *id);
/** Go to the row's due time and decide it. */
void world_wait_for_id(struct world *w, enum pay_deadline_kind kind, const char *id);
/** The amounts of the attempt, in minor units: authorized, capture_reserved, captured ... */
void world_amounts(struct world *w, int attempt_no, const int64_t expected[6]);
#define assert_amounts(w, attempt_no, ...) \
    world_amounts(w, attempt_no, (const int64_t[6]){__VA_ARGS__})
#define assert_action(w, tail, expected) \
    assert_string_equal(pay_money_status_name(world_action(w, tail)->status), #expected)

/** Begin an event about the attempt: its number, PSP and account; amount for money events. */
struct pay_event *world_event(struct world *w, enum pay_event_type type, int attempt_no);
/** The event answers a job of ours: ".SUBMIT", ".QUERY.v1" ... */
void world_answers(struct world *w, const char *job_suffix, enum pay_query_by by,
                   int64_t asked_at_us);
/** Decide it, under a cause of its own. */
void world_decide(struct world *w, enum pay_evidence evidence);
/** world_event and world_decide. */
void world_say(struct world *w, enum pay_event_type type, int attempt_no,
               enum pay_evidence evidence);
/** Query answer by request number, asked now. */
void world_not_found(struct world *w, int attempt_no, int64_t asked_at_us);

struct pay_command *world_command(struct world *w, enum pay_command_type type);
void world_decide_command(struct world *w);
/** Decide w->input, keep the deadlines that it sets and clears, and check what holds after every
 * turn. */
void world_turn(struct world *w);
struct world_row *world_find_row(struct world *w, enum pay_deadline_kind kind,
                                 const char *aggregate_id);
/** A deadline as its row says. */
void world_due(struct world *w, enum pay_deadline_kind kind, int attempt_no);
void world_due_id(struct world *w, enum pay_deadline_kind kind, const char *id);
void world_order_due(struct world *w);
/** Go to the row's due time and decide it. */
void world_wait_for(struct world *w, enum pay_deadline_kind kind, int attempt_no);

/** The sender passed the gate: sending, one more send. */
void world_pass_gate(struct world *w, const char *job_suffix, int attempt_no);
struct pay_gate *world_gate(struct world *w, const char *job_suffix, int attempt_no);
struct pay_attempt *world_attempt(struct world *w, int attempt_no);
/** Put the attempt into a state as if it had come there; rows and order follow. */
void world_put(struct world *w, int attempt_no, enum pay_attempt_status status);

/** @return due time of the row, -1: no row. */
int64_t world_row_due(const struct world *w, enum pay_deadline_kind kind, int attempt_no);
int world_count_facts(const struct world *w, enum pay_fact_type type);
const struct pay_fact *world_fact(const struct world *w, enum pay_fact_type type);
int world_count_jobs(const struct world *w, enum pay_job_kind kind);
const struct pay_job_effect *world_job(const struct world *w, enum pay_job_kind kind);
/** @return the open case, NULL when there is none. */
const struct pay_case *world_case(const struct world *w, enum pay_case_kind kind);
void world_open_case(struct world *w, enum pay_case_kind kind);

#define assert_status(w, attempt_no, expected) \
    assert_string_equal(pay_attempt_status_name(world_attempt(w, attempt_no)->status), #expected)
#define assert_order(w, expected) \
    assert_string_equal(pay_order_status_name((w)->snap.order.status), #expected)
#define assert_verdict(w, expected, reason)                                 \
    do {                                                                    \
        assert_string_equal(pay_verdict_name((w)->out.verdict), #expected); \
        assert_string_equal((w)->out.reason_code, reason);                  \
    } while (0)

#endif /* PAY_TESTS_CORE_WORLD_H */

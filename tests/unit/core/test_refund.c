/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: refunds, sentence by sentence of the requirement: reservation, its one job through the
 * gate, settling and releasing, what the PSP's console does, sums, reversals. A test's name is the
 * sentence.
 */
#include <stdio.h>

#include "tests/unit/core/world.h"

static struct world world;

#define JOB "R01.REFUND"

static void refund(struct world *w, int64_t amount_minor)
{
    world_money_command(w, PAY_CMD_REQUEST_REFUND, amount_minor);
}

static void refund_sent(struct world *w, int64_t amount_minor)
{
    world_paid(w);
    refund(w, amount_minor);
    world_action_pass(w, JOB);
    world_action_say(w, PAY_EV_REFUND_SUBMITTED, "R01", PAY_EVIDENCE_LOCAL);
}

static void console_refund(struct world *w, enum pay_event_type type, const char *reference,
                           int64_t amount_minor, enum pay_evidence evidence)
{
    struct pay_event *event = world_event(w, type, 1);
    event->provider_action_id = pay_str_of(reference);
    event->has_amount = true;
    event->amount.amount_minor = amount_minor;
    world_decide(w, evidence);
}

static void sum_asked(struct world *w, int64_t amount_minor, int64_t asked_at_us)
{
    struct pay_event *event = world_event(w, PAY_EV_REFUND_SUM, 1);
    event->has_amount = true;
    event->amount.amount_minor = amount_minor;
    world_answers(w, ".QUERY.v1", PAY_QUERY_BY_PSP_REFERENCE, asked_at_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
}

/* A query's was asked after everything that is known. */
static void sum(struct world *w, int64_t amount_minor, enum pay_evidence evidence)
{
    if (evidence == PAY_EVIDENCE_QUERY) {
        sum_asked(w, amount_minor, w->now_us + 1);
    } else {
        console_refund(w, PAY_EV_REFUND_SUM, "", amount_minor, evidence);
    }
}

/* ---------------------------------------------------------------------------- reserve, send,
 * settle */

static void a_request_reserves_and_only_then_makes_its_job(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    refund(w, 4000);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_amounts(w, 1, 10000, 0, 10000, 4000, 0, 0);
    assert_action(w, "R01", CREATED);
    const struct pay_job_effect *job = world_job(w, PAY_JOB_REFUND);
    assert_string_equal(job->job_id, WORLD_PAYMENT "R01.REFUND");
    assert_int_equal(job->action_index, 0);
    assert_int_equal(job->try_no, 1);
    assert_string_equal(job->reason_code, "RETURNED");
    assert_int_equal(w->gates[w->snap.gate_count - 1].kind, PAY_JOB_REFUND);
    assert_int_equal(w->gates[w->snap.gate_count - 1].change, PAY_ROW_INSERTED);
    assert_string_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->result_id, world_id("R01"));
    assert_true(world_row_of(w, PAY_DEADLINE_RESERVATION, world_id("R01")) > w->now_us);
    assert_int_equal(w->snap.refund_day.added_minor, 4000);
    world_command(w, PAY_CMD_REQUEST_REFUND)->money =
        (struct pay_cmd_money){.amount = {1000, "EUR"}, .reason_code = PAY_STR("X")};
    world_decide_command(w);
    assert_string_equal(world_job(w, PAY_JOB_REFUND)->reason_code, "X");
}

/* Weeks after the order's end: a refund's window is its own. */
static void a_refund_does_not_end_with_the_order(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    w->now_us = w->snap.order.expires_at_us + 86400 * SECOND;
    refund(w, 4000);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(world_job(w, PAY_JOB_REFUND)->not_after_us, w->now_us + WORLD_SEND_WINDOW);
}

static void success_moves_the_reservation(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_event(w, PAY_EV_REFUND_SUCCEEDED, "R01")->provider_action_id = PAY_STR("re_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_action(w, "R01", SUCCEEDED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 4000, 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_REFUND_SUCCEEDED), 1);
    assert_int_equal(world_fact(w, PAY_FACT_REFUND_SUCCEEDED)->amount.amount_minor, 4000);
    assert_null(world_fact(w, PAY_FACT_REFUND_SUCCEEDED)->failure_code.ptr);
    assert_int_equal(world_fact(w, PAY_FACT_REFUND_SUCCEEDED)->totals.refunded, 4000);
    assert_string_equal(world_action(w, "R01")->provider_reference, "re_1");
    assert_true(world_action_gate(w, JOB)->closed_at_us != 0);
    assert_order(w, SUCCEEDED); /* A refund's success is not the payment's failure. */
    world_action_event(w, PAY_EV_REFUND_SUCCEEDED, "R01")->provider_action_id = PAY_STR("re_1");
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "STALE");
    assert_amounts(w, 1, 10000, 0, 10000, 0, 4000, 0);
    assert_int_equal(world_action(w, "R01")->result_certainty, PAY_EVIDENCE_QUERY);
}

static void failure_releases_it_and_unknown_keeps_it(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_say(w, PAY_EV_REFUND_UNKNOWN, "R01", PAY_EVIDENCE_LOCAL);
    assert_amounts(w, 1, 10000, 0, 10000, 4000, 0, 0);
    assert_true(world_row_of(w, PAY_DEADLINE_QUERY, world_id("R01")) > 0);
    world_wait_for_id(w, PAY_DEADLINE_QUERY, world_id("R01"));
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), 1);
    assert_string_equal(world_job(w, PAY_JOB_QUERY_REFUND)->about_job_id, world_id(JOB));
    world_action_event(w, PAY_EV_REFUND_FAILED, "R01")->failure_class = PAY_FAILURE_EXPIRED;
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_action(w, "R01", FAILED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    assert_int_equal(world_fact(w, PAY_FACT_REFUND_FAILED)->failure_class, PAY_FAILURE_EXPIRED);
    refund(w, 10000); /* What was released can be asked for again. */
    assert_verdict(w, APPLY, "ACCEPTED");
}

/* A1, A3: two of 70 on 100 at once: one is reserved, the other refused. */
static void two_of_70_on_100_are_one_and_a_refusal(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    refund(w, 7000);
    assert_verdict(w, APPLY, "ACCEPTED");
    refund(w, 7000);
    assert_verdict(w, REJECT, "EXCEEDS_REFUNDABLE");
    assert_amounts(w, 1, 10000, 0, 10000, 7000, 0, 0);
    refund(w, 3000);
    assert_verdict(w, APPLY, "ACCEPTED");
    refund(w, 1);
    assert_verdict(w, REJECT, "EXCEEDS_REFUNDABLE");
}

static const struct {
    int64_t amount_minor;
    const char *currency, *attempt_id, *reason;
} refusals[] = {
    {0, "EUR", NULL, "INVALID_AMOUNT"},         {-1, "EUR", NULL, "INVALID_AMOUNT"},
    {INT64_MIN, "EUR", NULL, "INVALID_AMOUNT"}, {INT64_MAX, "EUR", NULL, "EXCEEDS_REFUNDABLE"},
    {10001, "EUR", NULL, "EXCEEDS_REFUNDABLE"}, {1, "USD", NULL, "CURRENCY_MISMATCH"},
    {1, "", NULL, "CURRENCY_MISMATCH"},         {1, "EUR", "A02", "UNKNOWN_ATTEMPT"},
};

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct world *w = &world;

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        world_paid(w);
        struct pay_command *command = world_command(w, PAY_CMD_REQUEST_REFUND);
        command->money.amount.amount_minor = refusals[i].amount_minor;
        memcpy(command->money.amount.currency, refusals[i].currency,
               strlen(refusals[i].currency) + 1);
        command->money.attempt_id = refusals[i].attempt_id == NULL
                                        ? (struct pay_str){NULL, 0}
                                        : pay_str_of(world_id(refusals[i].attempt_id));
        world_decide_command(w);
        assert_verdict(w, REJECT, refusals[i].reason);
        assert_int_equal(w->snap.refund_count, 0);
        assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    }
    world_start(w);
    world_keep_actions(w);
    refund(w, 1);
    assert_verdict(w, REJECT, "NOT_PAID");
    w->snap.keeps_actions = false;
    refund(w, 1);
    assert_verdict(w, REJECT, "NOT_SUPPORTED");
}

static void the_hundredth_is_over_the_limit(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    w->snap.order.refund_count = PAY_REFUNDS_MAX;
    refund(w, 1);
    assert_verdict(w, REJECT, "LIMIT");
    console_refund(w, PAY_EV_REFUND_SUCCEEDED, "re_9", 1, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "LIMIT"); /* Never dropped. */
    assert_non_null(world_case(w, PAY_CASE_CONTRADICTION));
}

static void refund_with_key(struct world *w, const char *key, int64_t amount_minor)
{
    struct pay_command *command = world_command(w, PAY_CMD_REQUEST_REFUND);
    command->money =
        (struct pay_cmd_money){.amount = {amount_minor, "EUR"}, .idempotency_key = pay_str_of(key)};
    world_decide_command(w);
}

static void the_merchants_number_is_the_idempotency_key(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    refund_with_key(w, "return-77", 4000);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_string_equal(world_action(w, "R01")->idempotency_key, "return-77");
    refund_with_key(w, "return-77", 4000);
    assert_verdict(w, APPLY, "ALREADY_ACCEPTED");
    assert_string_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->result_id, world_id("R01"));
    assert_int_equal(world_count_jobs(w, PAY_JOB_REFUND), 0);
    refund_with_key(w, "return-77", 4001);
    assert_verdict(w, REJECT, "IDEMPOTENCY_CONFLICT");
    assert_int_equal(w->snap.refund_count, 1);
    struct pay_command *command = world_command(w, PAY_CMD_REQUEST_REFUND);
    command->money =
        (struct pay_cmd_money){.amount = {1, "EUR"}, .idempotency_key = PAY_STR("return-78")};
    w->input.key_taken = true; /* By another payment of the merchant. */
    world_decide_command(w);
    assert_verdict(w, REJECT, "IDEMPOTENCY_KEY_TAKEN");
}

/* An empty text names nothing: two wishes, of the attempt that was paid. */
static void an_empty_number_is_none(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    for (int i = 1; i <= 2; i++) {
        struct pay_command *command = world_command(w, PAY_CMD_REQUEST_REFUND);
        command->money = (struct pay_cmd_money){
            .amount = {4000, "EUR"}, .idempotency_key = PAY_STR(""), .attempt_id = PAY_STR("")};
        world_decide_command(w);
        assert_verdict(w, APPLY, "ACCEPTED");
        assert_int_equal(w->snap.refund_count, i);
    }
}

/* --------------------------------------------------------------------------- sent again, withdrawn
 */

static void not_sent_is_sent_again_under_the_next_job_id(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    refund(w, 4000);
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_verdict(w, APPLY, "SENT_AGAIN");
    assert_string_equal(world_job(w, PAY_JOB_REFUND)->job_id, world_id("R01.REFUND.2"));
    assert_int_equal(world_job(w, PAY_JOB_REFUND)->try_no, 1); /* The first was closed unsent. */
    assert_true(world_action_gate(w, JOB)->closed_at_us != 0);
    assert_int_equal(world_action_gate(w, JOB)->sending_at_us, 0);
    assert_amounts(w, 1, 10000, 0, 10000, 4000, 0, 0);
}

static void refund_for_days(struct world *w, int days)
{
    world_paid(w);
    w->routes[0].traits.action_life_us = INT64_C(86400) * days * SECOND;
    refund(w, 4000);
}

/* A gate of R01: the count of its jobs is in its name. */
static struct pay_gate *gate_no(struct world *w, int number)
{
    char job[32];
    (void)snprintf(job, sizeof job, number > 1 ? "R01.REFUND.%d" : "R01.REFUND", number);
    return world_action_gate(w, job);
}

/* The PSP is away for two days: each try is made later after the one before it, up to four hours.
 */
static void not_sent_again_and_again_is_sent_ever_more_seldom(void **state)
{
    (void)state;
    struct world *w = &world;
    int tries = 1;
    int64_t last_pause_us = 0;

    refund_for_days(w, 2);
    const int64_t end_us = world_action(w, "R01")->give_up_at_us;
    while (world_row_of(w, PAY_DEADLINE_SEND, world_id("R01")) < end_us) {
        const int64_t window_end_us = gate_no(w, tries)->not_after_us;
        world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
        if (world_count_jobs(w, PAY_JOB_REFUND) == 0) {
            assert_verdict(w, IGNORE, "NOT_DUE");
            assert_int_equal(gate_no(w, tries)->closed_at_us, 0); /* With the next, not before. */
            continue;
        }
        assert_verdict(w, APPLY, "SENT_AGAIN");
        assert_true(gate_no(w, tries)->closed_at_us != 0);
        tries++;
        assert_non_null(gate_no(w, tries));
        assert_true(w->now_us - window_end_us >= last_pause_us);
        last_pause_us = w->now_us - window_end_us;
    }
    assert_int_equal(last_pause_us, 14400 * SECOND);
    assert_in_range(tries, 12, 24);
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01")); /* At its end, whatever the pause. */
    assert_in_range(w->now_us, end_us, end_us + WORLD_CALL_BUDGET + 1);
    assert_action(w, "R01", CANCELED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
}

/* What the store left out counts as if it were there. */
static void what_was_left_out_of_the_gates_counts(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_for_days(w, 2);
    gate_no(w, 1)->past = (struct pay_gate_past){.made = 1100};
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_verdict(w, IGNORE, "NOT_DUE");
    assert_int_equal(world_row_of(w, PAY_DEADLINE_SEND, world_id("R01")),
                     gate_no(w, 1)->not_after_us + 14400 * SECOND);
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_string_equal(world_job(w, PAY_JOB_REFUND)->job_id, world_id("R01.REFUND.1102"));
    assert_int_equal(world_job(w, PAY_JOB_REFUND)->try_no, 1); /* None of them was sent. */

    refund_sent(w, 4000);
    gate_no(w, 1)->past = (struct pay_gate_past){.made = 8, .sent = 3, .sends = 4};
    world_action_event(w, PAY_EV_REFUND_NOT_SENT, "R01")->has_amount = false;
    gate_no(w, 1)->sending_at_us = 0; /* This one was given back; three others may have left. */
    world_decide(w, PAY_EVIDENCE_LOCAL);
    assert_verdict(w, IGNORE, "GATE_PASSED");
    world_action_event(w, PAY_EV_REFUND_FAILED, "R01");
    world_action_answers(w, JOB, PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, IGNORE, "OTHER_SEND_EXISTS");
    world_action_say(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_string_equal(world_job(w, PAY_JOB_REFUND)->job_id, world_id("R01.REFUND.10"));
    assert_int_equal(world_job(w, PAY_JOB_REFUND)->try_no, 4);
}

static void at_its_end_what_was_never_sent_is_withdrawn(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    refund(w, 4000);
    w->now_us = world_action(w, "R01")->give_up_at_us;
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_action(w, "R01", CANCELED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_REFUND_FAILED), 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_REFUND), 0);
}

static void not_sent_of_a_second_job_proves_nothing_of_the_first(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_say(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_string_equal(world_job(w, PAY_JOB_REFUND)->job_id, world_id("R01.REFUND.2"));
    world_action_event(w, PAY_EV_REFUND_NOT_SENT, "R01")->has_amount = false;
    world_action_answers(w, "R01.REFUND.2", PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_LOCAL);
    assert_verdict(w, IGNORE, "GATE_PASSED");
    assert_action(w, "R01", PROCESSING);
}

static void refused_for_now_stays_processing_and_is_repeated(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_event(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01");
    world_action_answers(w, JOB, PAY_QUERY_BY_NONE, 0);
    w->event.call.retry_after_s = 77;
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, APPLY, "RETRY_SAME_NUMBER");
    assert_action(w, "R01", PROCESSING);
    assert_amounts(w, 1, 10000, 0, 10000, 4000, 0, 0);
    assert_int_equal(world_row_of(w, PAY_DEADLINE_SEND, world_id("R01")), w->now_us + 77 * SECOND);
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_string_equal(world_job(w, PAY_JOB_REFUND)->job_id, world_id("R01.REFUND.2"));
    assert_int_equal(world_job(w, PAY_JOB_REFUND)->try_no, 2); /* A repeat for who reads it. */
    assert_true(world_action_gate(w, JOB)->closed_at_us != 0); /* In the same transaction. */
    world_action_event(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01");
    world_action_answers(w, JOB, PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, IGNORE, "STALE"); /* Of the job before: the next one is on its way. */
    w->now_us = world_action(w, "R01")->give_up_at_us - SECOND;
    world_action_say(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
    assert_int_equal(world_action(w, "R01")->retry_at_us, 0); /* Its end comes first. */
    assert_true(world_row_of(w, PAY_DEADLINE_ANSWER, world_id("R01")) > 0);
}

/* The PSP's Retry-After, else the method's pause, else that of a first query, else a second's. */
static void refused_for_now_is_repeated_after_a_pause(void **state)
{
    (void)state;
    static const int64_t pauses_us[][3] = {
        {20 * SECOND, WORLD_QUERY_FIRST, 20 * SECOND},
        {0, WORLD_QUERY_FIRST, WORLD_QUERY_FIRST},
        {0, 0, SECOND},
    };
    for (size_t i = 0; i < sizeof pauses_us / sizeof pauses_us[0]; i++) {
        struct world *w = &world;
        refund_sent(w, 4000);
        w->routes[0].traits.action_retry_us = pauses_us[i][0];
        w->routes[0].traits.query_first_us = pauses_us[i][1];
        world_action_say(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
        assert_int_equal(world_row_of(w, PAY_DEADLINE_SEND, world_id("R01")),
                         w->now_us + pauses_us[i][2]);
    }
}

/* A 429 with "Retry-After: 1", as often as it is asked: not once a second for three days. */
static void what_is_refused_again_and_again_is_repeated_ever_more_seldom(void **state)
{
    (void)state;
    struct world *w = &world;
    char job[32] = JOB;

    refund_sent(w, 4000);
    for (int tries = 1; tries <= 20; tries++) {
        const int64_t doubled_us = WORLD_QUERY_FIRST << (tries - 1);
        const int64_t pause_us = doubled_us < 14400 * SECOND ? doubled_us : 14400 * SECOND;
        world_action(w, "R01")->give_up_at_us = INT64_MAX;
        world_action_event(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01");
        world_action_answers(w, job, PAY_QUERY_BY_NONE, 0);
        w->event.call.retry_after_s = 1;
        world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
        assert_verdict(w, APPLY, "RETRY_SAME_NUMBER");
        assert_int_equal(world_action(w, "R01")->retry_at_us, w->now_us + pause_us);
        world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
        (void)snprintf(job, sizeof job, "R01.REFUND.%d", tries + 1);
        assert_string_equal(world_job(w, PAY_JOB_REFUND)->job_id, world_id(job));
        world_action_pass(w, job);
    }
}

/* "No, and nothing was made" of one send is no proof while another may be executed. */
static void a_definite_no_counts_only_of_the_only_send(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_gate(w, JOB)->sends = 2;
    world_action_event(w, PAY_EV_REFUND_FAILED, "R01");
    world_action_answers(w, JOB, PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, IGNORE, "OTHER_SEND_EXISTS");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), 1);
    world_action_gate(w, JOB)->sends = 1;
    world_action_event(w, PAY_EV_REFUND_FAILED, "R01");
    world_action_answers(w, JOB, PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_action(w, "R01", FAILED);
}

static void a_definite_no_of_the_refund_counts_however_often_it_was_sent(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000); /* By its name. */
    world_action_gate(w, JOB)->sends = 2;
    world_action_event(w, PAY_EV_REFUND_FAILED, "R01")->provider_action_id = PAY_STR("re_1");
    world_action_answers(w, JOB, PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_action(w, "R01", FAILED);

    refund_sent(w, 4000); /* The PSP was asked. */
    world_action_gate(w, JOB)->sends = 2;
    world_action_event(w, PAY_EV_REFUND_FAILED, "R01");
    world_action_answers(w, "R01.QUERY.v1", PAY_QUERY_BY_REQUEST_NUMBER, w->now_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_action(w, "R01", FAILED);
}

/* The sender gave the gate back: nothing had left. */
static void a_send_that_never_left_is_no_other_send(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    refund(w, 4000);
    world_action_pass(w, JOB);
    world_action_gate(w, JOB)->sending_at_us = 0;
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_verdict(w, APPLY, "SENT_AGAIN");
    world_action_pass(w, "R01.REFUND.2");
    world_action_event(w, PAY_EV_REFUND_FAILED, "R01");
    world_action_answers(w, "R01.REFUND.2", PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_action(w, "R01", FAILED);
}

static void not_found(struct world *w, int64_t asked_at_us, enum pay_query_by by)
{
    world_action_event(w, PAY_EV_REFUND_NOT_FOUND, "R01")->has_amount = false;
    world_action_answers(w, "R01.QUERY.v9", by, asked_at_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
}

static void not_found_releases_only_as_an_attempts_does(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    const int64_t from_us =
        world_action_gate(w, JOB)->not_after_us + WORLD_CALL_BUDGET + WORLD_LONGEST + WORLD_GRACE;
    not_found(w, from_us, PAY_QUERY_BY_REQUEST_NUMBER);
    assert_verdict(w, IGNORE, "ASKED_TOO_EARLY");
    not_found(w, from_us + 1, PAY_QUERY_BY_SEARCH);
    assert_verdict(w, IGNORE, "NOT_ASKED_BY_NUMBER");
    not_found(w, from_us + 1, PAY_QUERY_BY_REQUEST_NUMBER);
    assert_verdict(w, IGNORE, "NOT_FOUND_COUNTED");
    world_action_gate(w, JOB)->last_send_at_us = from_us; /* A replay starts the count again. */
    not_found(w, from_us + 2, PAY_QUERY_BY_REQUEST_NUMBER);
    assert_verdict(w, IGNORE, "ASKED_TOO_EARLY");
    /* One that the store left out too. */
    world_action_gate(w, JOB)->past.last_us = from_us + 500 * SECOND;
    not_found(w, from_us + 500 * SECOND, PAY_QUERY_BY_REQUEST_NUMBER);
    assert_verdict(w, IGNORE, "ASKED_TOO_EARLY");
    for (int i = 1; i <= 2; i++) {
        not_found(w, from_us + INT64_C(1000) * i * SECOND, PAY_QUERY_BY_REQUEST_NUMBER);
    }
    assert_verdict(w, APPLY, "PSP_NOT_FOUND");
    assert_int_equal(world_action(w, "R01")->query_count, 7);
    assert_action(w, "R01", FAILED);
    assert_true(world_action_gate(w, JOB)->closed_at_us != 0);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);

    refund_sent(w, 4000);
    world_action_event(w, PAY_EV_REFUND_PROCESSING, "R01")->provider_action_id = PAY_STR("re_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    not_found(w, w->now_us + 9000 * SECOND, PAY_QUERY_BY_REQUEST_NUMBER);
    assert_verdict(w, IGNORE, "NOT_FOUND_BUT_BOUND");
}

/* Refused for now it is not at the PSP: no surprise, and no end, as long as it is to be repeated.
 */
static void not_found_while_it_waits_to_be_repeated_counts_for_nothing(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_event(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01");
    world_action_answers(w, JOB, PAY_QUERY_BY_NONE, 0);
    w->event.call.retry_after_s = 500;
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    for (int i = 1; i <= 4; i++) {
        not_found(w, w->now_us + INT64_C(100) * i * SECOND, PAY_QUERY_BY_REQUEST_NUMBER);
        assert_verdict(w, IGNORE, "TO_BE_REPEATED");
    }
    assert_action(w, "R01", PROCESSING);
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_string_equal(world_job(w, PAY_JOB_REFUND)->job_id, world_id("R01.REFUND.2"));
    for (int i = 1; i <= 2; i++) {
        not_found(w, w->now_us + INT64_C(1000) * i * SECOND, PAY_QUERY_BY_REQUEST_NUMBER);
    }
    assert_action(w, "R01", FAILED);
}

/* Recovery was away: its time to be repeated has come, and its end too. */
static void what_is_due_after_its_end_is_not_repeated(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_say(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
    w->now_us = world_action(w, "R01")->give_up_at_us;
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_verdict(w, APPLY, "NOT_REPEATED");
    assert_int_equal(world_action(w, "R01")->retry_at_us, 0);
    assert_int_equal(world_action(w, "R01")->change, PAY_ROW_UPDATED);
    assert_int_equal(world_count_jobs(w, PAY_JOB_REFUND), 0);
    assert_int_equal(world_row_of(w, PAY_DEADLINE_SEND, world_id("R01")), -1);
    assert_true(world_row_of(w, PAY_DEADLINE_ANSWER, world_id("R01")) > 0);
    assert_true(world_action_gate(w, JOB)->closed_at_us != 0);        /* Nor replayed. */
    w->now_us = world_action(w, "R01")->give_up_at_us - 100 * SECOND; /* Read before, told now. */
    world_action_say(w, PAY_EV_REFUND_RETRY_SAME_NUMBER, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, IGNORE, "STALE");
    for (int i = 1; i <= 2; i++) {
        not_found(w, w->now_us + INT64_C(1000) * i * SECOND, PAY_QUERY_BY_REQUEST_NUMBER);
    }
    assert_action(w, "R01", FAILED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
}

static void sent_and_not_heard_of_is_unknown(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    refund(w, 4000);
    world_action_pass(w, JOB);
    world_wait_for_id(w, PAY_DEADLINE_SEND, world_id("R01"));
    assert_action(w, "R01", UNKNOWN);
    assert_int_equal(world_count_jobs(w, PAY_JOB_REFUND), 0);
    world_wait_for_id(w, PAY_DEADLINE_MANUAL, world_id("R01"));
    assert_non_null(world_case(w, PAY_CASE_UNKNOWN_TOO_LONG));
}

static void a_reservation_that_outlives_its_deadline_is_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_wait_for_id(w, PAY_DEADLINE_RESERVATION, world_id("R01"));
    assert_verdict(w, APPLY, "RESERVATION_OVERDUE");
    assert_non_null(world_case(w, PAY_CASE_RESERVATION_OVERDUE));
    assert_amounts(w, 1, 10000, 0, 10000, 4000, 0, 0);
    assert_true(world_row_of(w, PAY_DEADLINE_RESERVATION, world_id("R01")) > w->now_us);
}

/* ------------------------------------------------------------------------------- after success */

static void a_refund_that_fails_after_it_succeeded_comes_back(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    world_action_say(w, PAY_EV_REFUND_FAILED, "R01", PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "REVERSAL_TO_BE_CONFIRMED");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), 1);
    world_wait_for_id(w, PAY_DEADLINE_QUERY, world_id("R01")); /* Nobody has answered. */
    assert_verdict(w, IGNORE, "QUERY_DUE");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), 1);
    assert_true(world_row_of(w, PAY_DEADLINE_QUERY, world_id("R01")) > w->now_us);
    world_action_say(w, PAY_EV_REFUND_PROCESSING, "R01", PAY_EVIDENCE_QUERY);
    assert_true(world_row_of(w, PAY_DEADLINE_QUERY, world_id("R01")) > w->now_us);
    world_action_say(w, PAY_EV_REFUND_FAILED, "R01", PAY_EVIDENCE_QUERY);
    assert_action(w, "R01", REVERSED);
    assert_int_equal(world_row_of(w, PAY_DEADLINE_QUERY, world_id("R01")), -1);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_REFUND_REVERSED), 1);
    refund(w, 10000);
    assert_verdict(w, APPLY, "ACCEPTED");

    refund_sent(w, 4000); /* The callback was older than the success. */
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    world_action_say(w, PAY_EV_REFUND_FAILED, "R01", PAY_EVIDENCE_WEBHOOK);
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_QUERY);
    assert_action(w, "R01", SUCCEEDED);
    assert_int_equal(world_row_of(w, PAY_DEADLINE_QUERY, world_id("R01")), -1);

    refund_sent(w, 4000); /* Where the PSP has no query its callback is enough, an answer is not. */
    w->routes[0].traits.queries_refunds = false;
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    world_action_say(w, PAY_EV_REFUND_FAILED, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
    assert_action(w, "R01", SUCCEEDED);
    assert_int_equal(world_row_of(w, PAY_DEADLINE_QUERY, world_id("R01")), -1);
    world_action_say(w, PAY_EV_REFUND_REVERSED, "R01", PAY_EVIDENCE_WEBHOOK);
    assert_action(w, "R01", REVERSED);
}

/* Who knows better makes it more certain, and only by saying the same. */
static void what_is_said_again_by_who_knows_better_is_more_certain(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_say(w, PAY_EV_REFUND_FAILED, "R01", PAY_EVIDENCE_SYNC_RESPONSE);
    assert_int_equal(world_action(w, "R01")->result_certainty, PAY_EVIDENCE_SYNC_RESPONSE);
    world_action_say(w, PAY_EV_REFUND_FAILED, "R01", PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_action(w, "R01")->result_certainty, PAY_EVIDENCE_WEBHOOK);
    world_action_say(w, PAY_EV_REFUND_PROCESSING, "R01", PAY_EVIDENCE_QUERY);
    assert_int_equal(world_action(w, "R01")->result_certainty, PAY_EVIDENCE_WEBHOOK);

    refund_sent(w, 4000);
    w->routes[0].traits.queries_refunds = false;
    world_action_say(w, PAY_EV_REFUND_REVERSED, "R01", PAY_EVIDENCE_WEBHOOK);
    assert_action(w, "R01", REVERSED);
    world_action_say(w, PAY_EV_REFUND_PROCESSING, "R01", PAY_EVIDENCE_QUERY);
    assert_int_equal(world_action(w, "R01")->result_certainty, PAY_EVIDENCE_WEBHOOK);
    world_action_say(w, PAY_EV_REFUND_REVERSED, "R01", PAY_EVIDENCE_QUERY);
    assert_int_equal(world_action(w, "R01")->result_certainty, PAY_EVIDENCE_QUERY);
}

static void a_query_that_failed_is_counted(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_event(w, PAY_EV_QUERY_FAILED, "R01");
    world_action_answers(w, "R01.QUERY.v1", PAY_QUERY_BY_REQUEST_NUMBER, w->now_us);
    world_decide(w, PAY_EVIDENCE_LOCAL);
    assert_verdict(w, IGNORE, "QUERY_FAILED");
    assert_int_equal(world_action(w, "R01")->query_count, 1);
    assert_int_equal(world_action(w, "R01")->change, PAY_ROW_COUNTED);
    assert_int_equal(world_attempt(w, 1)->query_count, 0);
}

/* The first 20 or 29 bytes of it, or a job of a call that was not made. */
static void answers_part_of_a_job(struct world *w, int which)
{
    static const size_t lens[] = {20, PAY_ACTION_ID_SIZE - 1,
                                  sizeof WORLD_PAYMENT "R01.REFUND" - 1};
    w->event.call = (struct pay_call){
        .is_set = which < 2, .job_id = {world_id("R01.REFUND"), lens[which]}, .send_no = 1};
}

static void a_job_id_in_part_or_without_a_call_names_no_refund(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int which = 0; which < 3; which++) {
        refund_sent(w, 4000);
        world_action_event(w, PAY_EV_REFUND_PROCESSING, "R01");
        w->event.merchant_request_no = (struct pay_str){NULL, 0};
        w->event.action_id = (struct pay_str){NULL, 0};
        answers_part_of_a_job(w, which);
        world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
        assert_true(w->out.orphan);

        world_event(w, PAY_EV_QUERY_FAILED, 1);
        answers_part_of_a_job(w, which);
        world_decide(w, PAY_EVIDENCE_LOCAL);
        assert_verdict(w, IGNORE, "QUERY_FAILED");
        assert_int_equal(world_action(w, "R01")->query_count, 0);
        assert_int_equal(world_attempt(w, 1)->query_count, 1);
    }
}

static void a_reference_that_is_empty_names_no_refund(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000); /* The PSP's name of it is not known yet. */
    world_action_event(w, PAY_EV_REFUND_PROCESSING, "R01")->provider_action_id = PAY_STR("");
    w->event.merchant_request_no = (struct pay_str){NULL, 0};
    w->event.action_id = (struct pay_str){NULL, 0};
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_true(w->out.orphan);
}

static void late_success_is_booked_if_it_fits_else_blocks(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 7000);
    world_action_event(w, PAY_EV_REFUND_FAILED, "R01")->failure_class = PAY_FAILURE_EXPIRED;
    w->event.failure_code = PAY_STR("expired_card");
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_string_equal(world_action(w, "R01")->failure_code, "expired_card");
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, APPLY, "LATE_SUCCESS");
    assert_amounts(w, 1, 10000, 0, 10000, 0, 7000, 0);
    assert_int_equal(world_action(w, "R01")->failure_class, PAY_FAILURE_NONE);
    assert_string_equal(world_action(w, "R01")->failure_code, "");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), 1);

    refund_sent(w, 7000);
    world_action_say(w, PAY_EV_REFUND_FAILED, "R01", PAY_EVIDENCE_QUERY);
    refund(w, 7000);
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_QUERY);
    assert_verdict(w, NEEDS_RECONCILIATION, "OVER_REFUND");
    assert_non_null(world_case(w, PAY_CASE_OVER_REFUND));
    assert_amounts(w, 1, 10000, 0, 10000, 7000, 0, 0);
    refund(w, 1);
    assert_verdict(w, REJECT, "OVER_REFUND");

    refund_sent(w, 7000);
    world_action_say(w, PAY_EV_REFUND_FAILED, "R01", PAY_EVIDENCE_QUERY);
    refund(w, 7000);
    for (int i = 0; i < 2; i++) { /* The PSP is asked once, with the case. */
        world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
        assert_verdict(w, NEEDS_RECONCILIATION, "OVER_REFUND");
        assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), i == 0 ? 1 : 0);
    }
}

static void another_amount_or_object_is_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_event(w, PAY_EV_REFUND_SUCCEEDED, "R01")->amount.amount_minor = 3999;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "AMOUNT_MISMATCH");
    assert_non_null(world_case(w, PAY_CASE_AMOUNT_MISMATCH));
    world_action_event(w, PAY_EV_REFUND_SUCCEEDED, "R01")->has_amount = false;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "AMOUNT_MISSING");
    world_action_event(w, PAY_EV_REFUND_SUCCEEDED, "R01")->psp_account = PAY_STR("other");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "WRONG_ACCOUNT");
    world_action_event(w, PAY_EV_REFUND_PROCESSING, "R01")->provider_action_id = PAY_STR("re_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    world_action_event(w, PAY_EV_REFUND_SUCCEEDED, "R01")->provider_action_id = PAY_STR("re_2");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "UNEXPECTED_REFERENCE");
    assert_action(w, "R01", PROCESSING);
}

/* ---------------------------------------------------------------------------- made in the console
 */

/* D7, K9: known again by the PSP's name, not by the event. */
static void a_console_refund_becomes_one_of_origin_psp_once(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    console_refund(w, PAY_EV_REFUND_PROCESSING, "re_c", 4000, PAY_EVIDENCE_WEBHOOK);
    assert_action(w, "R01", PROCESSING);
    assert_amounts(w, 1, 10000, 0, 10000, 4000, 0, 0);
    assert_int_equal(world_action(w, "R01")->origin, PAY_ORIGIN_PSP);
    assert_string_equal(world_action(w, "R01")->idempotency_key, "psp0/account-0/re_c");
    for (int i = 0; i < 2; i++) {
        console_refund(w, PAY_EV_REFUND_SUCCEEDED, "re_c", 4000, PAY_EVIDENCE_WEBHOOK);
    }
    assert_int_equal(w->snap.refund_count, 1);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 4000, 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_REFUND), 0);
}

/* By the whole of its names, however long they are. */
static void each_console_refund_has_a_key_of_its_own(void **state)
{
    (void)state;
    struct world *w = &world;
    static char reference[PAY_REFERENCE_SIZE];

    world_paid(w);
    memset(reference, 'x', sizeof reference - 1);
    memset(w->attempts[0].psp, 'p', PAY_NAME_SIZE - 1);
    memset(w->attempts[0].psp_account, 'a', PAY_NAME_SIZE - 1);
    for (int last = 'y'; last <= 'z'; last++) {
        reference[PAY_REFERENCE_SIZE - 2] = (char)last;
        console_refund(w, PAY_EV_REFUND_SUCCEEDED, reference, 1000, PAY_EVIDENCE_WEBHOOK);
        assert_verdict(w, APPLY, "MADE_AT_PSP");
    }
    assert_string_not_equal(world_action(w, "R01")->idempotency_key,
                            world_action(w, "R02")->idempotency_key);
}

static void a_console_refund_that_does_not_fit_is_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    refund(w, 7000);
    console_refund(w, PAY_EV_REFUND_SUCCEEDED, "re_c", 7000, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "OVER_REFUND");
    assert_int_equal(w->snap.refund_count, 1);
    assert_non_null(world_case(w, PAY_CASE_OVER_REFUND));
}

static void a_console_refund_of_nothing_is_refused(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    console_refund(w, PAY_EV_REFUND_SUCCEEDED, "re_c", 0, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "AMOUNT_MISMATCH");
    assert_int_equal(w->snap.refund_count, 0);
}

static void a_refund_without_a_name_is_only_a_hint(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    console_refund(w, PAY_EV_REFUND_SUCCEEDED, "", 4000, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "NAMELESS");
    assert_amounts(w, 1, 10000, 0, 10000, 4000, 0, 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
}

/* ------------------------------------------------------------------------------ sums are no
 * refunds */

static void a_sum_asks_about_each_open_refund_and_waits(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    sum(w, 4000, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "SUM_TO_BE_CONFIRMED");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), 1);
    assert_true(world_row_due(w, PAY_DEADLINE_QUERY, 1) > w->now_us);
    sum(w, 6000, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "REFUNDS_OPEN");
    assert_int_equal(w->snap.refund_count, 1);
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_QUERY);
    assert_int_equal(w->snap.refund_count, 1); /* All are final: it is asked for anew. */
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    sum(w, 6000, PAY_EVIDENCE_QUERY);
    assert_int_equal(w->snap.refund_count, 2); /* The difference is one refund. */
    assert_action(w, "R02", SUCCEEDED);
    assert_int_equal(world_action(w, "R02")->amount.amount_minor, 2000);
    assert_string_equal(world_action(w, "R02")->idempotency_key, WORLD_PAYMENT "A01/6000");
    assert_amounts(w, 1, 10000, 0, 10000, 0, 6000, 0);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_QUERY, 1), -1);
}

/* 5000 in the console, and 4000 of ours behind the question: 5000 - 4000 is nobody's refund. */
static void a_sum_from_before_a_refund_of_ours_shows_nothing(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    sum(w, 5000, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "REFUNDS_OPEN");
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->snap.refund_count, 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    const int64_t learned_us = w->now_us;
    for (int before = 1; before >= 0; before--) { /* At the same time is no later either. */
        w->now_us += SECOND;
        sum_asked(w, 5000, learned_us - before);
        assert_verdict(w, IGNORE, "SUM_TO_BE_CONFIRMED");
        assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 0); /* In its time, not in a circle. */
        assert_int_equal(world_row_due(w, PAY_DEADLINE_QUERY, 1), w->now_us + WORLD_QUERY_FIRST);
    }
    sum_asked(w, 9000, w->now_us + 1);
    assert_verdict(w, APPLY, "REFUNDED_AT_PSP");
    assert_int_equal(world_action(w, "R02")->amount.amount_minor, 5000);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 9000, 0);
}

/* Where nothing can be asked the sums are all there is. */
static void without_queries_the_difference_is_made_when_all_are_final(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    w->routes[0].traits.queries_refunds = false;
    sum(w, 6000, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "REFUNDS_OPEN");
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_action(w, "R02")->amount.amount_minor, 2000);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 6000, 0);
}

static void a_sum_is_compared_with_all_refunds_that_were_made(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 3000);
    world_action_pass(w, "R02.REFUND");
    const int64_t asked_us = w->now_us + 1;
    w->now_us += 5 * SECOND;
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R02", PAY_EVIDENCE_WEBHOOK);
    sum(w, 7000, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "STALE");
    sum_asked(w, 7500, asked_us); /* After the first, before the second was known. */
    assert_verdict(w, IGNORE, "SUM_TO_BE_CONFIRMED");
    assert_int_equal(w->snap.refund_count, 2);
    sum(w, 7500, PAY_EVIDENCE_QUERY);
    assert_int_equal(w->snap.refund_count, 3);
    assert_int_equal(world_action(w, "R03")->amount.amount_minor, 500);
}

static void a_sum_waits_in_silence_for_the_refunds_that_are_open(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 3000);
    world_action_pass(w, "R02.REFUND");
    world_action_say(w, PAY_EV_REFUND_SUBMITTED, "R02", PAY_EVIDENCE_LOCAL);
    sum(w, 7500, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "REFUNDS_OPEN");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), 2);
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY_REFUND), 0); /* It has been asked about. */
    assert_int_equal(w->snap.refund_count, 2);
}

static void a_sum_of_nothing_is_stale(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    sum(w, 0, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "STALE");
    sum(w, -1, PAY_EVIDENCE_QUERY);
    assert_verdict(w, REJECT, "AMOUNT_MISMATCH");
}

static void a_smaller_sum_is_stale_and_a_reversal_does_not_make_it_news(void **state)
{
    (void)state;
    struct world *w = &world;

    refund_sent(w, 4000);
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_QUERY);
    sum(w, 4000, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "STALE");
    sum(w, 3999, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "STALE");
    world_action_say(w, PAY_EV_REFUND_REVERSED, "R01", PAY_EVIDENCE_QUERY);
    sum(w, 4000, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "STALE");
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    sum(w, 20000, PAY_EVIDENCE_QUERY);
    assert_verdict(w, NEEDS_RECONCILIATION, "OVER_REFUND");
}

static void what_a_sum_has_shown_is_not_made_again(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    sum(w, 7000, PAY_EVIDENCE_QUERY);
    assert_action(w, "R01", SUCCEEDED);
    console_refund(w, PAY_EV_REFUND_SUCCEEDED, "re_a", 3000, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "EXPLAINED_BY_SUM");
    console_refund(w, PAY_EV_REFUND_SUCCEEDED, "re_b", 7000, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "EXPLAINED_BY_SUM");
    assert_string_equal(world_action(w, "R01")->provider_reference, "re_b");
    assert_int_equal(world_action(w, "R01")->change, PAY_ROW_UPDATED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 7000, 0);
}

/* ----------------------------------------------------------------------------- where the money is
 */

/* A double charge: the second attempt holds money too. */
static void doubly_charged(struct world *w)
{
    world_start(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    assert_int_equal(w->snap.attempt_count, 2);
    world_put(w, 2, PAY_ATTEMPT_SUCCEEDED);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_non_null(world_case(w, PAY_CASE_DUPLICATE_CHARGE));
}

static void a_refund_goes_to_the_attempt_that_holds_the_money(void **state)
{
    (void)state;
    struct world *w = &world;

    doubly_charged(w);
    refund(w, 1000); /* None named: the one that made the order SUCCEEDED. */
    assert_int_equal(world_action(w, "R01")->attempt_index, 1);
    assert_int_equal(world_job(w, PAY_JOB_REFUND)->attempt_index, 1);
    struct pay_command *command = world_command(w, PAY_CMD_REQUEST_REFUND);
    command->money = (struct pay_cmd_money){.amount = {WORLD_AMOUNT, "EUR"},
                                            .attempt_id = pay_str_of(world_id("A01"))};
    world_decide_command(w);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(world_job(w, PAY_JOB_REFUND)->attempt_index, 0);
    assert_amounts(w, 1, 10000, 0, 10000, 10000, 0, 0);
    assert_amounts(w, 2, 10000, 0, 10000, 1000, 0, 0);
}

/* Rows from before it was written down which attempt paid the order. */
static void where_that_is_not_known_it_goes_to_the_live_or_only_success(void **state)
{
    (void)state;
    struct world *w = &world;

    doubly_charged(w);
    w->snap.order.paid_attempt_no = 0;
    refund(w, 1000);
    assert_int_equal(world_action(w, "R01")->attempt_index, 1);
    w->attempts[1].live = false;
    refund(w, 1000);
    assert_verdict(w, REJECT, "NOT_PAID"); /* It must be named. */

    for (int paid = 1; paid <= 2; paid++) {
        world_start(w);
        world_keep_actions(w);
        if (paid == 2) {
            world_put(w, 1, PAY_ATTEMPT_FAILED);
        }
        world_put(w, paid, PAY_ATTEMPT_SUCCEEDED);
        w->snap.order.paid_attempt_no = 0;
        world_attempt(w, paid)->live = false;
        refund(w, 1000);
        assert_verdict(w, APPLY, "ACCEPTED");
        assert_int_equal(world_action(w, "R01")->attempt_index, paid - 1);
    }
}

static void refund_of(struct world *w, const char *attempt_id, int64_t amount_minor)
{
    struct pay_command *command = world_command(w, PAY_CMD_REQUEST_REFUND);

    command->money = (struct pay_cmd_money){.amount = {amount_minor, "EUR"},
                                            .attempt_id = pay_str_of(world_id(attempt_id))};
    world_decide_command(w);
}

static void over_refund(struct world *w, int attempt_no, const char *reference)
{
    struct pay_event *event = world_event(w, PAY_EV_REFUND_SUCCEEDED, attempt_no);

    event->provider_action_id = pay_str_of(reference);
    event->has_amount = true;
    event->amount.amount_minor = WORLD_AMOUNT + 1;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "OVER_REFUND");
}

static void an_over_refund_blocks_its_attempt_only(void **state)
{
    (void)state;
    struct world *w = &world;

    doubly_charged(w);
    over_refund(w, 1, "re_1");
    refund_of(w, "A01", 1000);
    assert_verdict(w, REJECT, "OVER_REFUND");
    refund_of(w, "A02", 1000);
    assert_verdict(w, APPLY, "ACCEPTED");
    /* One case a kind: with the other attempt in it too it is the payment's, and blocks both. */
    over_refund(w, 2, "re_2");
    assert_string_equal(world_case(w, PAY_CASE_OVER_REFUND)->aggregate_id, WORLD_PAYMENT);
    assert_int_equal(world_case(w, PAY_CASE_OVER_REFUND)->change, PAY_ROW_UPDATED);
    refund_of(w, "A01", 1000);
    assert_verdict(w, REJECT, "OVER_REFUND");
    refund_of(w, "A02", 1000);
    assert_verdict(w, REJECT, "OVER_REFUND");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_reserves_and_only_then_makes_its_job),
        cmocka_unit_test(a_refund_does_not_end_with_the_order),
        cmocka_unit_test(success_moves_the_reservation),
        cmocka_unit_test(failure_releases_it_and_unknown_keeps_it),
        cmocka_unit_test(two_of_70_on_100_are_one_and_a_refusal),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(the_hundredth_is_over_the_limit),
        cmocka_unit_test(the_merchants_number_is_the_idempotency_key),
        cmocka_unit_test(an_empty_number_is_none),
        cmocka_unit_test(not_sent_is_sent_again_under_the_next_job_id),
        cmocka_unit_test(not_sent_again_and_again_is_sent_ever_more_seldom),
        cmocka_unit_test(what_was_left_out_of_the_gates_counts),
        cmocka_unit_test(at_its_end_what_was_never_sent_is_withdrawn),
        cmocka_unit_test(not_sent_of_a_second_job_proves_nothing_of_the_first),
        cmocka_unit_test(refused_for_now_stays_processing_and_is_repeated),
        cmocka_unit_test(refused_for_now_is_repeated_after_a_pause),
        cmocka_unit_test(what_is_refused_again_and_again_is_repeated_ever_more_seldom),
        cmocka_unit_test(a_definite_no_counts_only_of_the_only_send),
        cmocka_unit_test(a_definite_no_of_the_refund_counts_however_often_it_was_sent),
        cmocka_unit_test(a_send_that_never_left_is_no_other_send),
        cmocka_unit_test(not_found_releases_only_as_an_attempts_does),
        cmocka_unit_test(not_found_while_it_waits_to_be_repeated_counts_for_nothing),
        cmocka_unit_test(what_is_due_after_its_end_is_not_repeated),
        cmocka_unit_test(sent_and_not_heard_of_is_unknown),
        cmocka_unit_test(a_reservation_that_outlives_its_deadline_is_a_case),
        cmocka_unit_test(a_refund_that_fails_after_it_succeeded_comes_back),
        cmocka_unit_test(what_is_said_again_by_who_knows_better_is_more_certain),
        cmocka_unit_test(a_query_that_failed_is_counted),
        cmocka_unit_test(a_job_id_in_part_or_without_a_call_names_no_refund),
        cmocka_unit_test(a_reference_that_is_empty_names_no_refund),
        cmocka_unit_test(late_success_is_booked_if_it_fits_else_blocks),
        cmocka_unit_test(another_amount_or_object_is_a_case),
        cmocka_unit_test(a_console_refund_becomes_one_of_origin_psp_once),
        cmocka_unit_test(each_console_refund_has_a_key_of_its_own),
        cmocka_unit_test(a_console_refund_that_does_not_fit_is_a_case),
        cmocka_unit_test(a_console_refund_of_nothing_is_refused),
        cmocka_unit_test(a_refund_without_a_name_is_only_a_hint),
        cmocka_unit_test(a_sum_asks_about_each_open_refund_and_waits),
        cmocka_unit_test(a_sum_from_before_a_refund_of_ours_shows_nothing),
        cmocka_unit_test(without_queries_the_difference_is_made_when_all_are_final),
        cmocka_unit_test(a_sum_is_compared_with_all_refunds_that_were_made),
        cmocka_unit_test(a_sum_waits_in_silence_for_the_refunds_that_are_open),
        cmocka_unit_test(a_sum_of_nothing_is_stale),
        cmocka_unit_test(a_smaller_sum_is_stale_and_a_reversal_does_not_make_it_news),
        cmocka_unit_test(what_a_sum_has_shown_is_not_made_again),
        cmocka_unit_test(a_refund_goes_to_the_attempt_that_holds_the_money),
        cmocka_unit_test(where_that_is_not_known_it_goes_to_the_live_or_only_success),
        cmocka_unit_test(an_over_refund_blocks_its_attempt_only),
    };
    return cmocka_run_group_tests_name("refund", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: what people may decide, and that one of them alone may not: requests, approvals,
 * corrections, forced closes, cases, refunds beyond the thresholds. A test's name is the sentence.
 */
#include "tests/unit/core/world.h"

#include <stdio.h>

static struct world world;

/* Ask; @return the request's id, static. */
static const char *ask(struct world *w)
{
    static char request_id[PAY_CAUSE_SIZE];
    world_decide_command(w);
    (void)snprintf(request_id, sizeof request_id, "%s", w->cause);
    return request_id;
}

static struct pay_command *begin(struct world *w, enum pay_command_type type, const char *id,
                                 const char *from, const char *to)
{
    struct pay_command *command = world_operator_command(w, type, "ann");
    w->attempts[0].version +=
        w->attempts[0].change != PAY_ROW_SAME ? 1 : 0; /* As an operator sees */
    w->attempts[0].change = PAY_ROW_SAME;              /* the row: stored. */
    command->controlled.aggregate_id = pay_str_of(world_id(id));
    command->controlled.expected_version = w->attempts[0].version;
    command->controlled.from_status = pay_str_of(from);
    command->controlled.to_status = pay_str_of(to);
    return command;
}

static void approve_twice(struct world *w, const char *request_id)
{
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    assert_verdict(w, APPLY, "APPROVAL_COUNTED");
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
}

static const char *ask_to_close(struct world *w, const char *outcome)
{
    world_start(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", outcome);
    return ask(w);
}

/* -------------------------------------------------------------------------------------- two people
 */

static void nothing_happens_before_the_second_approval(void **state)
{
    (void)state;
    struct world *w = &world;
    const char *request_id = ask_to_close(w, "FAILED");

    assert_verdict(w, APPLY, "AWAITING_APPROVAL");
    assert_string_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->reason_code, "AWAITING_APPROVAL");
    assert_true(world_row_of(w, PAY_DEADLINE_APPROVAL, request_id) > 0);
    assert_status(w, 1, UNKNOWN);
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    assert_status(w, 1, UNKNOWN);
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
    assert_verdict(w, APPLY, "APPROVED");
    assert_status(w, 1, FAILED);
    assert_int_equal(world_attempt(w, 1)->result_certainty, PAY_EVIDENCE_CONTROLLED);
    assert_int_equal(world_count_facts(w, PAY_FACT_CORRECTION_APPLIED), 1);
    assert_int_equal(world_count_facts(w, PAY_FACT_ATTEMPT_FAILED), 1); /* What the fact implies. */
    assert_int_equal(world_fact(w, PAY_FACT_CORRECTION_APPLIED)->evidence, PAY_EVIDENCE_CONTROLLED);
    assert_true(world_gate(w, ".SUBMIT", 1)->closed_at_us != 0);
    world_word(w, PAY_CMD_APPROVE, "dan", request_id);
    assert_verdict(w, REJECT, "REQUEST_CLOSED");
}

/* "After a CONTROLLED decision never by itself." */
static void no_attempt_begins_by_itself_after_it(void **state)
{
    (void)state;
    struct world *w = &world;
    approve_twice(w, ask_to_close(w, "FAILED"));
    assert_int_equal(w->snap.attempt_count, 1);
    assert_int_equal(w->snap.order.failover_until_us, w->now_us);
    assert_string_equal(w->snap.order.reason_code, "AWAITING_METHOD");
    struct pay_command *command = world_command(w, PAY_CMD_START_ATTEMPT);
    command->route.psp = pay_str_of("psp1");
    w->input.routes = &w->offered[1];
    w->input.route_count = 1;
    world_decide_command(w);
    assert_verdict(w, APPLY, "ACCEPTED"); /* The merchant's word opens the window again. */
}

static void one_principal_counts_once_and_the_requester_never(void **state)
{
    (void)state;
    struct world *w = &world;
    const char *request_id = ask_to_close(w, "FAILED");

    world_word(w, PAY_CMD_APPROVE, "ann", request_id);
    assert_verdict(w, REJECT, "OWN_REQUEST");
    assert_true(w->out.security);
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    world_word(w, PAY_CMD_APPROVE, "bob", request_id); /* Another command id, maybe another key. */
    assert_verdict(w, REJECT, "ALREADY_COUNTED");
    world_word(w, PAY_CMD_DECLINE, "bob", request_id);
    assert_verdict(w, REJECT, "ALREADY_COUNTED");
    assert_status(w, 1, UNKNOWN);
    assert_int_equal(w->snap.approval_count, 1);
}

/* Of each request: a word on another one is no word on this. */
static void a_word_counts_for_its_request_only(void **state)
{
    (void)state;
    struct world *w = &world;
    char first[PAY_CAUSE_SIZE];

    (void)snprintf(first, sizeof first, "%s", ask_to_close(w, "FAILED"));
    begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", "SUCCEEDED");
    const char *second = ask(w);
    world_word(w, PAY_CMD_APPROVE, "bob", first);
    world_word(w, PAY_CMD_APPROVE, "cat", second);
    assert_verdict(w, APPLY, "APPROVAL_COUNTED");
    assert_status(w, 1, UNKNOWN);
    world_word(w, PAY_CMD_APPROVE, "cat", second);
    assert_verdict(w, REJECT, "ALREADY_COUNTED");
    world_word(w, PAY_CMD_APPROVE, "bob", second);
    assert_status(w, 1, SUCCEEDED);
}

static void an_approval_names_the_bytes_that_it_approves(void **state)
{
    (void)state;
    struct world *w = &world;
    static const uint8_t other[32] = {1};
    const char *request_id = ask_to_close(w, "FAILED");
    const struct pay_bytes wrong[] = {{other, 32}, {NULL, 0}, {w->requests[0].sha256, 31}};

    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct pay_command *command = world_operator_command(w, PAY_CMD_APPROVE, "cat");
        command->approval.request_id = pay_str_of(request_id);
        command->approval.request_sha256 = wrong[i];
        world_decide_command(w);
        assert_verdict(w, REJECT, "DIGEST_MISMATCH");
        assert_true(w->out.security);
    }
    world_word(w, PAY_CMD_APPROVE, "cat", "ann/c999");
    assert_verdict(w, REJECT, "UNKNOWN_REQUEST");
    assert_status(w, 1, UNKNOWN);
}

static void only_an_operator_asks_and_approves(void **state)
{
    (void)state;
    struct world *w = &world;
    const char *request_id = ask_to_close(w, "FAILED");
    static const enum pay_command_type types[] = {
        PAY_CMD_FORCE_CLOSE_UNKNOWN,
        PAY_CMD_CORRECT_STATE,
        PAY_CMD_RELEASE_RESERVATION,
        PAY_CMD_OVERRIDE_BLOCK,
        PAY_CMD_RESOLVE_CASE,
        PAY_CMD_APPROVE,
        PAY_CMD_DECLINE,
    };

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct pay_command *command = world_operator_command(w, types[i], "shop");
        command->approval.request_id = pay_str_of(request_id);
        w->input.source = PAY_SOURCE_MERCHANT;
        world_decide_command(w);
        assert_verdict(w, REJECT, "NOT_ALLOWED");
        assert_true(w->out.security);
    }
    assert_int_equal(w->snap.request_count, 1);
}

static void a_request_is_stale_once_its_row_has_changed(void **state)
{
    (void)state;
    struct world *w = &world;
    const char *request_id = ask_to_close(w, "FAILED");

    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    w->attempts[0].version++;
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
    assert_verdict(w, REJECT, "STALE_REQUEST");
    assert_int_equal(w->requests[0].status, PAY_REQUEST_STALE);
    assert_status(w, 1, UNKNOWN);
    assert_int_equal(w->attempts[0].change, PAY_ROW_SAME);
    begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", "FAILED")->controlled.expected_version--;
    world_decide_command(w);
    assert_verdict(w, REJECT, "STALE_REQUEST"); /* Already when it is asked for. */
}

/* As the store does. */
static void store_row(enum pay_row_change *change, int64_t *version)
{
    *version += *change >= PAY_ROW_UPDATED ? 1 : 0;
    *change = PAY_ROW_SAME;
}

/* A PSP that is silent for ever is asked for ever: between two people's words nothing else comes.
 */
static void a_query_that_brought_nothing_leaves_a_request_alive(void **state)
{
    (void)state;
    struct world *w = &world;
    const char *request_id = ask_to_close(w, "FAILED");

    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    world_say(w, PAY_EV_QUERY_FAILED, 1, PAY_EVIDENCE_QUERY);
    assert_int_equal(w->attempts[0].change, PAY_ROW_COUNTED);
    store_row(&w->attempts[0].change, &w->attempts[0].version);
    world_not_found(w, 1, w->now_us);
    store_row(&w->attempts[0].change, &w->attempts[0].version);
    assert_int_equal(w->attempts[0].query_count, 2);
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
    assert_verdict(w, APPLY, "APPROVED");
    assert_status(w, 1, FAILED);

    request_id = ask_to_close(w, "FAILED");
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_WEBHOOK); /* It is not silent. */
    store_row(&w->attempts[0].change, &w->attempts[0].version);
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
    assert_verdict(w, REJECT, "STALE_REQUEST");
}

static void the_same_holds_for_a_refund(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 7000);
    world_action_pass(w, "R01.REFUND");
    world_action_say(w, PAY_EV_REFUND_UNKNOWN, "R01", PAY_EVIDENCE_LOCAL);
    assert_action(w, "R01", UNKNOWN);
    store_row(&w->refunds[0].change, &w->refunds[0].version);
    struct pay_command *command = world_operator_command(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "ann");
    command->controlled.aggregate_id = pay_str_of(world_id("R01"));
    command->controlled.expected_version = w->refunds[0].version;
    command->controlled.to_status = PAY_STR("FAILED");
    const char *request_id = ask(w);
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    world_action_event(w, PAY_EV_QUERY_FAILED, "R01");
    world_action_answers(w, "R01.QUERY.v1", PAY_QUERY_BY_REQUEST_NUMBER, w->now_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "QUERY_FAILED");
    assert_int_equal(w->refunds[0].query_count, 1);
    store_row(&w->refunds[0].change, &w->refunds[0].version);
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
    assert_verdict(w, APPLY, "APPROVED");
    assert_action(w, "R01", FAILED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
}

static void declined_or_expired_it_is_over(void **state)
{
    (void)state;
    struct world *w = &world;
    const char *request_id = ask_to_close(w, "FAILED");

    world_word(w, PAY_CMD_DECLINE, "bob", request_id);
    assert_verdict(w, APPLY, "DECLINED");
    assert_int_equal(w->requests[0].status, PAY_REQUEST_DECLINED);
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
    assert_verdict(w, REJECT, "REQUEST_CLOSED");

    (void)ask_to_close(w, "FAILED");
    w->policy.approval_life_us = 100 * SECOND;
    begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", "FAILED");
    request_id = ask(w);
    assert_int_equal(w->requests[1].expires_at_us, w->now_us + 100 * SECOND);
    w->now_us += 100 * SECOND;
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
    assert_verdict(w, REJECT, "REQUEST_EXPIRED");
    world_wait_for_id(w, PAY_DEADLINE_APPROVAL, request_id);
    assert_int_equal(w->requests[1].status, PAY_REQUEST_EXPIRED);
    assert_status(w, 1, UNKNOWN);
}

static void spoil_reason(struct pay_command *command)
{
    command->controlled.reason_code = PAY_STR("BECAUSE");
}
static void spoil_attachments(struct pay_command *command)
{
    command->controlled.attachment_count = 0;
}
static void spoil_digest(struct pay_command *command)
{
    command->controlled.attachments[0].sha256.len = 31;
}
static void spoil_id(struct pay_command *command)
{
    command->controlled.aggregate_id = PAY_STR("A99");
}
static void spoil_order(struct pay_command *command)
{
    command->controlled.aggregate_id = PAY_STR(WORLD_PAYMENT);
}
static void spoil_outcome(struct pay_command *command)
{
    command->controlled.to_status = PAY_STR("CANCELED");
}
static void spoil_length(struct pay_command *command)
{
    static char text[300];
    memset(text, 'x', sizeof text - 1);
    command->controlled.provider_reference = pay_str_of(text);
}

static const struct {
    void (*spoil)(struct pay_command *command);
    const char *reason;
} spoils[] = {
    {spoil_reason, "INVALID_REASON"},     {spoil_attachments, "ATTACHMENT_MISSING"},
    {spoil_digest, "ATTACHMENT_MISSING"}, {spoil_id, "UNKNOWN_AGGREGATE"},
    {spoil_order, "UNKNOWN_AGGREGATE"},   {spoil_outcome, "INVALID_STATUS"},
    {spoil_length, "INVALID_COMMAND"},
};

static void a_request_that_could_not_be_carried_out_is_refused(void **state)
{
    (void)state;
    struct world *w = &world;

    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        (void)ask_to_close(w, "FAILED");
        spoils[i].spoil(begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", "FAILED"));
        world_decide_command(w);
        assert_verdict(w, REJECT, spoils[i].reason);
        assert_int_equal(w->snap.request_count, 1);
    }
    (void)ask_to_close(w, "FAILED");
    for (int i = 2; i <= PAY_REQUESTS_PENDING_MAX; i++) {
        begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", "FAILED");
        world_decide_command(w);
        assert_verdict(w, APPLY, "AWAITING_APPROVAL");
    }
    begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", "FAILED");
    world_decide_command(w);
    assert_verdict(w, REJECT, "LIMIT");
    /* One that does not wait any more leaves its place to another. */
    world_word(w, PAY_CMD_DECLINE, "bob", w->requests[1].request_id);
    begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", "FAILED");
    world_decide_command(w);
    assert_verdict(w, APPLY, "AWAITING_APPROVAL");
}

/* --------------------------------------------------------------------------------- forced closes
 */

static void an_unknown_attempt_is_closed_as_paid_for_its_amount(void **state)
{
    (void)state;
    struct world *w = &world;
    approve_twice(w, ask_to_close(w, "SUCCEEDED"));
    assert_status(w, 1, SUCCEEDED);
    assert_order(w, SUCCEEDED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED), 1);
}

static void only_what_is_unknown_is_forced(void **state)
{
    (void)state;
    struct world *w = &world;
    world_paid(w);
    begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", "FAILED");
    world_decide_command(w);
    assert_verdict(w, REJECT, "NOT_UNKNOWN");
    world_start_manual(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    begin(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "A01", "", "SUCCEEDED");
    world_decide_command(w);
    assert_verdict(w, REJECT, "AMOUNT_NEEDED");
}

static void unknown_refund(struct world *w)
{
    world_paid(w);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 4000);
    world_action_pass(w, "R01.REFUND");
    world_action_say(w, PAY_EV_REFUND_UNKNOWN, "R01", PAY_EVIDENCE_LOCAL);
}

static const char *ask_about_refund(struct world *w, enum pay_command_type type, const char *from,
                                    const char *to)
{
    struct pay_command *command = begin(w, type, "R01", from, to);
    w->refunds[0].version += w->refunds[0].change != PAY_ROW_SAME ? 1 : 0;
    w->refunds[0].change = PAY_ROW_SAME;
    command->controlled.expected_version = w->refunds[0].version;
    return ask(w);
}

static void an_unknown_refund_is_closed_either_way(void **state)
{
    (void)state;
    struct world *w = &world;

    unknown_refund(w);
    approve_twice(w, ask_about_refund(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "", "SUCCEEDED"));
    assert_action(w, "R01", SUCCEEDED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 4000, 0);
    unknown_refund(w);
    approve_twice(w, ask_about_refund(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "", "FAILED"));
    assert_action(w, "R01", FAILED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    unknown_refund(w);
    approve_twice(w, ask_about_refund(w, PAY_CMD_RELEASE_RESERVATION, "", ""));
    assert_action(w, "R01", FAILED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    assert_true(world_action_gate(w, "R01.REFUND")->closed_at_us != 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_CORRECTION_APPLIED), 1);
    (void)ask_about_refund(w, PAY_CMD_RELEASE_RESERVATION, "", "");
    assert_verdict(w, REJECT, "NO_RESERVATION");
}

/* ----------------------------------------------------------------------------------- corrections
 */

/* A13: what was really received is booked with that amount. */
static void what_was_received_is_booked_with_that_amount(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_PROCESSING);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->amount.amount_minor = 9900;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "AMOUNT_MISMATCH");
    struct pay_command *command = begin(w, PAY_CMD_CORRECT_STATE, "A01", "PROCESSING", "SUCCEEDED");
    command->controlled.has_amount = true;
    command->controlled.amount = (struct pay_money){0, "EUR"};
    world_decide_command(w);
    assert_verdict(w, REJECT, "INVALID_AMOUNT");
    command = begin(w, PAY_CMD_CORRECT_STATE, "A01", "PROCESSING", "SUCCEEDED");
    command->controlled.has_amount = true;
    command->controlled.amount = (struct pay_money){9900, "EUR"};
    approve_twice(w, ask(w));
    assert_status(w, 1, SUCCEEDED);
    assert_order(w, SUCCEEDED);
    assert_amounts(w, 1, 9900, 0, 9900, 0, 0, 0);
    assert_int_equal(world_fact(w, PAY_FACT_CORRECTION_APPLIED)->amount.amount_minor, 9900);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 9900); /* Every unit can be refunded. */
    assert_verdict(w, APPLY, "ACCEPTED");
}

static void a_success_is_taken_back_only_while_no_money_has_moved(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    begin(w, PAY_CMD_CORRECT_STATE, "A01", "SUCCEEDED", "FAILED");
    approve_twice(w, ask(w));
    assert_status(w, 1, FAILED);
    assert_false(world_attempt(w, 1)->live);
    assert_order(w, SUCCEEDED); /* It is corrected by its own request. */
    assert_amounts(w, 1, 0, 0, 0, 0, 0, 0);
    struct pay_command *command = begin(w, PAY_CMD_CORRECT_STATE, "", "SUCCEEDED", "FAILED");
    command->controlled.expected_version = -1;
    approve_twice(w, ask(w));
    assert_order(w, FAILED);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_FAILED), 1);

    world_paid(w);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 1);
    begin(w, PAY_CMD_CORRECT_STATE, "A01", "SUCCEEDED", "CANCELED");
    world_decide_command(w);
    assert_verdict(w, REJECT, "MONEY_MOVED");
}

static void an_order_is_corrected_only_to_what_its_attempts_allow(void **state)
{
    (void)state;
    struct world *w = &world;
    static const struct {
        const char *from, *to, *reason;
    } rows[] = {
        {"PROCESSING", "SUCCEEDED", "NO_MONEY"},
        {"PROCESSING", "FAILED", "ATTEMPT_LIVE"},
        {"PROCESSING", "PROCESSING", "INVALID_STATUS"},
        {"EXPIRED", "FAILED", "STALE_REQUEST"},
        {"PROCESSING", "NONSENSE", "INVALID_STATUS"},
        {"PROCESSING", "AUTHORIZED", "INVALID_STATUS"},
    };

    world_start(w);
    world_keep_actions(w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(w, PAY_CMD_CORRECT_STATE, "", rows[i].from, rows[i].to);
        world_decide_command(w);
        assert_verdict(w, REJECT, rows[i].reason);
    }
}

/* Late money on an expired order, whichever attempt has it. */
static void a_paid_order_is_corrected_to_succeeded(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int paid = 1; paid <= 2; paid++) {
        world_start(w);
        world_keep_actions(w);
        world_put(w, 1, PAY_ATTEMPT_FAILED);
        world_put(w, 2, PAY_ATTEMPT_FAILED);
        world_put(w, 3, PAY_ATTEMPT_FAILED);
        w->now_us = w->snap.order.expires_at_us;
        world_order_due(w);
        world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, paid, PAY_EVIDENCE_WEBHOOK);
        assert_order(w, EXPIRED);
        begin(w, PAY_CMD_CORRECT_STATE, "", "EXPIRED", "SUCCEEDED")->controlled.expected_version =
            -1;
        approve_twice(w, ask(w));
        assert_order(w, SUCCEEDED);
        world_money_command(w, PAY_CMD_REQUEST_REFUND, WORLD_AMOUNT);
        assert_verdict(w, APPLY, "ACCEPTED");
        assert_int_equal(world_action(w, "R01")->attempt_index, paid - 1);
    }
}

static void an_attempt_is_not_corrected_under_a_capture(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    world_money_command(w, PAY_CMD_CAPTURE, 1);
    begin(w, PAY_CMD_CORRECT_STATE, "A01", "AUTHORIZED", "FAILED");
    world_decide_command(w);
    assert_verdict(w, REJECT, "CAPTURE_IN_FLIGHT");
}

/* What was captured is still recorded: its money comes back, it does not have to fit again. */
static void a_reversal_of_a_capture_is_taken_back(void **state)
{
    (void)state;
    struct world *w = &world;

    world_authorized(w);
    world_money_command(w, PAY_CMD_CAPTURE, WORLD_AMOUNT);
    world_action_say(w, PAY_EV_CAPTURE_SUCCEEDED, "C01", PAY_EVIDENCE_WEBHOOK);
    world_action_say(w, PAY_EV_CAPTURE_REVERSED, "C01", PAY_EVIDENCE_QUERY);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 10000);
    struct pay_command *command = begin(w, PAY_CMD_CORRECT_STATE, "C01", "REVERSED", "SUCCEEDED");
    store_row(&w->captures[0].change, &w->captures[0].version);
    command->controlled.expected_version = w->captures[0].version;
    approve_twice(w, ask(w));
    assert_action(w, "C01", SUCCEEDED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
}

static void each_dispute_is_corrected_by_its_own_number(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    for (int i = 0; i < 2; i++) {
        world_event(w, PAY_EV_DISPUTE_OPENED, 1)->provider_action_id =
            pay_str_of(i == 0 ? "dp_1" : "dp_2");
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
    }
    struct pay_command *command = begin(w, PAY_CMD_CORRECT_STATE, "D02", "OPENED", "WON");
    store_row(&w->disputes[1].change, &w->disputes[1].version);
    command->controlled.expected_version = w->disputes[1].version;
    approve_twice(w, ask(w));
    assert_int_equal(w->disputes[0].status, PAY_DISPUTE_OPENED);
    assert_int_equal(w->disputes[1].status, PAY_DISPUTE_WON);
}

/* What a decision brings with it has its own rows: it was approved all the same. */
static void an_approval_is_applied_whatever_follows_from_it(void **state)
{
    (void)state;
    struct world *w = &world;

    unknown_refund(w);
    w->routes[0].traits.queries_refunds = false;
    struct pay_event *event = world_event(w, PAY_EV_REFUND_SUM, 1);
    event->has_amount = true;
    event->amount.amount_minor = 2 * WORLD_AMOUNT;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "REFUNDS_OPEN");
    approve_twice(w, ask_about_refund(w, PAY_CMD_FORCE_CLOSE_UNKNOWN, "", "FAILED"));
    assert_verdict(w, APPLY, "APPROVED");
    assert_non_null(world_case(w, PAY_CASE_OVER_REFUND));
    int ends = 0;
    for (size_t i = 0; i < w->out.history_count; i++) {
        if (w->out.history[i].aggregate == PAY_AGGREGATE_APPROVAL) {
            assert_int_equal(w->out.history[i].verdict, PAY_VERDICT_APPLY);
            ends++;
        }
    }
    assert_int_equal(ends, 1);
}

static void a_refunds_state_is_corrected_within_the_amounts(void **state)
{
    (void)state;
    struct world *w = &world;

    unknown_refund(w);
    approve_twice(w, ask_about_refund(w, PAY_CMD_CORRECT_STATE, "UNKNOWN", "SUCCEEDED"));
    approve_twice(w, ask_about_refund(w, PAY_CMD_CORRECT_STATE, "SUCCEEDED", "REVERSED"));
    assert_action(w, "R01", REVERSED);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 8000);
    (void)ask_about_refund(w, PAY_CMD_CORRECT_STATE, "REVERSED", "SUCCEEDED");
    assert_verdict(w, REJECT, "DOES_NOT_FIT");
    (void)ask_about_refund(w, PAY_CMD_CORRECT_STATE, "REVERSED", "FAILED");
    assert_verdict(w, REJECT, "INVALID_STATUS");
}

static void overridden_an_attempt_blocks_no_more_and_sends_nothing(void **state)
{
    (void)state;
    struct world *w = &world;

    (void)ask_to_close(w, "FAILED");
    begin(w, PAY_CMD_OVERRIDE_BLOCK, "A01", "", "");
    approve_twice(w, ask(w));
    assert_status(w, 1, UNKNOWN);
    assert_false(world_attempt(w, 1)->live);
    assert_true(world_gate(w, ".SUBMIT", 1)->closed_at_us != 0);
    assert_int_equal(w->snap.attempt_count, 1); /* Never by itself. */
    struct pay_command *command = world_command(w, PAY_CMD_START_ATTEMPT);
    command->route.psp = pay_str_of("psp1");
    w->input.routes = &w->offered[1];
    w->input.route_count = 1;
    world_decide_command(w);
    assert_int_equal(w->snap.attempt_count, 2);
    begin(w, PAY_CMD_OVERRIDE_BLOCK, "A01", "", "");
    world_decide_command(w);
    assert_verdict(w, REJECT, "NOT_BLOCKING");
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK); /* It was paid after all. */
    assert_order(w, SUCCEEDED);
    assert_int_equal(w->snap.order.paid_attempt_no, 1);
    assert_false(world_attempt(w, 1)->live);
}

static void overridden_what_was_asked_for_beside_it_is_done(void **state)
{
    (void)state;
    struct world *w = &world;

    (void)ask_to_close(w, "FAILED");
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    begin(w, PAY_CMD_OVERRIDE_BLOCK, "A01", "", "");
    approve_twice(w, ask(w));
    assert_order(w, CANCELED);
}

static void overridden_at_its_end_an_order_expires(void **state)
{
    (void)state;
    struct world *w = &world;

    (void)ask_to_close(w, "FAILED");
    w->snap.order.expires_at_us = w->now_us; /* Its row has not come yet. */
    begin(w, PAY_CMD_OVERRIDE_BLOCK, "A01", "", "");
    approve_twice(w, ask(w));
    assert_order(w, EXPIRED);
}

/* ----------------------------------------------------------------------------------------- cases
 */

static const char *case_command(struct world *w, const char *case_id, int64_t version)
{
    struct pay_command *command = world_operator_command(w, PAY_CMD_RESOLVE_CASE, "ann");
    command->controlled.aggregate_id = pay_str_of(case_id);
    command->controlled.expected_version = version;
    return ask(w);
}

static void a_money_case_needs_two_people_another_one(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_QUERY);
    const struct pay_case *money = world_case(w, PAY_CASE_CONTRADICTION);
    assert_non_null(money);
    const char *request_id = case_command(w, money->case_id, money->version + 1);
    assert_verdict(w, APPLY, "AWAITING_APPROVAL");
    assert_true(money->open);
    approve_twice(w, request_id);
    assert_false(money->open);
    assert_string_equal(money->resolved_by, "ann");
    assert_string_equal(money->resolution_code, "CONFIRMED_BY_PSP");
    assert_int_equal(world_count_facts(w, PAY_FACT_MANUAL_REVIEW_RESOLVED), 1);
    (void)case_command(w, money->case_id, money->version + 1);
    assert_verdict(w, REJECT, "CASE_CLOSED");

    unknown_refund(w);
    world_wait_for_id(w, PAY_DEADLINE_MANUAL, world_id("R01"));
    const struct pay_case *other = world_case(w, PAY_CASE_UNKNOWN_TOO_LONG);
    (void)case_command(w, other->case_id, other->version + 7);
    assert_verdict(w, REJECT, "STALE_REQUEST");
    (void)case_command(w, other->case_id, other->version);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_false(other->open);
    (void)case_command(w, "no such case", 1);
    assert_verdict(w, REJECT, "UNKNOWN_CASE");
}

/* Evidence that came after it was asked for raises the case's version. */
static void a_resolution_that_was_approved_before_new_evidence_is_stale(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_QUERY);
    const struct pay_case *money = world_case(w, PAY_CASE_CONTRADICTION);
    const char *request_id = case_command(w, money->case_id, money->version + 1);
    world_word(w, PAY_CMD_APPROVE, "bob", request_id);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_QUERY);
    world_word(w, PAY_CMD_APPROVE, "cat", request_id);
    assert_verdict(w, REJECT, "STALE_REQUEST");
    assert_true(money->open);
}

/* ------------------------------------------------------------------------------ refunds,
 * thresholds */

static const char *refund(struct world *w, int64_t amount_minor)
{
    static char request_id[PAY_CAUSE_SIZE];
    world_money_command(w, PAY_CMD_REQUEST_REFUND, amount_minor);
    (void)snprintf(request_id, sizeof request_id, "%s", w->cause);
    return request_id;
}

static void beyond_the_threshold_a_refund_is_reserved_and_waits(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    w->policy.refund_threshold_minor = 5000;
    const char *request_id = refund(w, 5001);
    assert_verdict(w, APPLY, "AWAITING_APPROVAL");
    assert_action(w, "R01", CREATED);
    assert_amounts(w, 1, 10000, 0, 10000, 5001, 0, 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_REFUND), 0);
    assert_null(world_action_gate(w, "R01.REFUND"));
    assert_int_equal(w->snap.refund_day.added_minor, 0);
    assert_string_equal(w->requests[0].aggregate_id, world_id("R01"));
    assert_string_equal(world_fact(w, PAY_FACT_COMMAND_ACCEPTED)->result_id, world_id("R01"));
    world_word(w, PAY_CMD_APPROVE, "shop", request_id);
    assert_verdict(w, REJECT, "OWN_REQUEST");
    approve_twice(w, request_id);
    assert_int_equal(world_count_jobs(w, PAY_JOB_REFUND), 1);
    assert_non_null(world_action_gate(w, "R01.REFUND"));
    world_action_say(w, PAY_EV_REFUND_SUCCEEDED, "R01", PAY_EVIDENCE_WEBHOOK);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 5001, 0);
}

static void declined_or_expired_a_refund_is_withdrawn(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int expires = 0; expires < 2; expires++) {
        world_paid(w);
        w->policy.refund_threshold_minor = 0; /* The default. */
        const char *request_id = refund(w, 1);
        assert_verdict(w, APPLY, "AWAITING_APPROVAL");
        if (expires != 0) {
            world_wait_for_id(w, PAY_DEADLINE_APPROVAL, request_id);
        } else {
            world_word(w, PAY_CMD_DECLINE, "bob", request_id);
        }
        assert_action(w, "R01", CANCELED);
        assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
        assert_int_equal(world_count_facts(w, PAY_FACT_REFUND_FAILED), 1);
    }
}

/* Its reservation was released meanwhile: nothing is sent. */
static void a_refund_that_is_over_is_not_approved(void **state)
{
    (void)state;
    struct world *w = &world;
    char wish[PAY_CAUSE_SIZE];

    world_paid(w);
    w->policy.refund_threshold_minor = 0;
    (void)snprintf(wish, sizeof wish, "%s", refund(w, 4000));
    approve_twice(w, ask_about_refund(w, PAY_CMD_RELEASE_RESERVATION, "", ""));
    assert_action(w, "R01", FAILED);
    approve_twice(w, wish);
    assert_verdict(w, REJECT, "STALE_REQUEST");
    assert_action(w, "R01", FAILED);
    assert_int_equal(world_count_jobs(w, PAY_JOB_REFUND), 0);
}

static void splitting_does_not_get_below_the_threshold(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    w->policy.refund_threshold_minor = 5000;
    (void)refund(w, 3000);
    assert_verdict(w, APPLY, "ACCEPTED");
    (void)refund(w, 2000);
    assert_verdict(w, APPLY, "ACCEPTED");
    (void)refund(w, 1);
    assert_verdict(w, APPLY, "AWAITING_APPROVAL");

    world_paid(w); /* And over the merchant's payments of one day. */
    w->policy.refund_threshold_day_minor = 9000;
    w->snap.refund_day.amount_minor = 6000;
    (void)refund(w, 3000);
    assert_verdict(w, APPLY, "ACCEPTED");
    assert_int_equal(w->snap.refund_day.added_minor, 3000);
    assert_int_equal(w->snap.refund_day.limit_minor, 9000);
    assert_int_equal(w->snap.refund_day.change, PAY_ROW_UPDATED);
    (void)refund(w, 1);
    assert_verdict(w, APPLY, "AWAITING_APPROVAL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_happens_before_the_second_approval),
        cmocka_unit_test(no_attempt_begins_by_itself_after_it),
        cmocka_unit_test(one_principal_counts_once_and_the_requester_never),
        cmocka_unit_test(a_word_counts_for_its_request_only),
        cmocka_unit_test(an_approval_names_the_bytes_that_it_approves),
        cmocka_unit_test(only_an_operator_asks_and_approves),
        cmocka_unit_test(a_request_is_stale_once_its_row_has_changed),
        cmocka_unit_test(a_query_that_brought_nothing_leaves_a_request_alive),
        cmocka_unit_test(the_same_holds_for_a_refund),
        cmocka_unit_test(declined_or_expired_it_is_over),
        cmocka_unit_test(a_request_that_could_not_be_carried_out_is_refused),
        cmocka_unit_test(an_unknown_attempt_is_closed_as_paid_for_its_amount),
        cmocka_unit_test(only_what_is_unknown_is_forced),
        cmocka_unit_test(an_unknown_refund_is_closed_either_way),
        cmocka_unit_test(what_was_received_is_booked_with_that_amount),
        cmocka_unit_test(a_success_is_taken_back_only_while_no_money_has_moved),
        cmocka_unit_test(an_order_is_corrected_only_to_what_its_attempts_allow),
        cmocka_unit_test(a_paid_order_is_corrected_to_succeeded),
        cmocka_unit_test(an_attempt_is_not_corrected_under_a_capture),
        cmocka_unit_test(a_reversal_of_a_capture_is_taken_back),
        cmocka_unit_test(each_dispute_is_corrected_by_its_own_number),
        cmocka_unit_test(an_approval_is_applied_whatever_follows_from_it),
        cmocka_unit_test(a_refunds_state_is_corrected_within_the_amounts),
        cmocka_unit_test(overridden_an_attempt_blocks_no_more_and_sends_nothing),
        cmocka_unit_test(overridden_what_was_asked_for_beside_it_is_done),
        cmocka_unit_test(overridden_at_its_end_an_order_expires),
        cmocka_unit_test(a_money_case_needs_two_people_another_one),
        cmocka_unit_test(a_resolution_that_was_approved_before_new_evidence_is_stale),
        cmocka_unit_test(beyond_the_threshold_a_refund_is_reserved_and_waits),
        cmocka_unit_test(declined_or_expired_a_refund_is_withdrawn),
        cmocka_unit_test(a_refund_that_is_over_is_not_approved),
        cmocka_unit_test(splitting_does_not_get_below_the_threshold),
    };
    return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: every footnote of the attempt table, sentence by sentence. A test's name is the sentence.
 */
#include "tests/unit/core/world.h"

static struct world world;

/* T of note 2, for a submit that was sent once at @p sent_us. */
static int64_t not_found_counts_after(const struct world *w)
{
    const struct pay_gate *gate = &w->gates[0];
    const int64_t last_us =
        gate->last_send_at_us > gate->not_after_us ? gate->last_send_at_us : gate->not_after_us;
    return last_us + WORLD_CALL_BUDGET + WORLD_LONGEST + WORLD_GRACE;
}

static void refer(struct world *w, enum pay_reference_kind kind, const char *reference)
{
    w->event.provider_payment_id = pay_str_of(reference);
    w->event.references[0] = (struct pay_reference){kind, pay_str_of(reference)};
    w->event.reference_count = 1;
}

static void set_traits(struct world *w, int route, bool can_cancel, bool confirm_moves_money)
{
    w->routes[route].traits.can_cancel = can_cancel;
    w->routes[route].traits.confirm_moves_money = confirm_moves_money;
}

/* ---------------------------------------------------------------------------------------------- 1
 */

static void note_1_not_sent_closes_the_unsent_gate_and_fails_over(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_NOT_SENT, 1);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_LOCAL);
    assert_status(w, 1, FAILED);
    assert_int_equal(world_attempt(w, 1)->failure_class, PAY_FAILURE_NOT_SENT);
    assert_int_equal(world_gate(w, ".SUBMIT", 1)->closed_at_us, w->now_us);
    assert_false(world_attempt(w, 1)->live);
    assert_int_equal(w->snap.attempt_count, 2);
    assert_int_equal(world_attempt(w, 2)->route_no, 1);
    assert_order(w, PROCESSING);
}

static void note_1_a_gate_that_was_passed_is_no_proof(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_pass_gate(w, ".SUBMIT", 1);
    world_say(w, PAY_EV_ATTEMPT_NOT_SENT, 1, PAY_EVIDENCE_LOCAL);
    assert_verdict(w, IGNORE, "GATE_PASSED");
    assert_status(w, 1, CREATED);
    assert_int_equal(world_gate(w, ".SUBMIT", 1)->closed_at_us, 0);
}

/* ---------------------------------------------------------------------------------------------- 2
 */

static void start_unknown(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
}

static void note_2_as_many_in_a_row_as_the_psp_needs_then_failed(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    const int64_t after_us = not_found_counts_after(w);
    world_not_found(w, 1, after_us + 1);
    assert_verdict(w, IGNORE, "NOT_FOUND_COUNTED");
    assert_status(w, 1, UNKNOWN);
    assert_int_equal(world_attempt(w, 1)->not_found_count, 1);
    assert_int_equal(world_attempt(w, 1)->change, PAY_ROW_COUNTED);
    world_not_found(w, 1, after_us + 2);
    assert_verdict(w, APPLY, "PSP_NOT_FOUND");
    assert_status(w, 1, FAILED);
    assert_int_equal(world_attempt(w, 1)->failure_class, PAY_FAILURE_PSP_NOT_FOUND);
    assert_true(world_gate(w, ".SUBMIT", 1)->closed_at_us != 0); /* In the same decision. */
    assert_int_equal(world_attempt(w, 1)->query_count, 2);
}

static void note_2_every_one_of_the_row_is_needed(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    w->routes[0].traits.not_founds_needed = 4;
    for (int n = 1; n < 4; n++) {
        world_not_found(w, 1, not_found_counts_after(w) + n);
        assert_int_equal(world_attempt(w, 1)->not_found_count, n);
        assert_status(w, 1, UNKNOWN);
    }
    world_not_found(w, 1, not_found_counts_after(w) + 4);
    assert_status(w, 1, FAILED);
}

static void note_2_one_asked_earlier_counts_for_nothing_however_late_it_arrives(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    const int64_t after_us = not_found_counts_after(w);
    w->now_us = after_us + 10000 * SECOND;
    for (int i = 0; i < 5; i++) {
        world_not_found(w, 1, after_us); /* "After T" is not at T. */
        assert_verdict(w, IGNORE, "ASKED_TOO_EARLY");
    }
    assert_int_equal(world_attempt(w, 1)->not_found_count, 0);
    assert_status(w, 1, UNKNOWN);
}

static void note_2_a_replay_is_a_send_and_starts_the_count_again(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    world_not_found(w, 1, not_found_counts_after(w) + 1);
    assert_int_equal(world_attempt(w, 1)->not_found_count, 1);

    w->now_us += 500 * SECOND;
    world_pass_gate(w, ".SUBMIT", 1); /* The replay. */
    const int64_t after_us = not_found_counts_after(w);
    world_not_found(w, 1, after_us);
    assert_verdict(w, IGNORE, "ASKED_TOO_EARLY");
    world_not_found(w, 1, after_us + 1);
    assert_verdict(w, IGNORE, "NOT_FOUND_COUNTED");
    assert_int_equal(world_attempt(w, 1)->not_found_count, 1);
    world_not_found(w, 1, after_us + 2);
    assert_status(w, 1, FAILED);
}

static void note_2_a_fact_in_between_starts_the_row_again(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    world_not_found(w, 1, not_found_counts_after(w) + 1);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_attempt(w, 1)->not_found_count, 0);
    assert_int_equal(world_attempt(w, 1)->not_found_from_us, 0);
    world_not_found(w, 1, not_found_counts_after(w) + 2);
    assert_status(w, 1, PROCESSING);
}

static void note_2_never_by_a_search_or_a_replay(void **state)
{
    (void)state;
    struct world *w = &world;
    const enum pay_query_by others[] = {PAY_QUERY_BY_NONE, PAY_QUERY_BY_PSP_REFERENCE,
                                        PAY_QUERY_BY_SEARCH, PAY_QUERY_BY_UNRECOGNIZED};

    start_unknown(w);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        world_event(w, PAY_EV_ATTEMPT_NOT_FOUND, 1);
        world_answers(w, ".QUERY.v1", others[i], not_found_counts_after(w) + 1);
        world_decide(w, PAY_EVIDENCE_QUERY);
        assert_verdict(w, IGNORE, "NOT_ASKED_BY_NUMBER");
    }
    world_event(w, PAY_EV_ATTEMPT_NOT_FOUND, 1);
    world_answers(w, ".QUERY.v1", PAY_QUERY_BY_IDEMPOTENT_REPLAY, not_found_counts_after(w) + 1);
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_verdict(w, REJECT, "EVIDENCE_NOT_ADMISSIBLE");
    assert_int_equal(world_attempt(w, 1)->not_found_count, 0);
    w->routes[0].traits.finds_by_request_no = false;
    world_not_found(w, 1, not_found_counts_after(w) + 1);
    assert_verdict(w, IGNORE, "NOT_ASKED_BY_NUMBER");
}

static void note_2_a_bound_reference_makes_it_a_contradiction(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_IDEMPOTENT_REPLAY, w->now_us);
    refer(w, PAY_REF_INTENT, "pi_1");
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "WEAK_AFTER_UNKNOWN");
    assert_int_equal(w->snap.reference_count, 1);

    world_not_found(w, 1, w->now_us + WORLD_GRACE); /* Asked before the PSP can show it. */
    assert_verdict(w, IGNORE, "ASKED_BEFORE_BOUND");
    world_not_found(w, 1, w->now_us + WORLD_GRACE + 1);
    assert_verdict(w, NEEDS_RECONCILIATION, "NOT_FOUND_BUT_BOUND");
    assert_non_null(world_case(w, PAY_CASE_CONTRADICTION));
    assert_status(w, 1, UNKNOWN);
}

static void note_2_a_reference_in_a_not_found_binds_nothing(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    world_event(w, PAY_EV_ATTEMPT_NOT_FOUND, 1);
    world_answers(w, ".QUERY.v1", PAY_QUERY_BY_REQUEST_NUMBER, w->now_us);
    refer(w, PAY_REF_INTENT, "pi_1");
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_int_equal(w->snap.reference_count, 0);
    assert_int_equal(world_attempt(w, 1)->known_at_us, 0);
}

static void note_2_not_once_an_action_was_handed_out(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    world_not_found(w, 1, not_found_counts_after(w) + 1);
    assert_verdict(w, IGNORE, "ACTION_WAS_HANDED_OUT");
    assert_status(w, 1, PROCESSING);
}

static void note_2_the_next_attempt_comes_by_itself_only_where_the_route_says_so(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int allowed = 0; allowed < 2; allowed++) {
        start_unknown(w);
        w->routes[0].failover_on_not_found = allowed == 1;
        world_not_found(w, 1, not_found_counts_after(w) + 1);
        world_not_found(w, 1, not_found_counts_after(w) + 2);
        assert_status(w, 1, FAILED);
        assert_int_equal(w->snap.attempt_count, 1 + allowed);
        assert_string_equal(w->snap.order.reason_code,
                            allowed ? "FOLLOWS_ATTEMPT" : "AWAITING_METHOD");
        assert_order(w, PROCESSING);
    }
}

/* ---------------------------------------------------------------------------------------------- 3
 */

static void note_3_the_deadline_closes_nothing_it_cancels_and_waits_again(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ACTION, 1), w->now_us + WORLD_ACTION_LIFETIME);
    world_wait_for(w, PAY_DEADLINE_ACTION, 1);
    assert_verdict(w, APPLY, "ACTION_EXPIRED");
    assert_status(w, 1, REQUIRES_ACTION);
    assert_string_equal(world_job(w, PAY_JOB_CANCEL)->job_id, WORLD_PAYMENT "A01.CANCEL");
    assert_string_equal(world_job(w, PAY_JOB_CANCEL)->reason_code, "DEADLINE");
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ACTION, 1), w->now_us + WORLD_CANCEL_RETRY);

    world_wait_for(w, PAY_DEADLINE_ACTION, 1);
    assert_verdict(w, IGNORE, "CANCEL_REPEATED");
    assert_string_equal(world_job(w, PAY_JOB_CANCEL)->job_id, WORLD_PAYMENT "A01.CANCEL.2");

    world_event(w, PAY_EV_ATTEMPT_CANCELED, 1);
    world_answers(w, ".CANCEL.2", PAY_QUERY_BY_NONE, w->now_us);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_status(w, 1, CANCELED);
    assert_int_equal(w->snap.attempt_count, 1); /* Past failover_until: none by itself. */
    assert_string_equal(w->snap.order.reason_code, "AWAITING_METHOD");
}

static void
note_3_canceled_by_a_query_asked_before_the_attempt_was_known_is_a_not_found(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_PROCESSING);
    const int64_t known_us = world_attempt(w, 1)->known_at_us;
    assert_true(known_us != 0);
    w->now_us += SECOND;
    world_event(w, PAY_EV_ATTEMPT_CANCELED, 1);
    world_answers(w, ".QUERY.1234", PAY_QUERY_BY_REQUEST_NUMBER, known_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_int_equal(w->out.verdict, PAY_VERDICT_IGNORE);
    assert_status(w, 1, PROCESSING);

    world_event(w, PAY_EV_ATTEMPT_CANCELED, 1);
    world_answers(w, ".QUERY.1234", PAY_QUERY_BY_REQUEST_NUMBER, known_us + 1);
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_status(w, 1, CANCELED);
}

static void note_3_canceled_by_a_cancel_of_what_is_not_known_is_a_not_found(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    world_event(w, PAY_EV_ATTEMPT_CANCELED, 1);
    world_answers(w, ".CANCEL", PAY_QUERY_BY_NONE, w->now_us);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, IGNORE, "NOT_ASKED_BY_NUMBER");
    assert_status(w, 1, UNKNOWN);
}

static void note_3_where_the_psp_cannot_cancel_unpaid_after_its_expiry_closes(void **state)
{
    (void)state;
    struct world *w = &world;
    const enum pay_event_type unpaid[] = {PAY_EV_ATTEMPT_ACTION_REQUIRED, PAY_EV_ATTEMPT_NOT_FOUND};

    for (size_t i = 0; i < 2; i++) {
        world_start(w);
        set_traits(w, 0, false, false);
        world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
        const int64_t expiry_us = world_attempt(w, 1)->psp_expires_at_us + WORLD_GRACE;
        world_wait_for(w, PAY_DEADLINE_ACTION, 1);
        assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0);
        assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
        assert_true(world_row_due(w, PAY_DEADLINE_ACTION, 1) > expiry_us);

        world_event(w, unpaid[i], 1);
        world_answers(w, ".QUERY.1", PAY_QUERY_BY_REQUEST_NUMBER, expiry_us);
        world_decide(w, PAY_EVIDENCE_QUERY);
        assert_status(w, 1, REQUIRES_ACTION);
        world_event(w, unpaid[i], 1);
        world_answers(w, ".QUERY.1", PAY_QUERY_BY_REQUEST_NUMBER, expiry_us + 1);
        world_decide(w, PAY_EVIDENCE_QUERY);
        assert_status(w, 1, CANCELED);
    }
}

static void note_3_only_an_open_attempt_is_closed_by_the_psps_expiry(void **state)
{
    (void)state;
    static const enum pay_attempt_status closes[] = {PAY_ATTEMPT_SUBMITTED, PAY_ATTEMPT_PROCESSING,
                                                     PAY_ATTEMPT_REQUIRES_ACTION,
                                                     PAY_ATTEMPT_UNKNOWN};
    for (int s = PAY_ATTEMPT_SUBMITTED; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        struct world *w = &world;
        bool does_close = false;
        for (size_t i = 0; i < sizeof closes / sizeof closes[0]; i++) {
            does_close |= closes[i] == (enum pay_attempt_status)s;
        }
        world_start_manual(w);
        set_traits(w, 0, false, false);
        world_put(w, 1, (enum pay_attempt_status)s);
        world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1);
        world_answers(w, ".QUERY.1", PAY_QUERY_BY_REQUEST_NUMBER,
                      world_attempt(w, 1)->psp_expires_at_us + WORLD_GRACE + 1);
        world_decide(w, PAY_EVIDENCE_QUERY);
        assert_int_equal(world_attempt(w, 1)->status, does_close ? PAY_ATTEMPT_CANCELED : s);
    }
}

static void note_3_a_canceled_object_that_is_named_is_known_from_then_on(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    for (int i = 0; i < 2; i++) {
        world_event(w, PAY_EV_ATTEMPT_CANCELED, 1);
        world_answers(w, ".QUERY.1", PAY_QUERY_BY_REQUEST_NUMBER, w->now_us - SECOND);
        refer(w, PAY_REF_INTENT, "pi_1");
        world_decide(w, PAY_EVIDENCE_QUERY);
        assert_int_equal(world_attempt(w, 1)->status,
                         i == 0 ? PAY_ATTEMPT_UNKNOWN : PAY_ATTEMPT_CANCELED);
        w->now_us += 10 * SECOND;
    }
}

static void note_3_the_psps_expiry_long_past_without_an_answer_becomes_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    set_traits(w, 0, false, false);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    const int64_t expiry_us = world_attempt(w, 1)->psp_expires_at_us + WORLD_GRACE;
    for (int i = 0; w->now_us <= expiry_us + WORLD_PERSON_AFTER; i++) {
        assert_null(world_case(w, PAY_CASE_CANNOT_CLOSE));
        assert_true(i < 1000);
        world_wait_for(w, PAY_DEADLINE_ACTION, 1);
        assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    }
    assert_non_null(world_case(w, PAY_CASE_CANNOT_CLOSE));
}

static void note_3_neither_cancel_nor_expiry_stays_blocking_and_becomes_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    set_traits(w, 0, false, false);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_attempt(w, 1)->psp_expires_at_us = 0;
    world_wait_for(w, PAY_DEADLINE_ACTION, 1);
    assert_non_null(world_case(w, PAY_CASE_CANNOT_CLOSE));
    assert_true(world_attempt(w, 1)->live);
    assert_status(w, 1, REQUIRES_ACTION);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ACTION, 1), w->now_us + WORLD_PERSON_AFTER);
}

static void note_3_a_cancel_that_never_takes_becomes_a_case(void **state)
{
    (void)state;
    struct world *w = &world;
    int repeats = 0;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    for (; world_case(w, PAY_CASE_CANNOT_CLOSE) == NULL && repeats < 100; repeats++) {
        world_wait_for(w, PAY_DEADLINE_ACTION, 1);
    }
    assert_in_range(repeats, 2, 20);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ACTION, 1), w->now_us + WORLD_PERSON_AFTER);
}

static void note_3_entering_again_makes_a_new_deadline_at_once_if_the_end_has_passed(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ACTION, 1), -1);
    w->now_us += WORLD_ACTION_LIFETIME + SECOND;
    world_say(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_ACTION, 1), w->now_us);
}

/* A callback said only that there is one; our own answer brings it. */
static void the_action_is_handed_out_when_it_comes(void **state)
{
    (void)state;
    struct world *w = &world;
    char cause[PAY_CAUSE_SIZE + 24];
    char event_id[PAY_EVENT_ID_SIZE];

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_say(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_false(world_fact(w, PAY_FACT_PAYMENT_ACTION_REQUIRED)->has_action);
    world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1)->action.is_set = true;
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, APPLY, "ACTION_HANDED_OUT");
    assert_int_equal(world_attempt(w, 1)->action_no, 1);
    assert_int_equal(w->out.history[1].aggregate, PAY_AGGREGATE_ORDER);
    assert_int_equal(w->out.history[1].verdict, PAY_VERDICT_APPLY);
    const struct pay_fact *fact = world_fact(w, PAY_FACT_PAYMENT_ACTION_REQUIRED);
    assert_true(fact->has_action);
    /* One of several in a payment's life: its id is of this version of the attempt. */
    pay_id_cause_at(cause, w->cause, world_attempt(w, 1)->version);
    pay_id_fact(event_id, PAY_FACT_PAYMENT_ACTION_REQUIRED, WORLD_PAYMENT, cause);
    assert_string_equal(fact->event_id, event_id);
}

static void note_3_every_create_carries_an_expiry_never_later_than_the_orders(void **state)
{
    (void)state;
    struct world *w = &world;

    world_init(w);
    world_command(w, PAY_CMD_CREATE_PAYMENT)->create_payment.expires_at_us =
        w->now_us + 60 * SECOND;
    world_decide_command(w);
    assert_int_equal(world_job(w, PAY_JOB_SUBMIT)->expires_at_us, w->now_us + 60 * SECOND);
    assert_int_equal(world_job(w, PAY_JOB_SUBMIT)->not_after_us, w->now_us + 60 * SECOND);
    world_start(w);
    assert_int_equal(world_attempt(w, 1)->psp_expires_at_us, WORLD_START + WORLD_ACTION_LIFETIME);
    world_init(w);
    w->offered[0].traits.action_lifetime_us = 0; /* None of the method's own. */
    world_command(w, PAY_CMD_CREATE_PAYMENT);
    world_decide_command(w);
    assert_int_equal(world_attempt(w, 1)->psp_expires_at_us, w->snap.order.expires_at_us);
}

/* ------------------------------------------------------------------------------------------ 4, 5
 */

static void note_4_unknown_is_left_by_webhook_or_by_the_first_sends_own_answer(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
    w->event.call.send_no = 2;
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, IGNORE, "WEAK_AFTER_UNKNOWN");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 0);

    world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_status(w, 1, REQUIRES_ACTION);

    start_unknown(w);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, PROCESSING);
}

static void note_4_a_replay_teaches_the_reference_which_is_then_asked_for(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    for (int i = 0; i < 2; i++) {
        world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1);
        world_answers(w, ".SUBMIT", PAY_QUERY_BY_IDEMPOTENT_REPLAY, w->now_us);
        refer(w, PAY_REF_INTENT, "pi_1");
        world_decide(w, PAY_EVIDENCE_QUERY); /* Whatever the producer calls it. */
        assert_status(w, 1, UNKNOWN);
        assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), i == 0 ? 1 : 0);
        assert_int_equal(world_attempt(w, 1)->change, i == 0 ? PAY_ROW_UPDATED : PAY_ROW_SAME);
        assert_int_equal(world_attempt(w, 1)->known_at_us, w->now_us);
    }
}

/* Known at last, it can be canceled, and here only asked about; its reference is asked for too. */
static void what_is_asked_for_two_reasons_is_asked_once(void **state)
{
    (void)state;
    struct world *w = &world;

    start_unknown(w);
    set_traits(w, 0, false, false);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_IDEMPOTENT_REPLAY, w->now_us);
    refer(w, PAY_REF_INTENT, "pi_1");
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "WEAK_AFTER_UNKNOWN");
    assert_true(world_row_due(w, PAY_DEADLINE_ACTION, 1) > w->now_us);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
}

static void note_5_a_time_out_does_not_undo_a_webhook(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_WEBHOOK);
    world_say(w, PAY_EV_ATTEMPT_UNKNOWN, 1, PAY_EVIDENCE_LOCAL);
    assert_verdict(w, IGNORE, "KNOWN_BY_WEBHOOK");
    assert_status(w, 1, PROCESSING);
}

/* ---------------------------------------------------------------------------------------------- 6
 */

/* Attempt 1 FAILED, attempt 2 submitted on the next route. */
static void start_failed_over(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    assert_int_equal(w->snap.attempt_count, 2);
    world_put(w, 2, PAY_ATTEMPT_SUBMITTED);
}

/* Of the second attempt its own gate counts, not the first one of the payment. */
static void note_2_a_second_attempts_sends_are_its_own(void **state)
{
    (void)state;
    struct world *w = &world;

    start_failed_over(w);
    w->now_us += 1000 * SECOND;
    world_pass_gate(w, ".SUBMIT", 2); /* Its replay. */
    world_say(w, PAY_EV_ATTEMPT_UNKNOWN, 2, PAY_EVIDENCE_LOCAL);
    world_not_found(w, 2, w->now_us + SECOND);
    assert_verdict(w, IGNORE, "ASKED_TOO_EARLY");
    world_event(w, PAY_EV_ATTEMPT_FAILED, 2);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_status(w, 2, UNKNOWN); /* What another send is told says nothing of this one. */
}

static void note_2_a_second_attempts_reference_is_its_own(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_FAILED, 1);
    refer(w, PAY_REF_INTENT, "pi_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    world_put(w, 2, PAY_ATTEMPT_UNKNOWN);
    w->now_us += 100 * SECOND;
    world_event(w, PAY_EV_ATTEMPT_PROCESSING, 2);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_IDEMPOTENT_REPLAY, w->now_us);
    refer(w, PAY_REF_INTENT, "pi_2");
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_int_equal(w->snap.reference_count, 2);
    world_not_found(w, 2, w->now_us);
    assert_verdict(w, IGNORE, "ASKED_BEFORE_BOUND");
    world_not_found(w, 2, w->now_us + WORLD_GRACE + 1);
    assert_verdict(w, NEEDS_RECONCILIATION, "NOT_FOUND_BUT_BOUND");
}

static void note_6_late_money_twice_is_live_once(void **state)
{
    (void)state;
    struct world *w = &world;

    start_failed_over(w);
    world_say(w, PAY_EV_ATTEMPT_FAILED, 2, PAY_EVIDENCE_WEBHOOK);
    world_put(w, 3, PAY_ATTEMPT_FAILED);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_true(world_attempt(w, 1)->live); /* Nobody else has it. */
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 2, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 2, SUCCEEDED);
    assert_false(world_attempt(w, 2)->live);
    assert_true(world_attempt(w, 1)->live);
}

static void note_6_late_money_takes_the_order_and_withdraws_the_live_attempt(void **state)
{
    (void)state;
    struct world *w = &world;

    start_failed_over(w);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, APPLY, "LATE_SUCCESS");
    assert_status(w, 1, SUCCEEDED);
    assert_order(w, SUCCEEDED);
    assert_int_equal(world_attempt(w, 1)->amounts.captured, WORLD_AMOUNT);
    assert_false(world_attempt(w, 1)->live); /* Taken by the other: late money does not get it. */
    assert_int_equal(world_attempt(w, 2)->cancel_cause, PAY_CANCEL_CAUSE_OTHER_SUCCEEDED);
    assert_true(world_gate(w, ".SUBMIT", 2)->closed_at_us != 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0); /* Not known to exist: asked first. */
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    assert_int_equal(world_job(w, PAY_JOB_QUERY)->attempt_index, 1);

    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 2, PAY_EVIDENCE_WEBHOOK); /* Now it is known. */
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    assert_order(w, SUCCEEDED);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 2, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, APPLY, "DUPLICATE_CHARGE");
    assert_non_null(world_case(w, PAY_CASE_DUPLICATE_CHARGE));
    assert_int_equal(world_case(w, PAY_CASE_DUPLICATE_CHARGE)->proposed_refund_minor, WORLD_AMOUNT);
    assert_string_equal(world_case(w, PAY_CASE_DUPLICATE_CHARGE)->aggregate_id,
                        WORLD_PAYMENT "A02");
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED), 0);
    assert_int_equal(world_count_facts(w, PAY_FACT_MANUAL_REVIEW_REQUIRED), 1);
}

static void note_6_late_money_takes_live_again_when_nobody_has_it(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->snap.order.failover_until_us = w->now_us; /* No next attempt. */
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    assert_int_equal(w->snap.attempt_count, 1);
    assert_false(world_attempt(w, 1)->live);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_true(world_attempt(w, 1)->live);
    assert_order(w, SUCCEEDED);
}

static void note_6_an_unsent_attempt_ends_at_once_when_money_came_elsewhere(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 2, FAILED);
    assert_int_equal(world_attempt(w, 2)->failure_class, PAY_FAILURE_NOT_SENT);
    assert_order(w, SUCCEEDED);
    assert_int_equal(w->snap.attempt_count, 2);
}

static void note_6_weaker_than_a_webhook_is_a_case_and_a_query(void **state)
{
    (void)state;
    struct world *w = &world;

    start_failed_over(w);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, NEEDS_RECONCILIATION, "LATE_SUCCESS_UNVERIFIED");
    assert_status(w, 1, FAILED);
    assert_int_equal(world_attempt(w, 1)->amounts.captured, 0);
    assert_non_null(world_case(w, PAY_CASE_CONTRADICTION));
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 0); /* A case of the kind is open. */
    assert_int_equal(world_count_facts(w, PAY_FACT_MANUAL_REVIEW_REQUIRED), 0);
    assert_int_equal(w->cases[0].change, PAY_ROW_UPDATED); /* The second evidence is in it. */
}

static void note_6_a_statement_never_moves_a_final_state_by_itself(void **state)
{
    (void)state;
    struct world *w = &world;

    start_failed_over(w);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_STATEMENT);
    assert_verdict(w, NEEDS_RECONCILIATION, "STATEMENT_AGAINST_FINAL");
    assert_status(w, 1, FAILED);
    start_unknown(w);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_STATEMENT);
    assert_status(w, 1, SUCCEEDED);
}

static void note_6_a_late_authorization_is_voided_and_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_say(w, PAY_EV_ATTEMPT_AUTHORIZED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, FAILED);
    assert_non_null(world_case(w, PAY_CASE_LATE_AUTHORIZATION));
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    assert_string_equal(world_job(w, PAY_JOB_CANCEL)->reason_code, "DEADLINE");
    world_say(w, PAY_EV_ATTEMPT_AUTHORIZED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0);
}

static void O15_late_success_after_expiry_keeps_the_order_and_needs_a_person(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    w->snap.order.failover_until_us = w->now_us;
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    w->now_us = w->snap.order.expires_at_us;
    world_order_due(w);
    assert_order(w, EXPIRED);

    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, APPLY, "LATE_SUCCESS");
    assert_order(w, EXPIRED);
    assert_status(w, 1, SUCCEEDED);
    assert_int_equal(world_attempt(w, 1)->amounts.captured, WORLD_AMOUNT);
    assert_int_equal(world_count_facts(w, PAY_FACT_PAYMENT_SUCCEEDED), 0);
    assert_int_equal(w->out.history[1].verdict, PAY_VERDICT_NEEDS_RECONCILIATION);
    const struct pay_fact *review = world_fact(w, PAY_FACT_MANUAL_REVIEW_REQUIRED);
    assert_non_null(review);
    assert_string_equal(review->aggregate_id, WORLD_PAYMENT ".LATE_SUCCESS.1");
    assert_int_equal(w->cases[review->case_index].proposed_refund_minor, WORLD_AMOUNT);
}

/* ---------------------------------------------------------------------------------------------- 7
 */

static void start_approvable(struct world *w)
{
    world_start(w);
    set_traits(w, 0, true, false);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
}

static void note_7_one_confirm_however_many_times_the_approval_is_reported(void **state)
{
    (void)state;
    struct world *w = &world;

    start_approvable(w);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, PROCESSING);
    assert_string_equal(world_job(w, PAY_JOB_CONFIRM)->job_id, WORLD_PAYMENT "A01.CONFIRM.1");
    assert_non_null(world_gate(w, ".CONFIRM.1", 1));
    assert_int_equal(world_gate(w, ".CONFIRM.1", 1)->change, PAY_ROW_INSERTED);
    assert_true(world_row_due(w, PAY_DEADLINE_SEND, 1) >
                world_gate(w, ".CONFIRM.1", 1)->not_after_us + WORLD_CALL_BUDGET);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_QUERY);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 0);
    assert_int_equal(world_attempt(w, 1)->confirm_no, 1);
}

static void note_7_a_second_action_has_a_confirm_of_its_own(void **state)
{
    (void)state;
    struct world *w = &world;

    start_approvable(w);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    world_pass_gate(w, ".CONFIRM.1", 1);
    world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1)->action.is_set = true;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_attempt(w, 1)->action_no, 2);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_string_equal(world_job(w, PAY_JOB_CONFIRM)->job_id, WORLD_PAYMENT "A01.CONFIRM.2");
}

/* Whoever makes the action final closes its gates: a CONFIRM of a second approval would leave after
 * the first had charged (found by the explorer). */
static void gates_are_closed_with_the_attempts_end_whatever_ended_it(void **state)
{
    (void)state;
    struct world *w = &world;
    static const enum pay_event_type ends[] = {PAY_EV_ATTEMPT_SUCCEEDED, PAY_EV_ATTEMPT_FAILED,
                                               PAY_EV_ATTEMPT_CANCELED};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        start_approvable(w);
        world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
        world_pass_gate(w, ".SUBMIT", 1);
        assert_int_equal(world_gate(w, ".CONFIRM.1", 1)->closed_at_us, 0);
        world_say(w, ends[i], 1, PAY_EVIDENCE_WEBHOOK);
        assert_true(pay_attempt_is_final(world_attempt(w, 1)->status));
        assert_int_equal(world_gate(w, ".CONFIRM.1", 1)->closed_at_us, w->now_us);
        assert_int_equal(world_gate(w, ".SUBMIT", 1)->closed_at_us, w->now_us);
    }
}

/* contracts.md, "Reading answers": a definite no exists only if no other send of the job exists. */
static void a_definite_no_is_one_only_of_the_only_send(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int replays = 0; replays <= 1; replays++) {
        world_start(w);
        world_pass_gate(w, ".SUBMIT", 1);
        world_gate(w, ".SUBMIT", 1)->sends += replays;
        world_event(w, PAY_EV_ATTEMPT_FAILED, 1);
        world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
        world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
        if (replays == 0) {
            assert_status(w, 1, FAILED);
        } else {
            assert_status(w, 1, CREATED);
            assert_verdict(w, IGNORE, "OTHER_SEND_EXISTS");
            assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
        }
    }
}

/* The transaction itself may say so, by either of its names, and so may who was asked about it. */
static void a_definite_no_of_the_transaction_is_one_however_often_it_was_sent(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int i = 0; i < 3; i++) {
        world_start(w);
        world_pass_gate(w, ".SUBMIT", 1);
        world_pass_gate(w, ".SUBMIT", 1);
        world_event(w, PAY_EV_ATTEMPT_FAILED, 1);
        world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
        if (i == 0) {
            w->event.provider_payment_id = PAY_STR("pi_1");
        } else if (i == 1) {
            w->event.references[0] = (struct pay_reference){PAY_REF_INTENT, PAY_STR("pi_1")};
            w->event.reference_count = 1;
        }
        world_decide(w, i < 2 ? PAY_EVIDENCE_SYNC_RESPONSE : PAY_EVIDENCE_QUERY);
        assert_status(w, 1, FAILED);
    }
}

static void note_7_cancel_instead_of_confirm_under_a_money_case(void **state)
{
    (void)state;
    struct world *w = &world;

    start_approvable(w);
    world_open_case(w, PAY_CASE_AMOUNT_MISMATCH);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
}

static void note_7_cancel_instead_of_confirm_under_an_intent(void **state)
{
    (void)state;
    struct world *w = &world;

    start_approvable(w);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, PROCESSING);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 0);
    assert_string_equal(world_job(w, PAY_JOB_CANCEL)->job_id, WORLD_PAYMENT "A01.CANCEL.2");
}

static void note_7_cancel_instead_of_confirm_beside_another_success(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_put(w, 2, PAY_ATTEMPT_REQUIRES_ACTION);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 2, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
}

static void note_7_cancel_instead_of_confirm_after_the_page_closed(void **state)
{
    (void)state;
    struct world *w = &world;

    start_approvable(w);
    w->now_us = world_attempt(w, 1)->action_expires_at_us;
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 0);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
}

static void note_7_cancel_instead_of_confirm_once_the_order_has_expired(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int late = 0; late < 2; late++) {
        world_start(w);
        world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
        w->now_us = w->snap.order.expires_at_us - 1 + late;
        world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK); /* No page of ours. */
        assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 1 - late);
        assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), late);
    }
}

static void note_7_a_confirm_that_was_not_sent_is_sent_again_by_deadline(void **state)
{
    (void)state;
    struct world *w = &world;

    start_approvable(w);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    world_event(w, PAY_EV_ATTEMPT_NOT_SENT, 1);
    world_answers(w, ".CONFIRM.1", PAY_QUERY_BY_NONE, 0);
    world_decide(w, PAY_EVIDENCE_LOCAL);
    assert_verdict(w, IGNORE, "SENT_AGAIN_BY_DEADLINE");
    assert_status(w, 1, PROCESSING);

    world_wait_for(w, PAY_DEADLINE_SEND, 1);
    assert_true(world_gate(w, ".CONFIRM.1", 1)->closed_at_us != 0);
    assert_string_equal(world_job(w, PAY_JOB_CONFIRM)->job_id, WORLD_PAYMENT "A01.CONFIRM.2");
    world_pass_gate(w, ".CONFIRM.2", 1);
    world_wait_for(w, PAY_DEADLINE_SEND, 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 0);
}

/* However long the PSP is away, and the pause with it: at the attempt's end it is withdrawn. */
static void note_7_an_unsent_confirm_is_sent_again_ever_more_seldom_until_the_end(void **state)
{
    (void)state;
    struct world *w = &world;
    int made = 1, turns = 0;

    start_approvable(w);
    set_traits(w, 0, true, true);
    w->snap.order.expires_at_us = w->now_us + INT64_C(7) * 86400 * SECOND;
    world_attempt(w, 1)->action_no = 0;
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    for (; turns < 1000 && !pay_attempt_is_final(world_attempt(w, 1)->status); turns++) {
        world_wait_for(w, PAY_DEADLINE_SEND, 1);
        made += world_count_jobs(w, PAY_JOB_CONFIRM);
    }
    assert_status(w, 1, CANCELED);
    assert_true(w->now_us <= w->snap.order.expires_at_us + WORLD_CALL_BUDGET + SECOND);
    assert_in_range(made, 20, 64);
    assert_true(turns <= 2 * made); /* Looked at when its window is over, and when it is due. */
    assert_int_equal(world_attempt(w, 1)->confirm_no, made);
}

/* What the store left out of its gates was not sent, and is no CONFIRM that counts. */
static void note_7_confirms_that_were_left_out_are_as_closed_unsent(void **state)
{
    (void)state;
    struct world *w = &world;

    start_approvable(w);
    set_traits(w, 0, true, true);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    world_gate(w, ".CONFIRM.1", 1)->past = (struct pay_gate_past){.made = 1100, .last_us = 5};
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    assert_status(w, 1, CANCELED);
}

static void note_7_at_the_attempts_end_the_unsent_confirm_is_withdrawn(void **state)
{
    (void)state;
    struct world *w = &world;

    start_approvable(w);
    set_traits(w, 0, true, true);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
    w->now_us = world_attempt(w, 1)->action_expires_at_us + SECOND;
    world_wait_for(w, PAY_DEADLINE_SEND, 1);
    assert_status(w, 1, CANCELED); /* Only our CONFIRM moves money, and it never left. */
}

static void note_7_where_only_our_confirm_moves_money_never_making_it_is_canceled(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int sent = 0; sent < 2; sent++) {
        start_approvable(w);
        set_traits(w, 0, true, true);
        world_say(w, PAY_EV_ATTEMPT_APPROVED, 1, PAY_EVIDENCE_WEBHOOK);
        if (sent == 1) {
            world_pass_gate(w, ".CONFIRM.1", 1);
        }
        world_command(w, PAY_CMD_CANCEL_PAYMENT);
        world_decide_command(w);
        if (sent == 1) {
            assert_status(w, 1, PROCESSING);
            assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
        } else {
            assert_status(w, 1, CANCELED);
            assert_order(w, CANCELED);
            assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0);
            assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 0);
        }
    }
}

static void note_7_a_second_attempts_confirm_is_its_own(void **state)
{
    (void)state;
    struct world *w = &world;

    start_failed_over(w);
    set_traits(w, 1, true, true);
    world_event(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 2)->action.is_set = true;
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 2, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 1);
    world_say(w, PAY_EV_ATTEMPT_APPROVED, 2, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CONFIRM), 0);
    world_pass_gate(w, ".CONFIRM.1", 2);
    world_command(w, PAY_CMD_CANCEL_PAYMENT);
    world_decide_command(w);
    assert_status(w, 2, PROCESSING); /* It has left, and may move money. */
}

/* ---------------------------------------------------------------------------------------------- 8
 */

static void note_8_without_a_page_a_decline_is_canceled_and_only_that_closes_it(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_event(w, PAY_EV_ATTEMPT_DECLINED, 1)->failure_class = PAY_FAILURE_INSUFFICIENT_FUNDS;
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_status(w, 1, PROCESSING);
    assert_true(world_attempt(w, 1)->live);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    assert_int_equal(world_attempt(w, 1)->cancel_cause, PAY_CANCEL_CAUSE_DECLINED);

    w->snap.order.retry_until_expiry = false;
    w->snap.order.failover_until_us = w->now_us;
    world_event(w, PAY_EV_ATTEMPT_CANCELED, 1);
    world_answers(w, ".CANCEL", PAY_QUERY_BY_NONE, w->now_us);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_status(w, 1, CANCELED);
    assert_order(w, FAILED); /* As FAILED, reason the decline. */
    assert_string_equal(w->snap.order.reason_code, "INSUFFICIENT_FUNDS");
}

static void note_8_with_a_page_open_it_stays_payable(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    w->snap.order.failover_until_us = w->now_us; /* The route would not go on. */
    world_event(w, PAY_EV_ATTEMPT_DECLINED, 1)->failure_class = PAY_FAILURE_INSUFFICIENT_FUNDS;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, REQUIRES_ACTION);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0);
    assert_int_equal(world_attempt(w, 1)->failure_class, PAY_FAILURE_INSUFFICIENT_FUNDS);
    assert_int_equal(world_attempt(w, 1)->change, PAY_ROW_UPDATED);
    w->now_us = world_attempt(w, 1)->action_expires_at_us; /* Decided after the deadline. */
    world_say(w, PAY_EV_ATTEMPT_DECLINED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
}

/* The PSP has announced one and none was handed out: there is nothing to pay on. */
static void note_8_an_action_that_was_only_announced_is_no_page(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    w->snap.order.failover_until_us = w->now_us; /* The route would not go on. */
    world_say(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_true(world_attempt(w, 1)->action_expires_at_us > w->now_us);
    world_say(w, PAY_EV_ATTEMPT_DECLINED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
}

static void note_8_a_decline_that_comes_twice_is_not_a_second_one(void **state)
{
    (void)state;
    struct world *w = &world;
    char cause[PAY_CAUSE_SIZE];

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    w->snap.order.failover_until_us = w->now_us; /* The route would not go on. */
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    world_say(w, PAY_EV_ATTEMPT_UNKNOWN, 1, PAY_EVIDENCE_LOCAL);
    world_say(w, PAY_EV_ATTEMPT_DECLINED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, PROCESSING);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0); /* The page is open. */
    memcpy(cause, w->cause, sizeof cause);
    w->now_us = world_attempt(w, 1)->action_expires_at_us;
    world_event(w, PAY_EV_ATTEMPT_DECLINED, 1);
    memcpy(w->cause, cause, sizeof cause);
    w->input.cause = pay_str_of(w->cause);
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "DUPLICATE");
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0);
}

static void note_8_when_the_route_would_go_on_it_is_canceled_though_a_page_is_open(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_REQUIRES_ACTION);
    world_say(w, PAY_EV_ATTEMPT_DECLINED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, REQUIRES_ACTION);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    assert_int_equal(w->snap.attempt_count, 1); /* The next only once this one has ended. */
    world_say(w, PAY_EV_ATTEMPT_DECLINED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0); /* It is on its way. */
}

static void O1_O3_a_late_decline_of_a_first_try_neither_fails_nor_cancels_what_is_paid(void **state)
{
    (void)state;
    struct world *w = &world;
    const enum pay_event_type late[] = {PAY_EV_ATTEMPT_DECLINED, PAY_EV_ATTEMPT_FAILED,
                                        PAY_EV_ATTEMPT_CANCELED};

    for (size_t i = 0; i < 3; i++) {
        world_start(w);
        world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
        world_say(w, late[i], 1, PAY_EVIDENCE_WEBHOOK);
        assert_verdict(w, IGNORE, "STALE");
        assert_status(w, 1, SUCCEEDED);
        assert_order(w, SUCCEEDED);
        assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 0);
        assert_int_equal(world_attempt(w, 1)->failure_class, PAY_FAILURE_NONE);
        assert_null(world_case(w, PAY_CASE_CONTRADICTION));
    }
}

/* Nobody answers, and the job is gone: it is asked again until somebody does. */
static void a_question_about_what_is_over_waits_for_its_answer(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, NEEDS_RECONCILIATION, "LATE_SUCCESS_UNVERIFIED");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    world_wait_for(w, PAY_DEADLINE_QUERY, 1);
    assert_verdict(w, IGNORE, "QUERY_DUE");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    assert_true(world_row_due(w, PAY_DEADLINE_QUERY, 1) > w->now_us);

    const enum pay_event_type no_word[] = {PAY_EV_QUERY_FAILED, PAY_EV_ATTEMPT_PROCESSING};
    for (size_t i = 0; i < 2; i++) {
        world_event(w, no_word[i], 1);
        world_answers(w, ".QUERY.v3", PAY_QUERY_BY_PSP_REFERENCE, w->now_us + 1);
        world_decide(w, PAY_EVIDENCE_QUERY);
        assert_true(world_row_due(w, PAY_DEADLINE_QUERY, 1) > w->now_us);
    }
    world_say(w, PAY_EV_ATTEMPT_FAILED, 1, PAY_EVIDENCE_WEBHOOK); /* No answer to it. */
    assert_true(world_row_due(w, PAY_DEADLINE_QUERY, 1) > w->now_us);
    world_event(w, PAY_EV_ATTEMPT_FAILED, 1); /* About another object, or of another account. */
    world_answers(w, ".QUERY.v4", PAY_QUERY_BY_PSP_REFERENCE, w->now_us + 1);
    w->input.foreign_reference = true;
    world_decide(w, PAY_EVIDENCE_QUERY);
    w->input.foreign_reference = false;
    assert_true(world_row_due(w, PAY_DEADLINE_QUERY, 1) > w->now_us);
    world_event(w, PAY_EV_ATTEMPT_FAILED, 1);
    world_answers(w, ".QUERY.v4", PAY_QUERY_BY_PSP_REFERENCE, w->now_us + 1);
    w->event.psp_account = PAY_STR("acct_2");
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_verdict(w, REJECT, "WRONG_ACCOUNT");
    assert_true(world_row_due(w, PAY_DEADLINE_QUERY, 1) > w->now_us);
    world_event(w, PAY_EV_ATTEMPT_FAILED, 1); /* Asked for before there was the question. */
    world_answers(w, ".QUERY.v1", PAY_QUERY_BY_PSP_REFERENCE, w->now_us);
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_true(world_row_due(w, PAY_DEADLINE_QUERY, 1) > w->now_us);
    world_event(w, PAY_EV_ATTEMPT_FAILED, 1);
    world_answers(w, ".QUERY.v4", PAY_QUERY_BY_PSP_REFERENCE, w->now_us + 1);
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_status(w, 1, FAILED);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_QUERY, 1), -1);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_MANUAL, 1), -1);
}

static void a_question_that_nobody_answers_gets_a_person(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_FAILED);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_MANUAL, 1), w->now_us + WORLD_PERSON_AFTER);
    world_wait_for(w, PAY_DEADLINE_MANUAL, 1);
    assert_verdict(w, APPLY, "UNKNOWN_TOO_LONG");
    assert_non_null(world_case(w, PAY_CASE_UNKNOWN_TOO_LONG));
    assert_int_equal(world_row_due(w, PAY_DEADLINE_MANUAL, 1), -1);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_QUERY, 1), w->now_us + WORLD_PERSON_AFTER);
}

/* ---------------------------------------------------------------------------------------------- 9
 */

static void note_9_a_void_needs_our_own_cancels_answer_or_a_webhook(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_put(w, 1, PAY_ATTEMPT_AUTHORIZED);
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, IGNORE, "WEAK_CANCEL");
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    world_event(w, PAY_EV_ATTEMPT_CANCELED, 1);
    world_answers(w, ".CANCEL", PAY_QUERY_BY_NONE, w->now_us);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_status(w, 1, CANCELED);
    assert_int_equal(world_attempt(w, 1)->amounts.authorized, 0);
}

static void note_9_not_under_a_capture(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_put(w, 1, PAY_ATTEMPT_AUTHORIZED);
    world_attempt(w, 1)->amounts.capture_reserved = 1;
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "CANCELED_UNDER_CAPTURE");
    world_say(w, PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "CANCELED_UNDER_CAPTURE");
    assert_status(w, 1, AUTHORIZED);
}

static void note_9_our_own_clock_closes_nothing_it_voids_and_asks(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_event(w, PAY_EV_ATTEMPT_AUTHORIZED, 1)->authorization_expires_at_us =
        w->now_us + 100 * SECOND;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_row_due(w, PAY_DEADLINE_AUTHORIZATION, 1), w->now_us + 100 * SECOND);
    world_wait_for(w, PAY_DEADLINE_AUTHORIZATION, 1);
    assert_status(w, 1, AUTHORIZED);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
}

/* ----------------------------------------------------------------------------------- 10, 11, 12 */

static void note_10_below_a_query_one_verifying_query_and_no_case(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
    world_say(w, PAY_EV_ATTEMPT_FAILED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    assert_int_equal(w->snap.case_count, 0);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_QUERY); /* Its answer. */
    assert_int_equal(world_attempt(w, 1)->result_certainty, PAY_EVIDENCE_QUERY);
    world_say(w, PAY_EV_ATTEMPT_FAILED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 0);
}

static void note_10_by_a_query_it_is_a_contradiction(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
    world_say(w, PAY_EV_ATTEMPT_FAILED, 1, PAY_EVIDENCE_QUERY);
    assert_verdict(w, NEEDS_RECONCILIATION, "CONTRADICTION");
    assert_non_null(world_case(w, PAY_CASE_CONTRADICTION));
    assert_status(w, 1, SUCCEEDED);
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 0);
}

static void note_11_a_cancel_of_the_uncaptured_rest_releases_it(void **state)
{
    (void)state;
    struct world *w = &world;
    const enum pay_event_type types[] = {PAY_EV_ATTEMPT_CANCELED,
                                         PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED};

    for (size_t i = 0; i < 2; i++) {
        world_start_manual(w);
        world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
        world_attempt(w, 1)->amounts.captured = WORLD_AMOUNT - 1;
        world_say(w, types[i], 1, PAY_EVIDENCE_WEBHOOK);
        assert_verdict(w, IGNORE, "REST_RELEASED");
        assert_int_equal(w->out.effect_count, 0);
        assert_int_equal(world_attempt(w, 1)->amounts.authorized, WORLD_AMOUNT - 1);
        assert_int_equal(w->snap.case_count, 0);
    }
}

/* Nothing is left over when the rest is being captured. */
static void note_11_what_a_capture_has_reserved_is_no_rest(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
    world_attempt(w, 1)->amounts.captured = 4000;
    world_attempt(w, 1)->amounts.capture_reserved = WORLD_AMOUNT - 4000;
    world_say(w, PAY_EV_ATTEMPT_CANCELED, 1, PAY_EVIDENCE_QUERY);
    assert_verdict(w, NEEDS_RECONCILIATION, "CONTRADICTION");
}

static void note_12_a_reversal_is_booked_published_and_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
    world_event(w, PAY_EV_ATTEMPT_REVERSED, 1)->provider_action_id = PAY_STR("rev_1");
    w->event.amount.amount_minor = 4000;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->out.verdict, PAY_VERDICT_APPLY);
    assert_status(w, 1, SUCCEEDED);
    assert_order(w, SUCCEEDED);
    assert_int_equal(world_attempt(w, 1)->amounts.withdrawn, 4000);
    assert_int_equal(world_attempt(w, 1)->amounts.captured, WORLD_AMOUNT);
    assert_true(world_attempt(w, 1)->amounts_changed);
    assert_int_equal(world_attempt(w, 1)->change, PAY_ROW_UPDATED);
    assert_string_equal(world_attempt(w, 1)->last_accepted_event_id, w->cause);
    assert_int_equal(world_fact(w, PAY_FACT_CAPTURE_REVERSED)->amount.amount_minor, 4000);
    assert_non_null(world_case(w, PAY_CASE_CAPTURE_REVERSED));

    world_event(w, PAY_EV_ATTEMPT_REVERSED, 1)->provider_action_id = PAY_STR("rev_2");
    w->event.amount.amount_minor = 1000;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    world_event(w, PAY_EV_ATTEMPT_REVERSED, 1)->provider_action_id = PAY_STR("rev_1");
    w->event.amount.amount_minor = 4000;
    world_decide(w, PAY_EVIDENCE_QUERY);
    assert_verdict(w, IGNORE, "DUPLICATE");
    assert_int_equal(world_attempt(w, 1)->amounts.withdrawn, 5000);
}

static void note_12_a_reversal_without_an_amount_or_of_too_much_is_refused(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
    world_event(w, PAY_EV_ATTEMPT_REVERSED, 1)->has_amount = false;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "AMOUNT_MISSING");
    world_event(w, PAY_EV_ATTEMPT_REVERSED, 1)->amount.amount_minor = 0;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "AMOUNT_MISMATCH");
    world_attempt(w, 1)->amounts.withdrawn = INT64_MAX;
    world_say(w, PAY_EV_ATTEMPT_REVERSED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "AMOUNT_OVERFLOW");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(note_1_not_sent_closes_the_unsent_gate_and_fails_over),
        cmocka_unit_test(note_1_a_gate_that_was_passed_is_no_proof),
        cmocka_unit_test(note_2_as_many_in_a_row_as_the_psp_needs_then_failed),
        cmocka_unit_test(note_2_every_one_of_the_row_is_needed),
        cmocka_unit_test(note_2_one_asked_earlier_counts_for_nothing_however_late_it_arrives),
        cmocka_unit_test(note_2_a_replay_is_a_send_and_starts_the_count_again),
        cmocka_unit_test(note_2_a_fact_in_between_starts_the_row_again),
        cmocka_unit_test(note_2_never_by_a_search_or_a_replay),
        cmocka_unit_test(note_2_a_bound_reference_makes_it_a_contradiction),
        cmocka_unit_test(note_2_a_reference_in_a_not_found_binds_nothing),
        cmocka_unit_test(note_2_not_once_an_action_was_handed_out),
        cmocka_unit_test(note_2_the_next_attempt_comes_by_itself_only_where_the_route_says_so),
        cmocka_unit_test(note_3_the_deadline_closes_nothing_it_cancels_and_waits_again),
        cmocka_unit_test(
            note_3_canceled_by_a_query_asked_before_the_attempt_was_known_is_a_not_found),
        cmocka_unit_test(note_3_canceled_by_a_cancel_of_what_is_not_known_is_a_not_found),
        cmocka_unit_test(note_3_where_the_psp_cannot_cancel_unpaid_after_its_expiry_closes),
        cmocka_unit_test(note_3_only_an_open_attempt_is_closed_by_the_psps_expiry),
        cmocka_unit_test(note_3_a_canceled_object_that_is_named_is_known_from_then_on),
        cmocka_unit_test(note_3_the_psps_expiry_long_past_without_an_answer_becomes_a_case),
        cmocka_unit_test(note_3_neither_cancel_nor_expiry_stays_blocking_and_becomes_a_case),
        cmocka_unit_test(note_3_a_cancel_that_never_takes_becomes_a_case),
        cmocka_unit_test(note_3_entering_again_makes_a_new_deadline_at_once_if_the_end_has_passed),
        cmocka_unit_test(the_action_is_handed_out_when_it_comes),
        cmocka_unit_test(note_3_every_create_carries_an_expiry_never_later_than_the_orders),
        cmocka_unit_test(note_4_unknown_is_left_by_webhook_or_by_the_first_sends_own_answer),
        cmocka_unit_test(note_4_a_replay_teaches_the_reference_which_is_then_asked_for),
        cmocka_unit_test(what_is_asked_for_two_reasons_is_asked_once),
        cmocka_unit_test(note_5_a_time_out_does_not_undo_a_webhook),
        cmocka_unit_test(note_2_a_second_attempts_sends_are_its_own),
        cmocka_unit_test(note_2_a_second_attempts_reference_is_its_own),
        cmocka_unit_test(note_6_late_money_twice_is_live_once),
        cmocka_unit_test(note_6_late_money_takes_the_order_and_withdraws_the_live_attempt),
        cmocka_unit_test(note_6_late_money_takes_live_again_when_nobody_has_it),
        cmocka_unit_test(note_6_an_unsent_attempt_ends_at_once_when_money_came_elsewhere),
        cmocka_unit_test(note_6_weaker_than_a_webhook_is_a_case_and_a_query),
        cmocka_unit_test(note_6_a_statement_never_moves_a_final_state_by_itself),
        cmocka_unit_test(note_6_a_late_authorization_is_voided_and_a_case),
        cmocka_unit_test(O15_late_success_after_expiry_keeps_the_order_and_needs_a_person),
        cmocka_unit_test(note_7_one_confirm_however_many_times_the_approval_is_reported),
        cmocka_unit_test(note_7_a_second_action_has_a_confirm_of_its_own),
        cmocka_unit_test(gates_are_closed_with_the_attempts_end_whatever_ended_it),
        cmocka_unit_test(a_definite_no_is_one_only_of_the_only_send),
        cmocka_unit_test(a_definite_no_of_the_transaction_is_one_however_often_it_was_sent),
        cmocka_unit_test(note_7_cancel_instead_of_confirm_under_a_money_case),
        cmocka_unit_test(note_7_cancel_instead_of_confirm_under_an_intent),
        cmocka_unit_test(note_7_cancel_instead_of_confirm_beside_another_success),
        cmocka_unit_test(note_7_cancel_instead_of_confirm_after_the_page_closed),
        cmocka_unit_test(note_7_cancel_instead_of_confirm_once_the_order_has_expired),
        cmocka_unit_test(note_7_a_confirm_that_was_not_sent_is_sent_again_by_deadline),
        cmocka_unit_test(note_7_an_unsent_confirm_is_sent_again_ever_more_seldom_until_the_end),
        cmocka_unit_test(note_7_confirms_that_were_left_out_are_as_closed_unsent),
        cmocka_unit_test(note_7_at_the_attempts_end_the_unsent_confirm_is_withdrawn),
        cmocka_unit_test(note_7_where_only_our_confirm_moves_money_never_making_it_is_canceled),
        cmocka_unit_test(note_7_a_second_attempts_confirm_is_its_own),
        cmocka_unit_test(note_8_without_a_page_a_decline_is_canceled_and_only_that_closes_it),
        cmocka_unit_test(note_8_with_a_page_open_it_stays_payable),
        cmocka_unit_test(note_8_an_action_that_was_only_announced_is_no_page),
        cmocka_unit_test(note_8_a_decline_that_comes_twice_is_not_a_second_one),
        cmocka_unit_test(note_8_when_the_route_would_go_on_it_is_canceled_though_a_page_is_open),
        cmocka_unit_test(
            O1_O3_a_late_decline_of_a_first_try_neither_fails_nor_cancels_what_is_paid),
        cmocka_unit_test(a_question_about_what_is_over_waits_for_its_answer),
        cmocka_unit_test(a_question_that_nobody_answers_gets_a_person),
        cmocka_unit_test(note_9_a_void_needs_our_own_cancels_answer_or_a_webhook),
        cmocka_unit_test(note_9_not_under_a_capture),
        cmocka_unit_test(note_9_our_own_clock_closes_nothing_it_voids_and_asks),
        cmocka_unit_test(note_10_below_a_query_one_verifying_query_and_no_case),
        cmocka_unit_test(note_10_by_a_query_it_is_a_contradiction),
        cmocka_unit_test(note_11_a_cancel_of_the_uncaptured_rest_releases_it),
        cmocka_unit_test(note_11_what_a_capture_has_reserved_is_no_rest),
        cmocka_unit_test(note_12_a_reversal_is_booked_published_and_a_case),
        cmocka_unit_test(note_12_a_reversal_without_an_amount_or_of_too_much_is_refused),
    };
    return cmocka_run_group_tests_name("notes", tests, NULL, NULL);
}

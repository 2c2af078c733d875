/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: which events are believed, about which attempt, and what becomes of the others: foreign and
 * orphaned events, accounts, amounts, references; and the events without a cell.
 */
#include "tests/unit/core/world.h"

static struct world world;

static void refer(struct world *w, enum pay_reference_kind kind, const char *main_reference,
                  const char *reference)
{
    w->event.provider_payment_id = pay_str_of(main_reference);
    w->event.references[0] = (struct pay_reference){kind, pay_str_of(reference)};
    w->event.reference_count = reference == NULL ? 0 : 1;
}

static void start_bound(struct world *w)
{
    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1);
    refer(w, PAY_REF_INTENT, "pi_1", "pi_1");
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_int_equal(w->snap.reference_count, 1);
    assert_int_equal(w->references[0].change, PAY_ROW_INSERTED);
    assert_int_equal(w->references[0].bound_at_us, w->now_us);
}

/* ----------------------------------------------------------------------------- foreign and orphan
 */

static void a_reference_not_of_our_form_is_foreign(void **state)
{
    (void)state;
    static const char *const numbers[] = {"order-4711",
                                          "ch_123",
                                          WORLD_PAYMENT,
                                          WORLD_PAYMENT "A00",
                                          WORLD_PAYMENT "C01",
                                          WORLD_PAYMENT "A001",
                                          "01j9zq4v7m3n8p5r2t6w0x1yabA01"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        world_start(&world);
        world_event(&world, PAY_EV_ATTEMPT_SUCCEEDED, 1)->merchant_request_no =
            pay_str_of(numbers[i]);
        world_decide(&world, PAY_EVIDENCE_WEBHOOK);
        assert_verdict(&world, IGNORE, "FOREIGN");
        assert_true(world.out.foreign);
        assert_false(world.out.orphan);
        assert_int_equal(world.out.history_count, 1);
        assert_status(&world, 1, CREATED);
    }
}

static void an_event_for_what_is_not_there_yet_is_an_orphan(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->merchant_request_no = PAY_STR(WORLD_PAYMENT "A02");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_true(w->out.orphan);
    assert_verdict(w, IGNORE, "ORPHAN");
    assert_int_equal(w->out.history_count, 0);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    w->snap.order.exists = false;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_true(w->out.orphan);
    assert_int_equal(w->out.effect_count, 0);
}

static void another_payments_number_is_rejected(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->merchant_request_no =
        PAY_STR(WORLD_OTHER_PAYMENT "A01");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "OF_ANOTHER_PAYMENT");
    assert_true(w->out.security);
}

static void without_our_number_it_is_found_by_job_or_by_a_bound_reference(void **state)
{
    (void)state;
    struct world *w = &world;
    const struct pay_str absent = {NULL, 0};

    start_bound(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    refer(w, PAY_REF_INTENT, "pi_1", NULL);
    w->event.merchant_request_no = absent;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, SUCCEEDED);

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
    w->event.merchant_request_no = absent;
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_status(w, 1, SUCCEEDED);

    start_bound(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->merchant_request_no = PAY_STR(""); /* As absent. */
    refer(w, PAY_REF_CHARGE, NULL, "ch_9");
    w->event.references[1] = (struct pay_reference){PAY_REF_INTENT, PAY_STR("pi_1")};
    w->event.reference_count = 2;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, SUCCEEDED);

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->merchant_request_no = absent;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_true(w->out.orphan);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    world_answers(w, ".SUBMIT", PAY_QUERY_BY_NONE, w->now_us);
    w->event.merchant_request_no = absent;
    w->event.call.job_id.len = 20; /* A part of it names nothing. */
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_true(w->out.orphan);
}

static void another_account_or_psp_is_rejected(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int i = 0; i < 2; i++) {
        world_start(w);
        world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
        *(i == 0 ? &w->event.psp : &w->event.psp_account) = PAY_STR("another");
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
        assert_verdict(w, REJECT, "WRONG_ACCOUNT");
        assert_true(w->out.security);
        assert_status(w, 1, CREATED);
    }
}

/* ---------------------------------------------------------------------------------------- amounts
 */

static void assert_mismatch(struct world *w, const char *reason)
{
    assert_verdict(w, REJECT, reason);
    assert_true(w->out.security);
    assert_status(w, 1, SUBMITTED);
    assert_order(w, PROCESSING);
    assert_int_equal(world_attempt(w, 1)->amounts.captured, 0);
    assert_non_null(world_case(w, PAY_CASE_AMOUNT_MISMATCH));
}

static void A13_under_and_over_payment_are_rejected_with_one_case(void **state)
{
    (void)state;
    struct world *w = &world;
    const int64_t wrong[] = {WORLD_AMOUNT - 1, WORLD_AMOUNT + 1, 0, -WORLD_AMOUNT, INT64_MAX};

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->amount.amount_minor = wrong[i];
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
        assert_mismatch(w, "AMOUNT_MISMATCH");
    }
    assert_int_equal(w->snap.case_count, 1);
    assert_int_equal(w->cases[0].change, PAY_ROW_UPDATED);
    world_say(w, PAY_EV_ATTEMPT_FAILED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->snap.attempt_count, 1); /* A money case blocks the next attempt. */
    assert_string_equal(w->snap.order.reason_code, "AWAITING_METHOD");
}

static void another_currency_of_the_same_number_is_rejected(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    memcpy(world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->amount.currency, "USD", 4);
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_mismatch(w, "AMOUNT_MISMATCH");
}

static void a_success_without_an_amount_is_rejected(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->has_amount = false;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_mismatch(w, "AMOUNT_MISSING");
}

/* --------------------------------------------------------------------------------- authorizations
 */

static void with_automatic_capture_authorized_is_progress(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_AUTHORIZED, 1)->has_amount = false;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, PROCESSING);
    assert_int_equal(world_attempt(w, 1)->amounts.authorized, 0);
}

static void O7_as_the_psps_last_word_authorized_is_the_success(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_AUTHORIZED, 1)->success_when_automatic = true;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_order(w, SUCCEEDED);
    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_AUTHORIZED, 1)->success_when_automatic = true;
    w->event.amount.amount_minor--;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "AMOUNT_MISMATCH"); /* O7: the success carries the exact amount. */
}

static void with_manual_capture_the_capture_of_the_whole_is_the_success(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start_manual(w);
    world_put(w, 1, PAY_ATTEMPT_AUTHORIZED);
    assert_int_equal(world_attempt(w, 1)->amounts.authorized, WORLD_AMOUNT);
    world_event(w, PAY_EV_CAPTURE_SUCCEEDED, 1)->amount.amount_minor = WORLD_AMOUNT - 1;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "NOT_SUPPORTED_YET");
    assert_status(w, 1, AUTHORIZED);
    world_say(w, PAY_EV_CAPTURE_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, SUCCEEDED);
    assert_int_equal(world_attempt(w, 1)->amounts.captured, WORLD_AMOUNT);
    world_start(w);
    world_say(w, PAY_EV_CAPTURE_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, IGNORE, "NOT_SUPPORTED_YET");
}

/* ------------------------------------------------------------------------------------- references
 */

static void a_second_object_under_our_number_is_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    start_bound(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    refer(w, PAY_REF_INTENT, "pi_2", "pi_2");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "UNEXPECTED_REFERENCE");
    assert_non_null(world_case(w, PAY_CASE_UNEXPECTED_REFERENCE));
    assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), 1);
    assert_status(w, 1, PROCESSING);
    assert_int_equal(w->snap.reference_count, 1); /* Bound, it would be believed the next time. */
}

static void a_second_object_neither_fails_nor_binds_the_first(void **state)
{
    (void)state;
    const enum pay_event_type types[] = {PAY_EV_ATTEMPT_FAILED, PAY_EV_ATTEMPT_CANCELED,
                                         PAY_EV_ATTEMPT_DECLINED, PAY_EV_ATTEMPT_ACTION_REQUIRED};
    for (size_t i = 0; i < 4; i++) {
        struct world *w = &world;
        start_bound(w);
        world_event(w, types[i], 1);
        refer(w, PAY_REF_INTENT, "pi_2", "pi_2");
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
        assert_verdict(w, IGNORE, "UNEXPECTED_REFERENCE");
        assert_status(w, 1, PROCESSING);
        assert_int_equal(w->out.effect_count, 0);
        assert_int_equal(w->snap.reference_count, 1);
    }
}

/* The main reference decides, whatever else of the known object the event names. */
static void another_main_reference_is_a_case_beside_a_known_charge(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int listed = 0; listed < 2; listed++) {
        world_start(w);
        world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1);
        refer(w, PAY_REF_CHARGE, "pi_1", "ch_1");
        if (listed) {
            w->event.references[1] = (struct pay_reference){PAY_REF_INTENT, PAY_STR("pi_1")};
            w->event.reference_count = 2;
        }
        world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
        assert_int_equal(w->snap.reference_count, 2);
        world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
        refer(w, PAY_REF_CHARGE, "pi_2", "ch_1");
        if (listed) {
            w->event.references[1] = (struct pay_reference){PAY_REF_INTENT, PAY_STR("pi_2")};
            w->event.reference_count = 2;
        }
        world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
        assert_verdict(w, NEEDS_RECONCILIATION, "UNEXPECTED_REFERENCE");
    }
}

static void a_main_reference_learned_later_is_no_surprise_beside_a_known_charge(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1);
    refer(w, PAY_REF_CHARGE, NULL, "ch_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    refer(w, PAY_REF_INTENT, "pi_1", "pi_1");
    w->event.references[1] = (struct pay_reference){PAY_REF_CHARGE, PAY_STR("ch_1")};
    w->event.reference_count = 2;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, SUCCEEDED);
}

static void the_same_objects_next_try_is_believed_and_bound(void **state)
{
    (void)state;
    struct world *w = &world;

    start_bound(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->same_object = true;
    refer(w, PAY_REF_INTENT, "pi_2", "pi_2");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, SUCCEEDED);
    assert_int_equal(w->snap.reference_count, 2);
}

static void a_charge_of_the_known_intent_is_no_surprise(void **state)
{
    (void)state;
    struct world *w = &world;

    start_bound(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    refer(w, PAY_REF_CHARGE, "pi_1", "ch_9");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, SUCCEEDED);
    assert_int_equal(w->snap.reference_count, 2);
}

static void a_charge_of_nothing_known_is_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    start_bound(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    refer(w, PAY_REF_CHARGE, NULL, "ch_9");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "UNEXPECTED_REFERENCE");
}

static void a_reference_of_another_payment_is_a_case_and_never_bound(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1);
    refer(w, PAY_REF_INTENT, "pi_7", "pi_7");
    w->input.foreign_reference = true;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "UNEXPECTED_REFERENCE");
    assert_int_equal(w->snap.reference_count, 0);
}

static void a_sibling_attempts_reference_is_a_case(void **state)
{
    (void)state;
    struct world *w = &world;

    start_bound(w);
    world_say(w, PAY_EV_ATTEMPT_FAILED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->snap.attempt_count, 2);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 2);
    refer(w, PAY_REF_INTENT, "pi_1", "pi_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "UNEXPECTED_REFERENCE");
    assert_status(w, 2, CREATED);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 2);
    refer(w, PAY_REF_INTENT, NULL, "pi_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, NEEDS_RECONCILIATION, "UNEXPECTED_REFERENCE");
}

static void a_reference_that_does_not_fit_is_not_bound(void **state)
{
    (void)state;
    struct world *w = &world;
    static char huge[PAY_REFERENCE_SIZE + 1];

    memset(huge, 'x', PAY_REFERENCE_SIZE);
    world_start(w);
    world_event(w, PAY_EV_ATTEMPT_PROCESSING, 1);
    refer(w, PAY_REF_INTENT, huge, huge);
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_status(w, 1, PROCESSING);
    assert_int_equal(w->snap.reference_count, 0);
}

/* --------------------------------------------------------------------------------- without a cell
 */

static void a_failed_query_counts_and_touches_no_state(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int s = 0; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        world_start_manual(w);
        world_put(w, 1, (enum pay_attempt_status)s);
        world_say(w, PAY_EV_QUERY_FAILED, 1, PAY_EVIDENCE_QUERY);
        assert_verdict(w, IGNORE, "QUERY_FAILED");
        assert_int_equal(world_attempt(w, 1)->status, s);
        assert_int_equal(world_attempt(w, 1)->query_count, 1);
        assert_int_equal(world_attempt(w, 1)->change, PAY_ROW_COUNTED);
        assert_int_equal(w->out.effect_count, 0); /* The state's own row asks next. */
    }
}

static void a_refused_cancel_is_a_reason_to_ask_now(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int s = 0; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        world_start_manual(w);
        world_put(w, 1, (enum pay_attempt_status)s);
        world_say(w, PAY_EV_CANCEL_REFUSED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
        assert_verdict(w, IGNORE, "CANCEL_REFUSED");
        assert_int_equal(world_attempt(w, 1)->status, s);
        assert_int_equal(world_count_jobs(w, PAY_JOB_QUERY), s == PAY_ATTEMPT_SUCCEEDED ? 0 : 1);
    }
}

static void what_is_not_decided_yet_is_kept(void **state)
{
    (void)state;
    struct world *w = &world;

    for (int type = PAY_EV_CAPTURE_SUBMITTED; type <= PAY_EV_OTHER; type++) {
        const bool is_decided = type == PAY_EV_CANCEL_REFUSED || type == PAY_EV_QUERY_FAILED;
        world_start(w);
        world_put(w, 1, PAY_ATTEMPT_SUCCEEDED);
        world_say(w, (enum pay_event_type)type, 1, PAY_EVIDENCE_WEBHOOK);
        assert_int_equal(w->out.verdict, PAY_VERDICT_IGNORE);
        assert_int_equal(w->out.history_count, 1);
        assert_int_equal(w->out.effect_count, 0);
        if (!is_decided) {
            assert_string_equal(w->out.reason_code,
                                type == PAY_EV_OTHER ? "OTHER" : "NOT_SUPPORTED_YET");
        }
    }
    static const enum pay_event_type none[] = {PAY_EV_UNRECOGNIZED, PAY_EV_COUNT};
    for (size_t i = 0; i < 2; i++) {
        world_say(w, none[i], 1, PAY_EVIDENCE_WEBHOOK);
        assert_verdict(w, REJECT, "UNRECOGNIZED_EVENT");
    }
}

static void unpaid_by_query_with_nothing_to_hand_out_is_canceled(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_UNKNOWN);
    world_say(w, PAY_EV_ATTEMPT_ACTION_REQUIRED, 1, PAY_EVIDENCE_QUERY);
    assert_status(w, 1, REQUIRES_ACTION);
    assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL), 1);
}

static void a_word_repeated_with_more_weight_makes_the_state_more_certain(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_int_equal(world_attempt(w, 1)->result_certainty, PAY_EVIDENCE_SYNC_RESPONSE);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->out.verdict, PAY_VERDICT_IGNORE);
    assert_int_equal(world_attempt(w, 1)->result_certainty, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(world_attempt(w, 1)->change, PAY_ROW_UPDATED);
    world_say(w, PAY_EV_ATTEMPT_SUCCEEDED, 1, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_int_equal(world_attempt(w, 1)->result_certainty, PAY_EVIDENCE_WEBHOOK);
    world_say(w, PAY_EV_ATTEMPT_PROCESSING, 1, PAY_EVIDENCE_QUERY); /* Another word. */
    assert_int_equal(world_attempt(w, 1)->result_certainty, PAY_EVIDENCE_WEBHOOK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reference_not_of_our_form_is_foreign),
        cmocka_unit_test(an_event_for_what_is_not_there_yet_is_an_orphan),
        cmocka_unit_test(another_payments_number_is_rejected),
        cmocka_unit_test(without_our_number_it_is_found_by_job_or_by_a_bound_reference),
        cmocka_unit_test(another_account_or_psp_is_rejected),
        cmocka_unit_test(A13_under_and_over_payment_are_rejected_with_one_case),
        cmocka_unit_test(another_currency_of_the_same_number_is_rejected),
        cmocka_unit_test(a_success_without_an_amount_is_rejected),
        cmocka_unit_test(with_automatic_capture_authorized_is_progress),
        cmocka_unit_test(O7_as_the_psps_last_word_authorized_is_the_success),
        cmocka_unit_test(with_manual_capture_the_capture_of_the_whole_is_the_success),
        cmocka_unit_test(a_second_object_under_our_number_is_a_case),
        cmocka_unit_test(a_second_object_neither_fails_nor_binds_the_first),
        cmocka_unit_test(another_main_reference_is_a_case_beside_a_known_charge),
        cmocka_unit_test(a_main_reference_learned_later_is_no_surprise_beside_a_known_charge),
        cmocka_unit_test(the_same_objects_next_try_is_believed_and_bound),
        cmocka_unit_test(a_charge_of_the_known_intent_is_no_surprise),
        cmocka_unit_test(a_charge_of_nothing_known_is_a_case),
        cmocka_unit_test(a_reference_of_another_payment_is_a_case_and_never_bound),
        cmocka_unit_test(a_sibling_attempts_reference_is_a_case),
        cmocka_unit_test(a_reference_that_does_not_fit_is_not_bound),
        cmocka_unit_test(a_failed_query_counts_and_touches_no_state),
        cmocka_unit_test(a_refused_cancel_is_a_reason_to_ask_now),
        cmocka_unit_test(what_is_not_decided_yet_is_kept),
        cmocka_unit_test(unpaid_by_query_with_nothing_to_hand_out_is_canceled),
        cmocka_unit_test(a_word_repeated_with_more_weight_makes_the_state_more_certain),
    };
    return cmocka_run_group_tests_name("admit", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: disputes: every cell of their table, as it stands in the requirement's text and as it
 * happens; funds move once each way and never the payment's state.
 */
#include "tests/unit/core/table_text.h"
#include "tests/unit/core/world.h"

#include "common/core/dispute_table.h"

static struct table_text expected;
static struct world world;

static const enum pay_event_type types[PAY_DE_COUNT] = {
    [PAY_DE_OPENED] = PAY_EV_DISPUTE_OPENED,
    [PAY_DE_EVIDENCE_DUE] = PAY_EV_DISPUTE_EVIDENCE_DUE,
    [PAY_DE_UNDER_REVIEW] = PAY_EV_DISPUTE_UNDER_REVIEW,
    [PAY_DE_WON] = PAY_EV_DISPUTE_WON,
    [PAY_DE_LOST] = PAY_EV_DISPUTE_LOST,
    [PAY_DE_CLOSED] = PAY_EV_DISPUTE_CLOSED,
    [PAY_DE_FUNDS_WITHDRAWN] = PAY_EV_DISPUTE_FUNDS_WITHDRAWN,
    [PAY_DE_FUNDS_REINSTATED] = PAY_EV_DISPUTE_FUNDS_REINSTATED,
};

static struct pay_event *begin(struct world *w, enum pay_event_type type, int64_t amount_minor)
{
    struct pay_event *event = world_event(w, type, 1);
    event->provider_action_id = PAY_STR("dp_1");
    event->has_amount = true;
    event->amount.amount_minor = amount_minor;
    return event;
}

static void say(struct world *w, enum pay_event_type type, int64_t amount_minor)
{
    begin(w, type, amount_minor);
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
}

static int row_of(const char *name)
{
    for (int row = 0; row < PAY_DISPUTE_ROW_COUNT; row++) {
        if (strcmp(pay_dispute_row_name(row), name) == 0) {
            return row;
        }
    }
    fail_msg("no row %s", name);
    return -1;
}

static enum pay_dispute_event event_of(const char *name)
{
    for (int e = 0; e < PAY_DE_COUNT; e++) {
        if (strcmp(pay_dispute_event_name((enum pay_dispute_event)e), name) == 0) {
            return (enum pay_dispute_event)e;
        }
    }
    fail_msg("no event %s", name);
    return PAY_DE_COUNT;
}

static void expect(struct world *w, const char *cell, const char *now)
{
    const char *verdict = pay_verdict_name(w->out.verdict);
    const char *status = pay_dispute_status_name(w->disputes[0].status);

    assert_int_equal(w->snap.dispute_count, 1);
    if (strncmp(cell, "→", strlen("→")) == 0) {
        assert_string_equal(verdict, "APPLY");
        assert_string_equal(status, cell + strlen("→"));
        return;
    }
    assert_string_equal(status, now);
    assert_string_equal(verdict, cell[0] == 'N'               ? "NEEDS_RECONCILIATION"
                                 : strcmp(cell, "apply") == 0 ? "APPLY"
                                                              : "IGNORE");
    assert_int_equal(world_case(w, PAY_CASE_CONTRADICTION) != NULL, cell[0] == 'N');
}

static void every_cell_stands_in_the_table_and_happens(void **state)
{
    (void)state;
    assert_int_equal(expected.row_count, 1 + PAY_DISPUTE_ROW_COUNT);
    assert_int_equal(expected.column_count, 1 + PAY_DE_COUNT);
    for (size_t r = 1; r < expected.row_count; r++) {
        for (size_t c = 1; c < expected.column_count; c++) {
            const int row = row_of(expected.cells[r][0]);
            const enum pay_dispute_event event = event_of(expected.cells[0][c]);
            char printed[64];
            pay_dispute_table_print(pay_dispute_table_cell(row, event), printed);
            assert_string_equal(printed, expected.cells[r][c]);
            world_paid(&world);
            if (row != PAY_DISPUTE_NONE) {
                say(&world, types[row], 4000); /* Rows and columns share their order. */
            }
            say(&world, types[event], 4000);
            expect(&world, expected.cells[r][c], expected.cells[r][0]);
            assert_order(&world, SUCCEEDED); /* It never touches the payment's state. */
        }
    }
}

static void funds_move_withdrawn_once_each_way(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    say(w, PAY_EV_DISPUTE_OPENED, 4000);
    assert_int_equal(world_count_facts(w, PAY_FACT_DISPUTE_OPENED), 1);
    for (int i = 0; i < 2; i++) {
        say(w, PAY_EV_DISPUTE_FUNDS_WITHDRAWN, 4000);
        assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 4000);
    }
    assert_verdict(w, IGNORE, "STALE");
    world_money_command(w, PAY_CMD_REQUEST_REFUND, 6001);
    assert_verdict(w, REJECT, "EXCEEDS_REFUNDABLE");
    for (int i = 0; i < 2; i++) {
        say(w, PAY_EV_DISPUTE_FUNDS_REINSTATED, 4000);
        assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    }
    say(w, PAY_EV_DISPUTE_WON, 4000);
    assert_int_equal(world_count_facts(w, PAY_FACT_DISPUTE_CLOSED), 1);
    assert_int_equal(world_fact(w, PAY_FACT_DISPUTE_CLOSED)->dispute_index, 0);
}

/* However little it is. */
static void one_unit_moves_like_all_of_it(void **state)
{
    (void)state;
    struct world *w = &world;
    static const enum pay_event_type moves[] = {PAY_EV_DISPUTE_FUNDS_WITHDRAWN,
                                                PAY_EV_DISPUTE_FUNDS_REINSTATED};
    world_paid(w);
    for (int i = 0; i < 2; i++) {
        say(w, moves[i], 1);
        assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 1 - i);
        assert_true(world_attempt(w, 1)->amounts_changed);
        assert_int_equal(world_attempt(w, 1)->change, PAY_ROW_UPDATED);
    }
}

/* Whichever report comes first. */
static void reinstated_before_withdrawn_ends_the_same(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    say(w, PAY_EV_DISPUTE_FUNDS_REINSTATED, 4000);
    say(w, PAY_EV_DISPUTE_FUNDS_WITHDRAWN, 4000);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    assert_int_equal(w->disputes[0].funds, PAY_FUNDS_REINSTATED);
}

static void an_outcome_may_say_that_funds_moved(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    begin(w, PAY_EV_DISPUTE_LOST, 4000)->dispute =
        (struct pay_dispute_detail){.is_set = true, .funds = PAY_FUNDS_WITHDRAWN};
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 4000);
    assert_int_equal(world_fact(w, PAY_FACT_DISPUTE_CLOSED)->funds, PAY_FUNDS_WITHDRAWN);
    assert_int_equal(world_count_facts(w, PAY_FACT_DISPUTE_OPENED), 1);
    say(w, PAY_EV_DISPUTE_FUNDS_REINSTATED, 4001);
    assert_verdict(w, NEEDS_RECONCILIATION, "FUNDS_MISMATCH");
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 4000);
}

static void an_inquiry_moves_no_money_until_it_is_more(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    begin(w, PAY_EV_DISPUTE_OPENED, 4000)->dispute = (struct pay_dispute_detail){
        .is_set = true, .is_inquiry = true, .evidence_due_at_us = world.now_us + 90 * SECOND};
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_true(w->disputes[0].is_inquiry);
    assert_amounts(w, 1, 10000, 0, 10000, 0, 0, 0);
    world_wait_for_id(w, PAY_DEADLINE_DISPUTE, world_id("D01"));
    assert_verdict(w, IGNORE, "EVIDENCE_TIME_OVER");
    say(w, PAY_EV_DISPUTE_FUNDS_WITHDRAWN, 4000);
    assert_false(w->disputes[0].is_inquiry);
}

/* Also in a report that tells nothing else. */
static void new_details_are_kept(void **state)
{
    (void)state;
    struct world *w = &world;
    struct pay_dispute_detail detail = {.is_set = true, .is_inquiry = true};

    world_paid(w);
    begin(w, PAY_EV_DISPUTE_OPENED, 4000)->dispute = detail;
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    for (int i = 0; i < 3; i++) {
        detail.is_inquiry = i < 1;
        detail.evidence_due_at_us = i < 2 ? 0 : w->now_us + SECOND;
        begin(w, PAY_EV_DISPUTE_OPENED, 4000)->dispute = detail;
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
        assert_verdict(w, IGNORE, "STALE");
        assert_int_equal(w->disputes[0].change, i == 0 ? PAY_ROW_SAME : PAY_ROW_UPDATED);
    }
    assert_int_equal(world_row_of(w, PAY_DEADLINE_DISPUTE, world_id("D01")), w->now_us + SECOND);
    w->now_us += SECOND;
    say(w, PAY_EV_DISPUTE_OPENED, 4000); /* Its time is over: nothing waits. */
    assert_int_equal(world_row_of(w, PAY_DEADLINE_DISPUTE, world_id("D01")), -1);
}

static void what_it_is_called_must_be_kept(void **state)
{
    (void)state;
    struct world *w = &world;
    static char name[PAY_REFERENCE_SIZE];

    memset(name, 'x', sizeof name);
    const struct pay_str names[] = {
        {name, 0}, {name, sizeof name}, {name, sizeof name - 1}, {NULL, 0}};
    world_paid(w);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        begin(w, PAY_EV_DISPUTE_OPENED, 0)->provider_action_id = names[i]; /* Of no amount yet. */
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
        assert_string_equal(w->out.reason_code, i == 2 ? "OPENED" : "DISPUTE_NAMELESS");
    }
}

static void what_cannot_be_believed_is_rejected(void **state)
{
    (void)state;
    struct world *w = &world;

    world_paid(w);
    begin(w, PAY_EV_DISPUTE_FUNDS_WITHDRAWN, 4000);
    world_decide(w, PAY_EVIDENCE_SYNC_RESPONSE);
    assert_verdict(w, REJECT, "EVIDENCE_NOT_ADMISSIBLE");
    begin(w, PAY_EV_DISPUTE_OPENED, 4000)->provider_action_id = (struct pay_str){NULL, 0};
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "DISPUTE_NAMELESS");
    begin(w, PAY_EV_DISPUTE_OPENED, 4000)->psp = PAY_STR("other");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "WRONG_ACCOUNT");
    begin(w, PAY_EV_DISPUTE_OPENED, 4000)->amount = (struct pay_money){4000, "USD"};
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_verdict(w, REJECT, "AMOUNT_MISMATCH");
    assert_non_null(world_case(w, PAY_CASE_AMOUNT_MISMATCH));
    assert_int_equal(w->snap.dispute_count, 0);
    w->snap.order.dispute_count = PAY_DISPUTES_MAX;
    say(w, PAY_EV_DISPUTE_OPENED, 4000);
    assert_verdict(w, NEEDS_RECONCILIATION, "LIMIT");
    assert_non_null(world_case(w, PAY_CASE_CONTRADICTION));
    assert_int_equal(world_case(w, PAY_CASE_CONTRADICTION)->proposed_refund_minor, 0);
    w->snap.keeps_actions = false;
    say(w, PAY_EV_DISPUTE_OPENED, 4000);
    assert_verdict(w, IGNORE, "NOT_SUPPORTED_YET");
}

/* Without our number: by the payment's reference, then by its own. */
static void it_is_found_by_the_psps_names(void **state)
{
    (void)state;
    struct world *w = &world;

    world_start(w);
    world_keep_actions(w);
    world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
    world_event(w, PAY_EV_ATTEMPT_SUCCEEDED, 1)->provider_payment_id = PAY_STR("pi_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    begin(w, PAY_EV_DISPUTE_OPENED, 4000)->merchant_request_no = (struct pay_str){NULL, 0};
    w->event.provider_payment_id = PAY_STR("pi_1");
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->snap.dispute_count, 1);
    begin(w, PAY_EV_DISPUTE_WON, 4000)->merchant_request_no = (struct pay_str){NULL, 0};
    world_decide(w, PAY_EVIDENCE_WEBHOOK);
    assert_int_equal(w->disputes[0].status, PAY_DISPUTE_WON);
}

static void what_is_no_column_has_no_name(void **state)
{
    (void)state;
    enum pay_dispute_event event = PAY_DE_COUNT;

    assert_string_equal(pay_dispute_event_name(PAY_DE_COUNT), "?");
    for (int type = 0; type <= PAY_EV_COUNT; type++) {
        const bool is_dispute = type >= PAY_EV_DISPUTE_OPENED && type <= PAY_EV_DISPUTE_CLOSED;
        assert_int_equal(pay_dispute_column((enum pay_event_type)type, &event), is_dispute);
    }
}

static int read_expected(void **state)
{
    (void)state;
    table_text_read(&expected, "dispute \\ event");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_stands_in_the_table_and_happens),
        cmocka_unit_test(funds_move_withdrawn_once_each_way),
        cmocka_unit_test(one_unit_moves_like_all_of_it),
        cmocka_unit_test(reinstated_before_withdrawn_ends_the_same),
        cmocka_unit_test(an_outcome_may_say_that_funds_moved),
        cmocka_unit_test(an_inquiry_moves_no_money_until_it_is_more),
        cmocka_unit_test(new_details_are_kept),
        cmocka_unit_test(what_it_is_called_must_be_kept),
        cmocka_unit_test(what_cannot_be_believed_is_rejected),
        cmocka_unit_test(it_is_found_by_the_psps_names),
        cmocka_unit_test(what_is_no_column_has_no_name),
    };
    return cmocka_run_group_tests_name("dispute", tests, read_expected, NULL);
}

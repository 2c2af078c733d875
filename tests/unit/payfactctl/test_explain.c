/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: rows become sentences that a person on the phone can say, and always name who acts next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tools/payfactctl/explain_render.h"

#define PAYMENT "01JD0000000000000000000001"
#define S INT64_C(1000000)
#define NOW (INT64_C(1764504000) * S) /* 2025-11-30 12:00:00 */
#define ROWS(array_) {(array_), sizeof(array_) / sizeof((array_)[0]), false}

struct fixture {
    struct pay_explain explain;
    struct pay_explain_order order;
    struct pay_explain_attempt attempt;
    struct pay_explain_deadline deadlines[3];
    struct pay_buf out;
};
static struct fixture fixture;

/* A payment whose one attempt is in the given status. */
static void set(const char *order_status, const char *attempt_status)
{
    struct fixture *f = &fixture;
    f->order.status = pay_str_of(order_status);
    f->attempt.status = pay_str_of(attempt_status);
    f->explain.lists[PAY_EXPLAIN_ATTEMPTS] =
        (struct pay_explain_rows){&f->attempt, attempt_status == NULL ? 0 : 1, false};
}

static int make(void **state)
{
    struct fixture *f = &fixture;
    (void)state;
    memset(f, 0, sizeof *f);
    (void)snprintf(f->explain.payment_id, sizeof f->explain.payment_id, PAYMENT);
    f->explain.now_us = NOW;
    f->order = (struct pay_explain_order){
        .payment_id = PAY_STR(PAYMENT),
        .merchant_id = PAY_STR("acme"),
        .merchant_order_no = PAY_STR("O-1"),
        .amount_minor = 2599,
        .currency = PAY_STR("EUR"),
        .capture_mode = PAY_STR("AUTOMATIC"),
        .intent = PAY_STR("NONE"),
        .created_by = PAY_STR("shop"),
        .expires_at = NOW + 600 * S,
    };
    f->attempt = (struct pay_explain_attempt){
        .attempt_id = PAY_STR(PAYMENT "A01"),
        .psp = PAY_STR("stripe"),
        .psp_account = PAY_STR("stripe-a"),
        .method = PAY_STR("card"),
        .currency = PAY_STR("EUR"),
        .amount_minor = 2599,
        .result_certainty = PAY_EVIDENCE_LOCAL,
        .query_count = 4,
        .live = true,
        .authorization_expires_at = NOW + 7200 * S,
    };
    static const char *const kinds[] = {"QUERY", "MANUAL", "ACTION"};
    for (size_t i = 0; i < 3; i++) {
        f->deadlines[i] = (struct pay_explain_deadline){.kind = pay_str_of(kinds[i]),
                                                        .aggregate_id = PAY_STR(PAYMENT "A01"),
                                                        .due_at = NOW + (int64_t)(30 + i) * S};
    }
    f->explain.lists[PAY_EXPLAIN_ORDER] = (struct pay_explain_rows){&f->order, 1, false};
    f->explain.lists[PAY_EXPLAIN_DEADLINES] = (struct pay_explain_rows)ROWS(f->deadlines);
    f->out = pay_buf_make(1 << 20);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    pay_buf_free(&fixture.out);
    return 0;
}

static const char *text(void)
{
    pay_buf_reset(&fixture.out);
    pay_explain_text(&fixture.explain, &fixture.out);
    assert_false(fixture.out.failed);
    return (const char *)fixture.out.data;
}

static void must_hold(const char *text, const char *says)
{
    if (strstr(text, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, says);
    }
}

static void must_say(const char *what)
{
    must_hold(text(), what);
}

static void who_acts_next_by_the_attempts_state(void **state)
{
    (void)state;
    static const struct {
        const char *order, *attempt, *cancel, *who, *says;
    } cases[] = {
        {"PROCESSING", "CREATED", NULL, "payfact", "payfact sends A01 to stripe-a"},
        {"PROCESSING", "SUBMITTED", NULL, "psp", "stripe-a must say how A01 ends"},
        {"PROCESSING", "PROCESSING", NULL, "psp", "stripe-a must say how A01 ends"},
        {"PROCESSING", "UNKNOWN", NULL, "payfact",
         "recovery asks stripe-a about A01 at 2025-11-30 12:00:30.000 (in 30 s) (asked 4 times); a"
         " person gets it at 2025-11-30 12:00:31.000"},
        {"REQUIRES_ACTION", "REQUIRES_ACTION", NULL, "customer",
         "the customer must act on A01 until 2025-11-30 12:00:32.000 (in 32 s)"},
        {"REQUIRES_ACTION", "REQUIRES_ACTION", "MERCHANT", "psp",
         "stripe-a must confirm that A01 is cancelled (MERCHANT)"},
        {"AUTHORIZED", "AUTHORIZED", NULL, "merchant",
         "the merchant must capture or cancel A01 until 2025-11-30 14:00:00.000 (in 2 h)"},
        {"SUCCEEDED", "SUCCEEDED", NULL, "nobody", "nobody has to act: the payment is SUCCEEDED"},
        {"CANCELED", "CANCELED", NULL, "nobody", "nobody has to act: the payment is CANCELED"},
        {"PROCESSING", "FAILED", NULL, "merchant", "the merchant must start an attempt"},
        {"CREATED", NULL, NULL, "merchant", "before 2025-11-30 12:10:00.000 (in 10 min)"},
        {"EXPIRED", NULL, NULL, "nobody", "nobody has to act: the payment is EXPIRED"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pay_explain_next next[PAY_EXPLAIN_NEXT_MAX];
        fixture.attempt.cancel_cause = pay_str_of(cases[i].cancel);
        set(cases[i].order, cases[i].attempt);
        assert_int_equal(pay_explain_next(&fixture.explain, next), 1);
        assert_string_equal(next[0].who, cases[i].who);
        must_hold(next[0].what, cases[i].says);
    }
}

static void people_come_first(void **state)
{
    (void)state;
    const struct pay_explain_case cases[] = {
        {.case_id = PAY_STR(PAYMENT ".LATE_SUCCESS.1"),
         .kind = PAY_STR("LATE_SUCCESS"),
         .status = PAY_STR("OPEN"),
         .aggregate_id = PAY_STR(PAYMENT "A01"),
         .proposed_refund_minor = 2599,
         .opened_at = NOW - 7200 * S},
        {.case_id = PAY_STR(PAYMENT ".ORPHAN.1"),
         .kind = PAY_STR("ORPHAN"),
         .status = PAY_STR("RESOLVED"),
         .aggregate_id = PAY_STR(PAYMENT),
         .opened_at = NOW},
    };
    const struct pay_explain_outbox outbox[] = {
        {.id = 7, .topic = PAY_STR("events"), .created_at = NOW},
        {.id = 6,
         .topic = PAY_STR("events"),
         .created_at = NOW - 5 * S,
         .dead_at = NOW,
         .dead_reason = PAY_STR("MSG_SIZE_TOO_LARGE")},
    };
    const struct pay_explain_approval approvals[] = {
        {.request_id = PAY_STR("op/c1"),
         .command_type = PAY_STR("REQUEST_REFUND"),
         .aggregate_id = PAY_STR(PAYMENT "A01"),
         .reason_code = PAY_STR("X"),
         .requested_by = PAY_STR("op"),
         .status = PAY_STR("PENDING"),
         .approvals = 1,
         .expires_at = NOW + 60 * S},
    };
    struct pay_explain_next next[PAY_EXPLAIN_NEXT_MAX];
    set("PROCESSING", "UNKNOWN");
    fixture.explain.lists[PAY_EXPLAIN_CASES] = (struct pay_explain_rows)ROWS(cases);
    fixture.explain.lists[PAY_EXPLAIN_OUTBOX] = (struct pay_explain_rows)ROWS(outbox);
    fixture.explain.lists[PAY_EXPLAIN_APPROVALS] = (struct pay_explain_rows)ROWS(approvals);
    assert_int_equal(pay_explain_next(&fixture.explain, next), 5);
    assert_non_null(strstr(next[0].what, "outbox row 6 (events, refused: MSG_SIZE_TOO_LARGE)"));
    assert_non_null(strstr(next[1].what, "must resolve case " PAYMENT ".LATE_SUCCESS.1"
                                         " (LATE_SUCCESS), open since 2025-11-30 10:00:00.000"
                                         " (2 h ago), proposed refund: 25.99 EUR"));
    assert_non_null(strstr(next[2].what, "op/c1 (REQUEST_REFUND, 1 of 2 approvals)"));
    assert_non_null(strstr(next[3].what, "recovery asks stripe-a"));
    assert_non_null(strstr(next[4].what, "the publisher has 1 message(s)"));
    must_say(
        "LATE_SUCCESS.1 OPEN about A01, opened 2025-11-30 10:00:00.000, proposed refund 25.99");
}

static void history_tells_verdict_evidence_repeats_and_facts(void **state)
{
    (void)state;
    const struct pay_explain_history history[] = {
        {.decided_at = NOW,
         .aggregate = PAY_STR("ATTEMPT"),
         .aggregate_id = PAY_STR(PAYMENT "A01"),
         .from_status = PAY_STR("UNKNOWN"),
         .to_status = PAY_STR("SUCCEEDED"),
         .verdict = PAY_STR("APPLY"),
         .event_type = PAY_STR("SUC"),
         .event_id = PAY_STR("in-1"),
         .published_event_id = PAY_STR("PaymentSucceeded/x/1"),
         .published_sequence = 2,
         .source = PAY_STR("WEBHOOK"),
         .evidence_level = PAY_EVIDENCE_WEBHOOK,
         .reason_code = PAY_STR("SUC")},
        {.decided_at = NOW + S,
         .aggregate = PAY_STR("ATTEMPT"),
         .aggregate_id = PAY_STR(PAYMENT "A01"),
         .from_status = PAY_STR("SUCCEEDED"),
         .to_status = PAY_STR("SUCCEEDED"),
         .verdict = PAY_STR("IGNORE"),
         .event_type = PAY_STR("PRC"),
         .event_id = PAY_STR("in-2"),
         .source = PAY_STR("WEBHOOK"),
         .evidence_level = PAY_EVIDENCE_WEBHOOK,
         .reason_code = PAY_STR("STALE")},
    };
    const struct pay_explain_input inputs[] = {
        {.input_id = PAY_STR("in-1"),
         .kind = PAY_STR("PSP_EVENT"),
         .source = PAY_STR("WEBHOOK"),
         .psp = PAY_STR("stripe"),
         .psp_account = PAY_STR("stripe-a"),
         .transport_key = PAY_STR("evt_1"),
         .verification = PAY_STR("whsec-a"),
         .status = PAY_STR("DECIDED"),
         .delivery_count = 5,
         .first_seen_at = NOW,
         .last_seen_at = NOW},
    };
    set("SUCCEEDED", "SUCCEEDED");
    fixture.explain.lists[PAY_EXPLAIN_HISTORY] = (struct pay_explain_rows){history, 2, true};
    fixture.explain.lists[PAY_EXPLAIN_INPUTS] = (struct pay_explain_rows)ROWS(inputs);
    must_say("History: 1 APPLY, 1 IGNORE, 0 REJECT, 0 NEEDS_RECONCILIATION (older ones left out)");
    must_say("12:00:00.000 A01 APPLY SUC from WEBHOOK (WEBHOOK): UNKNOWN -> SUCCEEDED, SUC,"
             " delivered 5 times, published #2 PaymentSucceeded\n");
    must_say("12:00:01.000 A01 IGNORE PRC from WEBHOOK (WEBHOOK): STALE\n");
    must_say("Inputs: 1, repeated 4 time(s)");
    must_say("became SUCCEEDED at 2025-11-30 12:00:00.000 by SUC from WEBHOOK (SUC)");
}

static void sends_say_if_anything_left(void **state)
{
    (void)state;
    const struct pay_explain_send sends[] = {
        {.job_id = PAY_STR(PAYMENT "A01.SUBMIT"), .not_after = NOW},
        {.job_id = PAY_STR(PAYMENT "A01.CONFIRM.1"),
         .sends = 2,
         .sending_at = NOW,
         .last_send_at = NOW + S,
         .sent_by = PAY_STR("psp-1"),
         .finished_at = NOW + 2 * S},
        {.job_id = PAY_STR(PAYMENT "A02.SUBMIT"), .not_after = NOW, .closed_at = NOW},
    };
    set("PROCESSING", "UNKNOWN");
    fixture.explain.lists[PAY_EXPLAIN_SENDS] = (struct pay_explain_rows)ROWS(sends);
    must_say("A01.SUBMIT not sent, may be until 2025-11-30 12:00:00.000\n");
    must_say("A01.CONFIRM.1 sent 2 time(s), first 2025-11-30 12:00:00.000, last 2025-11-30"
             " 12:00:01.000 by psp-1, answered 2025-11-30 12:00:02.000\n");
    must_say("A02.SUBMIT not sent, may be until 2025-11-30 12:00:00.000, closed 2025-11-30"
             " 12:00:00.000: certainly never sent\n");
}

static void money_has_its_currencys_decimals(void **state)
{
    (void)state;
    static const struct {
        int64_t minor;
        struct pay_str currency;
        const char *says;
    } cases[] = {
        {2599, {"EUR", 3}, "25.99 EUR"},         {2599, {"JPY", 3}, "2599 JPY"},
        {2599, {"KWD", 3}, "2.599 KWD"},         {5, {"EUR", 3}, "0.05 EUR"},
        {7, {"XXX", 3}, "7 minor units of XXX"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char money[48];
        pay_explain_money(cases[i].minor, cases[i].currency, money);
        assert_string_equal(money, cases[i].says);
    }
}

static void without_an_order_the_refused_command_is_told(void **state)
{
    (void)state;
    const struct pay_explain_command commands[] = {
        {.caller = PAY_STR("shop"),
         .command_id = PAY_STR("c-1"),
         .type = PAY_STR("CREATE_PAYMENT"),
         .status = PAY_STR("REJECTED"),
         .reason_code = PAY_STR("DUPLICATE_ORDER_NO"),
         .decided_at = NOW},
    };
    memset(fixture.explain.lists, 0, sizeof fixture.explain.lists);
    assert_false(pay_explain_is_known(&fixture.explain));
    fixture.explain.lists[PAY_EXPLAIN_COMMANDS] = (struct pay_explain_rows)ROWS(commands);
    assert_true(pay_explain_is_known(&fixture.explain));
    must_say("Payment " PAYMENT ": there is no such order");
    must_say("Next: the merchant must ask again: there is no such payment, its latest command"
             " CREATE_PAYMENT was answered REJECTED (DUPLICATE_ORDER_NO)");
}

static void json_has_every_list_and_every_field(void **state)
{
    (void)state;
    set("PROCESSING", "UNKNOWN");
    pay_explain_json(&fixture.explain, &fixture.out);
    const char *json = (const char *)fixture.out.data;
    for (int list = 0; list < PAY_EXPLAIN_LIST_COUNT; list++) {
        char name[64];
        const struct pay_explain_spec *spec = pay_explain_spec((enum pay_explain_list)list);
        (void)snprintf(name, sizeof name, ",\"%s\":%s", spec->name,
                       list == PAY_EXPLAIN_ORDER ? "{" : "[");
        assert_non_null(strstr(json, name));
    }
    assert_non_null(strstr(json, "\"status\":\"UNKNOWN\",\"live\":true,\"result_certainty\":"
                                 "\"LOCAL\",\"amount_minor\":2599,\"currency\":\"EUR\""));
    assert_non_null(strstr(json, "\"unknown_since\":null"));
    assert_non_null(strstr(json, "\"expires_at\":\"2025-11-30T12:10:00.000000Z\""));
    assert_non_null(strstr(json, "\"older_rows_left_out\":[]}\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_acts_next_by_the_attempts_state, make, drop),
        cmocka_unit_test_setup_teardown(people_come_first, make, drop),
        cmocka_unit_test_setup_teardown(history_tells_verdict_evidence_repeats_and_facts, make,
                                        drop),
        cmocka_unit_test_setup_teardown(sends_say_if_anything_left, make, drop),
        cmocka_unit_test_setup_teardown(money_has_its_currencys_decimals, make, drop),
        cmocka_unit_test_setup_teardown(without_an_order_the_refused_command_is_told, make, drop),
        cmocka_unit_test_setup_teardown(json_has_every_list_and_every_field, make, drop),
    };
    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}

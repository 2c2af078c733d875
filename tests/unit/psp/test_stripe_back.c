/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks about money that goes back, or is only released: refunds, sums, disputes. */
#include "fixture.h"

#include "common/psp/stripe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define ORDER_ID "01JDZ5V6N8QWERTYPASDFGHJKZA01" /* Of our form: payment id and A01. */
#define PAYMENT_ID "01JDZ5V6N8QWERTYPASDFGHJKZ"

static enum pay_status parse(struct fixture *fix, struct pay_str body,
                             struct pay_psp_items *ret_items, struct pay_err *err)
{
    const struct pay_psp_notification raw = {.body = {(const uint8_t *)body.ptr, body.len}};
    return pay_psp_stripe.parse(&fix->account, &raw, fix->arena, ret_items, err);
}

/* The main event is the last item: what it proves comes before it. */
static const struct pay_psp_item *main_item(const struct pay_psp_items *items)
{
    assert_true(items->count > 0);
    return &items->items[items->count - 1];
}

static void check_type(const char *what, enum pay_event_type given, enum pay_event_type wanted)
{
    if (given != wanted) {
        fail_msg("%s: %s", what, pay_event_type_name(given));
    }
}

static struct pay_psp_items parse_object(struct fixture *fix, const char *type, const char *object)
{
    struct pay_psp_items items = {0};
    struct pay_err err = {0};
    pay_buf_reset(&fix->text);
    pay_buf_printf(&fix->text,
                   "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1,\"livemode\":false,"
                   "\"type\":\"%s\",\"data\":{\"object\":%s}}",
                   type, object);
    if (parse(fix, pay_buf_str(&fix->text), &items, &err) != PAY_OK) {
        fail_msg("%s %s: %s", type, object, err.text);
    }
    return items;
}

#define TXN ",\"balance_transaction\":\"txn_1\""
#define OURS ",\"metadata\":{\"order_id\":\"" ORDER_ID "\",\"refund_ref\":\"" PAYMENT_ID "R01\"}"
#define CHARGE(members)                                                            \
    "{\"id\":\"ch_1\",\"object\":\"charge\",\"amount\":1000,\"currency\":\"usd\"," \
    "\"payment_intent\":\"pi_1\"," members "}"
#define OF_CHARGE ",\"charge\":\"ch_1\""

/** Each name and status of a refund; and what a refund is that has no money behind it. */
static const struct {
    const char *type, *status, *members;
    enum pay_event_type first, last; /**< first: OTHER where there is one event. */
    const char *action_id;
} refund_rows[] = {
    {"refund.created", "pending", TXN OURS OF_CHARGE, PAY_EV_OTHER, PAY_EV_REFUND_PROCESSING,
     PAYMENT_ID "R01"},
    {"refund.created", "requires_action", TXN OURS OF_CHARGE, PAY_EV_OTHER,
     PAY_EV_REFUND_PROCESSING, PAYMENT_ID "R01"},
    {"refund.created", "succeeded", TXN OURS OF_CHARGE, PAY_EV_OTHER, PAY_EV_REFUND_SUCCEEDED,
     PAYMENT_ID "R01"},
    {"refund.updated", "succeeded", TXN OURS OF_CHARGE, PAY_EV_OTHER, PAY_EV_REFUND_SUCCEEDED,
     PAYMENT_ID "R01"},
    {"refund.updated", "failed", TXN OURS OF_CHARGE, PAY_EV_OTHER, PAY_EV_REFUND_FAILED,
     PAYMENT_ID "R01"},
    {"refund.updated", "canceled", TXN OURS OF_CHARGE, PAY_EV_OTHER, PAY_EV_REFUND_FAILED,
     PAYMENT_ID "R01"},
    {"refund.failed", "failed", TXN OURS OF_CHARGE, PAY_EV_OTHER, PAY_EV_REFUND_FAILED,
     PAYMENT_ID "R01"},
    {"charge.refund.updated", "succeeded", TXN OURS OF_CHARGE, PAY_EV_OTHER,
     PAY_EV_REFUND_SUCCEEDED, PAYMENT_ID "R01"},
    /* Made in the console: without a number. */
    {"refund.created", "succeeded", TXN OF_CHARGE, PAY_EV_OTHER, PAY_EV_REFUND_SUCCEEDED, NULL},
    {"refund.created", "pending", ",\"balance_transaction\":null" OF_CHARGE, PAY_EV_OTHER,
     PAY_EV_REFUND_PROCESSING, NULL},
    {"refund.created", "succeeded", OF_CHARGE, PAY_EV_OTHER, PAY_EV_REFUND_SUCCEEDED, NULL},
    /* A release of held money; one with our number was asked for by us. */
    {"refund.created", "succeeded", ",\"balance_transaction\":null" OF_CHARGE, PAY_EV_OTHER,
     PAY_EV_OTHER, NULL},
    {"refund.created", "succeeded", ",\"balance_transaction\":null" OURS OF_CHARGE, PAY_EV_OTHER,
     PAY_EV_REFUND_SUCCEEDED, PAYMENT_ID "R01"},
    /* Where the charge came along, it proves the payment, or does not. */
    {"refund.created", "succeeded",
     TXN ",\"charge\":" CHARGE("\"captured\":true,\"amount_captured\":1000"),
     PAY_EV_ATTEMPT_SUCCEEDED, PAY_EV_REFUND_SUCCEEDED, NULL},
    {"refund.created", "succeeded",
     TXN ",\"charge\":" CHARGE("\"captured\":true,\"amount_captured\":900"),
     PAY_EV_CAPTURE_SUCCEEDED, PAY_EV_REFUND_SUCCEEDED, NULL},
    {"refund.created", "succeeded",
     TXN ",\"charge\":" CHARGE("\"captured\":false,\"amount_captured\":0"), PAY_EV_OTHER,
     PAY_EV_REFUND_SUCCEEDED, NULL},
};

static void check_refund(struct fixture *fix, size_t row)
{
    char object[1024];
    (void)snprintf(object, sizeof object,
                   "{\"id\":\"re_1\",\"object\":\"refund\",\"amount\":700,\"currency\":\"usd\","
                   "\"payment_intent\":\"pi_1\",\"status\":\"%s\"%s}",
                   refund_rows[row].status, refund_rows[row].members);
    const struct pay_psp_items items = parse_object(fix, refund_rows[row].type, object);
    const struct pay_event *last = &main_item(&items)->event;
    assert_int_equal(items.count, refund_rows[row].first == PAY_EV_OTHER ? 1 : 2);
    if (items.count == 2) {
        check_type("first", items.items[0].event.type, refund_rows[row].first);
    }
    check_type(refund_rows[row].members, last->type, refund_rows[row].last);
    assert_string_equal(last->provider_action_id.ptr, "re_1");
    assert_string_equal(last->provider_payment_id.ptr, "pi_1");
    assert_string_equal(last->action_id.ptr == NULL ? "" : last->action_id.ptr,
                        refund_rows[row].action_id == NULL ? "" : refund_rows[row].action_id);
    assert_int_equal(last->has_amount ? last->amount.amount_minor : -1,
                     last->type == PAY_EV_OTHER ? -1 : 700);
}

static void test_refund_types(void **state)
{
    for (size_t i = 0; i < sizeof refund_rows / sizeof refund_rows[0]; i++) {
        check_refund(*state, i);
    }
}

/** charge.refunded: a sum, the proof of the payment before it; or neither. */
static const struct {
    const char *members;
    enum pay_event_type first;
    int64_t first_minor; /**< -1: no amount. */
    int64_t sum_minor;   /**< 0: no sum. */
} refunded_rows[] = {
    {"\"captured\":true,\"amount_captured\":1000,\"amount_refunded\":1000",
     PAY_EV_ATTEMPT_SUCCEEDED, 1000, 1000},
    {"\"captured\":true,\"amount_captured\":1000,\"amount_refunded\":1", PAY_EV_ATTEMPT_SUCCEEDED,
     1000, 1},
    {"\"captured\":true,\"amount_refunded\":10", PAY_EV_ATTEMPT_SUCCEEDED, 1000, 10},
    /* Captured in part: the rest was released, which Stripe counts as refunded. */
    {"\"captured\":true,\"amount_captured\":600,\"amount_refunded\":400", PAY_EV_CAPTURE_SUCCEEDED,
     600, 0},
    {"\"captured\":true,\"amount_captured\":600,\"amount_refunded\":650", PAY_EV_CAPTURE_SUCCEEDED,
     600, 250},
    {"\"captured\":true,\"amount_captured\":600,\"amount_refunded\":1000", PAY_EV_CAPTURE_SUCCEEDED,
     600, 600},
    /* An authorization that was voided: no money came, none went back. */
    {"\"captured\":false,\"amount_captured\":0,\"amount_refunded\":1000", PAY_EV_OTHER, -1, 0},
    {"\"captured\":false,\"amount_refunded\":1000", PAY_EV_OTHER, -1, 0},
};

static void test_a_refunded_charge(void **state)
{
    for (size_t i = 0; i < sizeof refunded_rows / sizeof refunded_rows[0]; i++) {
        char object[512];
        (void)snprintf(object, sizeof object, CHARGE("%s"), refunded_rows[i].members);
        const struct pay_psp_items items = parse_object(*state, "charge.refunded", object);
        const struct pay_event *first = &items.items[0].event;
        assert_int_equal(items.count, refunded_rows[i].sum_minor == 0 ? 1 : 2);
        check_type(refunded_rows[i].members, first->type, refunded_rows[i].first);
        assert_int_equal(first->has_amount ? first->amount.amount_minor : -1,
                         refunded_rows[i].first_minor);
        if (items.count == 2) {
            check_type("sum", items.items[1].event.type, PAY_EV_REFUND_SUM);
            assert_int_equal(items.items[1].event.amount.amount_minor, refunded_rows[i].sum_minor);
        }
    }
}

/* Our number in the intent names the capture; the charge's own event does not carry it. */
static void test_d3_capture_is_named_by_its_number(void **state)
{
    const struct pay_psp_items items = parse_object(
        *state, "payment_intent.succeeded",
        "{\"id\":\"pi_1\",\"object\":\"payment_intent\",\"amount\":1000,\"amount_received\":600,"
        "\"currency\":\"usd\",\"status\":\"succeeded\",\"capture_method\":\"manual\","
        "\"latest_charge\":\"ch_1\",\"metadata\":{\"order_id\":\"" ORDER_ID
        "\",\"capture_ref\":\"" PAYMENT_ID "C02\"}}");
    assert_int_equal(items.items[0].event.type, PAY_EV_CAPTURE_SUCCEEDED);
    assert_string_equal(items.items[0].event.action_id.ptr, PAYMENT_ID "C02");
    char business_key[PAY_CAUSE_SIZE];
    (void)snprintf(business_key, sizeof business_key, "%s", items.items[0].business_key.ptr);
    const struct pay_psp_items charge =
        parse_object(*state, "charge.captured",
                     CHARGE("\"status\":\"succeeded\",\"captured\":true,\"amount_captured\":600"));
    assert_null(charge.items[0].event.action_id.ptr);
    assert_string_equal(charge.items[0].business_key.ptr, business_key);
}

/** Minor units of the amount 1200 that Stripe says, by what it is an amount of; -1: refused. */
static const struct {
    const char *currency;
    int64_t minor;
} exponents[] = {{"eur", 1200}, {"jpy", 1200}, {"kwd", 1200},
                 {"isk", 12},   {"ugx", 12},   {"iqd", -1}};

static void test_a5_exponents_of_every_kind_of_money(void **state)
{
    static const struct {
        const char *type, *members;
    } kinds[] = {
        {"payment_intent.succeeded", "\"status\":\"succeeded\",\"amount_received\":1200,"
                                     "\"capture_method\":\"manual\""},
        {"payment_intent.amount_capturable_updated",
         "\"status\":\"requires_capture\",\"amount_capturable\":1200"},
        {"charge.captured",
         "\"status\":\"succeeded\",\"captured\":true,\"amount\":1200,\"amount_captured\":1200"},
        {"charge.refunded", "\"captured\":true,\"amount\":1200,\"amount_refunded\":1200"},
        {"refund.updated", "\"status\":\"succeeded\",\"amount\":1200,\"charge\":\"ch_1\""},
        {"charge.dispute.funds_withdrawn",
         "\"status\":\"needs_response\",\"amount\":1200,\"charge\":\"ch_1\""},
    };
    struct fixture *fix = *state;
    const size_t count = sizeof exponents / sizeof exponents[0];
    for (size_t i = 0; i < count * sizeof kinds / sizeof kinds[0]; i++) {
        struct pay_psp_items items = {0};
        struct pay_err err = {0};
        pay_buf_reset(&fix->text);
        pay_buf_printf(&fix->text,
                       "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1,\"livemode\":false,"
                       "\"type\":\"%s\",\"data\":{\"object\":{\"id\":\"pi_1\",%s,"
                       "\"currency\":\"%s\",\"metadata\":{\"order_id\":\"" ORDER_ID "\"}}}}",
                       kinds[i / count].type, kinds[i / count].members,
                       exponents[i % count].currency);
        const enum pay_status status = parse(fix, pay_buf_str(&fix->text), &items, &err);
        if (exponents[i % count].minor < 0) {
            assert_int_equal(err.code, PAY_PSP_BAD_AMOUNT);
            continue;
        }
        assert_int_equal(status, PAY_OK);
        assert_int_equal(main_item(&items)->event.amount.amount_minor, exponents[i % count].minor);
    }
}

static const struct {
    const char *type, *status;
    enum pay_event_type event;
    int index, funds;
    bool is_inquiry;
} dispute_rows[] = {
    {"created", "needs_response", PAY_EV_DISPUTE_OPENED, 0, 0, false},
    {"created", "warning_needs_response", PAY_EV_DISPUTE_OPENED, 0, 0, true},
    {"updated", "needs_response", PAY_EV_DISPUTE_EVIDENCE_DUE, 1, 0, false},
    {"updated", "under_review", PAY_EV_DISPUTE_UNDER_REVIEW, 2, 0, false},
    {"updated", "warning_under_review", PAY_EV_DISPUTE_UNDER_REVIEW, 2, 0, true},
    {"funds_withdrawn", "needs_response", PAY_EV_DISPUTE_FUNDS_WITHDRAWN, 1, 1, false},
    {"funds_reinstated", "won", PAY_EV_DISPUTE_FUNDS_REINSTATED, 3, 2, false},
    {"closed", "won", PAY_EV_DISPUTE_WON, 3, 0, false},
    {"closed", "lost", PAY_EV_DISPUTE_LOST, 4, 0, false},
    {"closed", "warning_closed", PAY_EV_DISPUTE_CLOSED, 5, 0, true},
    {"closed", "prevented", PAY_EV_DISPUTE_CLOSED, 5, 0, false},
};

static void test_dispute_types(void **state)
{
    struct fixture *fix = *state;
    for (size_t i = 0; i < sizeof dispute_rows / sizeof dispute_rows[0]; i++) {
        struct pay_psp_items items;
        pay_buf_reset(&fix->text);
        pay_buf_printf(&fix->text,
                       "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1,\"livemode\":false,"
                       "\"type\":\"charge.dispute.%s\",\"data\":{\"object\":{\"id\":\"du_1\","
                       "\"status\":\"%s\",\"amount\":100,\"currency\":\"usd\","
                       "\"charge\":\"ch_1\"}}}",
                       dispute_rows[i].type, dispute_rows[i].status);
        assert_int_equal(parse(fix, pay_buf_str(&fix->text), &items, NULL), PAY_OK);
        const struct pay_event *event = &items.items[0].event;
        assert_int_equal(event->type, dispute_rows[i].event);
        assert_int_equal(event->dispute.status, dispute_rows[i].index);
        assert_int_equal(event->dispute.funds, dispute_rows[i].funds);
        assert_int_equal(event->dispute.is_inquiry, dispute_rows[i].is_inquiry);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_refund_types),
        TEST(test_a_refunded_charge),
        TEST(test_d3_capture_is_named_by_its_number),
        TEST(test_a5_exponents_of_every_kind_of_money),
        TEST(test_dispute_types),
    };
    return cmocka_run_group_tests_name("stripe back", tests, NULL, NULL);
}

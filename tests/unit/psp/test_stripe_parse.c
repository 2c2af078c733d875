/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "common/psp/stripe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SAMPLE_COUNT 21 /* As delivered: a file that goes missing is a failure. */
#define ORDER_ID "01JDZ5V6N8QWERTYPASDFGHJKZA01" /* Of our form: payment id and A01. */
#define PAYMENT_ID "01JDZ5V6N8QWERTYPASDFGHJKZ"

static struct pay_bytes bytes_of(struct pay_str text)
{
    return (struct pay_bytes){(const uint8_t *)text.ptr, text.len};
}

static enum pay_status parse(struct fixture *fix, struct pay_str body,
                             struct pay_psp_items *ret_items, struct pay_err *err)
{
    const struct pay_psp_notification raw = {.body = bytes_of(body)};
    return pay_psp_stripe.parse(&fix->account, &raw, fix->arena, ret_items, err);
}

/* The sample's main event is the last item: what it proves comes before it. */
static const struct pay_psp_item *main_item(const struct pay_psp_items *items)
{
    assert_true(items->count > 0);
    return &items->items[items->count - 1];
}

/* ---- Samples ---- */

/** What the neutral type of a sample is here (contracts.md, "From the PSP pages' types"). */
static const struct {
    const char *sample;
    enum pay_event_type type;
    size_t count;
} expected_types[] = {
    {"charge_refund_updated", PAY_EV_REFUND_FAILED, 1},
    {"charge_refunded", PAY_EV_REFUND_SUM, 2},
    {"charge_succeeded", PAY_EV_ATTEMPT_SUCCEEDED, 1},
    {"dispute_funds_withdrawn", PAY_EV_DISPUTE_FUNDS_WITHDRAWN, 1},
    {"dispute_lost", PAY_EV_DISPUTE_LOST, 1},
    {"dispute_opened", PAY_EV_DISPUTE_OPENED, 1},
    {"dispute_won", PAY_EV_DISPUTE_WON, 1},
    {"payment_authorized", PAY_EV_ATTEMPT_AUTHORIZED, 1},
    {"payment_failed", PAY_EV_ATTEMPT_DECLINED, 1},
    {"payment_partially_captured", PAY_EV_CAPTURE_SUCCEEDED, 1},
    {"payment_pending", PAY_EV_ATTEMPT_PROCESSING, 1},
    {"payment_requires_action", PAY_EV_ATTEMPT_ACTION_REQUIRED, 1},
    {"payment_succeeded", PAY_EV_ATTEMPT_SUCCEEDED, 1},
    {"payment_succeeded_isk", PAY_EV_ATTEMPT_SUCCEEDED, 1},
    {"payment_succeeded_jpy", PAY_EV_ATTEMPT_SUCCEEDED, 1},
    {"payment_succeeded_kwd", PAY_EV_ATTEMPT_SUCCEEDED, 1},
    {"refund_created_pending", PAY_EV_REFUND_PROCESSING, 1},
    {"refund_failed", PAY_EV_REFUND_FAILED, 1},
    {"refund_succeeded", PAY_EV_REFUND_SUCCEEDED, 1},
    {"thin_event_v2", PAY_EV_OTHER, 1},
    {"unknown_event", PAY_EV_OTHER, 1},
};

/* @return compact body of the sample, in fix->text; the document stays open. */
static struct pay_str sample_body(struct fixture *fix, const char *name,
                                  const struct pay_json_value **ret_sample)
{
    char path[512];
    (void)snprintf(path, sizeof path, "samples/stripe/%s.json", name);
    const struct pay_json_value *sample = fixture_json(fix, path);
    pay_buf_reset(&fix->text);
    fixture_write(&fix->text, pay_json_member(sample, "body"));
    assert_false(fix->text.failed);
    if (ret_sample != NULL) {
        *ret_sample = sample;
    }
    return pay_buf_str(&fix->text);
}

static struct pay_psp_items parse_sample(struct fixture *fix, const char *name,
                                         const struct pay_json_value **ret_sample)
{
    struct pay_psp_items items = {0};
    struct pay_err err = {0};
    const struct pay_str body = sample_body(fix, name, ret_sample);
    if (parse(fix, body, &items, &err) != PAY_OK) {
        fail_msg("%s: %s", name, err.text);
    }
    return items;
}

static void same_or_absent(const char *what, struct pay_str given,
                           const struct pay_json_value *wanted)
{
    const struct pay_str text = pay_json_str(wanted);
    if (text.ptr == NULL ? given.ptr != NULL : !pay_str_eq(given, text)) {
        fail_msg("%s: '%s' instead of '%s'", what, given.ptr == NULL ? "(absent)" : given.ptr,
                 text.ptr == NULL ? "(absent)" : text.ptr);
    }
}

static void check_amount(const struct pay_event *event, const struct pay_json_value *expected)
{
    int64_t amount_minor = 0;
    assert_int_equal(event->has_amount,
                     pay_json_int(pay_json_member(expected, "amount_minor"), &amount_minor));
    if (event->has_amount) {
        assert_int_equal(event->amount.amount_minor, amount_minor);
        same_or_absent("currency", pay_str_of(event->amount.currency),
                       pay_json_member(expected, "currency"));
    }
}

/* psp_object_id: the action's id, or one of the references, or the payment itself. */
static void check_object(const struct pay_event *event, const struct pay_json_value *expected)
{
    const struct pay_str id = pay_json_str(pay_json_member(expected, "psp_object_id"));
    bool found =
        pay_str_eq(event->provider_action_id, id) || pay_str_eq(event->provider_payment_id, id);
    for (size_t i = 0; i < event->reference_count; i++) {
        found |= pay_str_eq(event->references[i].reference, id);
    }
    assert_true(found);
}

static void check_rest(const struct pay_event *event, const struct pay_json_value *expected)
{
    bool truth = false;
    const struct pay_str failure = pay_json_str(pay_json_member(expected, "failure_code"));
    const struct pay_str refund = pay_json_str(pay_json_member(expected, "refund_reference"));
    const struct pay_str outcome = pay_json_str(pay_json_member(expected, "outcome"));
    if (failure.ptr != NULL) { /* Written with a slash there, which our codes have not. */
        assert_string_equal(failure.ptr, "card_declined/insufficient_funds");
        assert_string_equal(event->failure_code.ptr, "card_declined.insufficient_funds");
        assert_int_equal(event->failure_class, PAY_FAILURE_INSUFFICIENT_FUNDS);
        assert_string_equal(event->normalized_result.ptr, "INSUFFICIENT_FUNDS");
    }
    if (refund.ptr != NULL) {
        assert_true(pay_str_eq(event->action_id, refund));
    }
    if (outcome.ptr != NULL) {
        assert_int_equal(event->dispute.status, pay_str_eq_c(outcome, "won") ? 3 : 4);
    }
    if (pay_json_bool(pay_json_member(expected, "funds_withdrawn"), &truth)) {
        assert_int_equal(event->dispute.funds, truth ? 1 : 0);
    }
}

static void check_sample(struct fixture *fix, size_t row)
{
    const struct pay_json_value *sample = NULL;
    const char *name = expected_types[row].sample;
    const struct pay_psp_items items = parse_sample(fix, name, &sample);
    const struct pay_json_value *expected = pay_json_member(sample, "expected");
    const struct pay_psp_item *item = main_item(&items);
    const struct pay_event *event = &item->event;
    int64_t occurred_at = 0;
    if (event->type != expected_types[row].type || items.count != expected_types[row].count) {
        fail_msg("%s: %zu x %s", name, items.count, pay_event_type_name(event->type));
    }
    assert_int_equal(item->source, PAY_SOURCE_WEBHOOK);
    assert_string_equal(event->psp.ptr, "stripe");
    assert_string_equal(event->psp_account.ptr, "stripe-a");
    same_or_absent("request no", event->merchant_request_no,
                   pay_json_member(expected, "merchant_reference"));
    same_or_absent("payment", event->provider_payment_id,
                   pay_json_member(expected, "psp_payment_id"));
    check_object(event, expected);
    check_amount(event, expected);
    check_rest(event, expected);
    same_or_absent("event id", items.items[0].transport_key, pay_json_member(expected, "event_id"));
    assert_true(pay_json_int(pay_json_member(expected, "occurred_at"), &occurred_at));
    /* The thin sample's own text says 08:15:30, which is that second. */
    assert_int_equal(item->occurred_at_us, occurred_at * 1000000);
    assert_null(item->payment_id.ptr); /* ORD-...: not of our form. */
}

static void check_file(struct fixture *fix, const char *file)
{
    const size_t rows = sizeof expected_types / sizeof expected_types[0];
    const size_t len = strlen(file) - strlen(".json");
    size_t row = 0;
    while (row < rows && (strlen(expected_types[row].sample) != len ||
                          strncmp(expected_types[row].sample, file, len) != 0)) {
        row++;
    }
    assert_true(row < rows); /* Every file has its row. */
    pay_arena_reset(fix->arena);
    check_sample(fix, row);
}

static void test_every_sample(void **state)
{
    assert_int_equal(fixture_each_file(*state, "samples/stripe", check_file), SAMPLE_COUNT);
    assert_int_equal(sizeof expected_types / sizeof expected_types[0], SAMPLE_COUNT);
}

/* ---- One fact, however it is told ---- */

/* The intent's and the charge's event are one fact: pitfall 7, and D7's kind. */
static void test_d7_charge_and_intent_have_one_business_key(void **state)
{
    struct fixture *fix = *state;
    const struct pay_psp_items intent = parse_sample(fix, "payment_succeeded", NULL);
    const struct pay_psp_items charge = parse_sample(fix, "charge_succeeded", NULL);
    const struct pay_psp_items refunded = parse_sample(fix, "charge_refunded", NULL);
    static const char wanted[] = "pi_3PTestAAAAAAAAAA00000001||ATTEMPT_SUCCEEDED|SUCCEEDED";
    assert_string_equal(intent.items[0].business_key.ptr, wanted);
    assert_string_equal(charge.items[0].business_key.ptr, wanted);
    assert_string_equal(refunded.items[0].business_key.ptr, wanted);
    assert_false(pay_str_eq(intent.items[0].transport_key, charge.items[0].transport_key));
}

/* Two refunds of the same sum differ by Stripe's id; one refund told twice does not (D7). */
static void test_d7_refunds_are_told_apart_by_their_own_id(void **state)
{
    struct fixture *fix = *state;
    const struct pay_psp_items failed = parse_sample(fix, "refund_failed", NULL);
    const struct pay_psp_items older_name = parse_sample(fix, "charge_refund_updated", NULL);
    assert_true(pay_str_eq(failed.items[0].business_key, older_name.items[0].business_key));
    assert_string_equal(failed.items[0].business_key.ptr,
                        "pi_3PTestAAAAAAAAAA00000001|re_3PTestAAAAAAAAAA00000001|"
                        "REFUND_FAILED|OTHER");
    assert_string_equal(failed.items[0].event.action_id.ptr, "RF-0001");
}

static void test_a_sum_is_no_refund(void **state)
{
    const struct pay_psp_items items = parse_sample(*state, "charge_refunded", NULL);
    assert_int_equal(items.items[0].event.type, PAY_EV_ATTEMPT_SUCCEEDED);
    assert_int_equal(items.items[0].event.amount.amount_minor, 2599);
    assert_string_equal(items.items[0].transport_key.ptr, "evt_3PTestAAAAAAAAAA00000012");
    assert_string_equal(items.items[1].event.normalized_result.ptr, "500");
    assert_string_equal(items.items[1].transport_key.ptr, "evt_3PTestAAAAAAAAAA00000012:1");
}

static void test_capture_is_named_by_its_charge(void **state)
{
    const struct pay_psp_items items = parse_sample(*state, "payment_partially_captured", NULL);
    assert_string_equal(items.items[0].business_key.ptr,
                        "pi_3PTestAAAAAAAAAA00000001|ch_3PTestAAAAAAAAAA00000001|"
                        "CAPTURE_SUCCEEDED|SUCCEEDED");
    assert_int_equal(items.items[0].event.amount.amount_minor, 2000);
}

static void test_failed_try_does_not_bind_its_charge(void **state)
{
    const struct pay_psp_items items = parse_sample(*state, "payment_failed", NULL);
    assert_int_equal(items.items[0].event.reference_count, 1);
    assert_int_equal(items.items[0].event.references[0].kind, PAY_REF_INTENT);
}

static void test_action_is_a_redirect(void **state)
{
    const struct pay_psp_items items = parse_sample(*state, "payment_requires_action", NULL);
    const struct pay_customer_action *action = &items.items[0].event.action;
    assert_true(action->is_set);
    assert_int_equal(action->type, PAY_ACTION_REDIRECT);
    assert_string_equal(action->url.ptr, "https://hooks.stripe.com/redirect/authenticate/src_test");
    assert_null(action->data.ptr);
}

static void test_dispute_detail(void **state)
{
    const struct pay_psp_items items = parse_sample(*state, "dispute_opened", NULL);
    const struct pay_event *event = &items.items[0].event;
    assert_true(event->dispute.is_set);
    assert_int_equal(event->dispute.status, 0);
    assert_false(event->dispute.is_inquiry);
    assert_string_equal(event->dispute.reason_code.ptr, "fraudulent");
    assert_int_equal(event->dispute.evidence_due_at_us, INT64_C(1715817599000000));
    assert_int_equal(event->reference_count, 3);
    assert_string_equal(items.items[0].partition_key.ptr,
                        "stripe/stripe-a/pi_3PTestAAAAAAAAAA00000001");
}

/* ---- Made events ---- */

/* Replace the first @p from in @p text by @p to, into fix->text. */
static struct pay_str changed(struct fixture *fix, const char *text, const char *from,
                              const char *to)
{
    const char *at = strstr(text, from);
    if (at == NULL) {
        fail_msg("'%s' is not there", from);
        return (struct pay_str){NULL, 0};
    }
    pay_buf_reset(&fix->text);
    pay_buf_add(&fix->text, text, (size_t)(at - text));
    pay_buf_add_c(&fix->text, to);
    pay_buf_add_c(&fix->text, at + strlen(from));
    return pay_buf_str(&fix->text);
}

static const char succeeded[] =
    "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1714637730,\"livemode\":false,"
    "\"type\":\"payment_intent.succeeded\",\"data\":{\"object\":{\"id\":\"pi_1\","
    "\"object\":\"payment_intent\",\"amount\":2599,\"amount_received\":2599,"
    "\"currency\":\"eur\",\"status\":\"succeeded\",\"capture_method\":\"automatic\","
    "\"latest_charge\":\"ch_1\",\"metadata\":{\"order_id\":\"" ORDER_ID "\"}}}}";

static void test_our_number_gives_the_payment(void **state)
{
    struct pay_psp_items items;
    assert_int_equal(parse(*state, pay_str_of(succeeded), &items, NULL), PAY_OK);
    assert_string_equal(items.items[0].payment_id.ptr, PAYMENT_ID);
    assert_string_equal(items.items[0].partition_key.ptr, PAYMENT_ID);
    assert_string_equal(items.items[0].event.merchant_request_no.ptr, ORDER_ID);
    assert_string_equal(items.items[0].event.psp_event_type.ptr, "payment_intent.succeeded");
}

/** One change of a good event, and why it is refused; OK: it is taken. */
static const struct {
    const char *from, *to;
    enum pay_psp_reason reason;
} refusals[] = {
    {"\"amount_received\":2599,", "", PAY_PSP_FIELD_MISSING}, /* S3 */
    {"\"amount_received\":2599", "\"amount_received\":null", PAY_PSP_FIELD_MISSING},
    {"\"amount_received\":2599", "\"amount_received\":\"2599\"", PAY_PSP_BAD_AMOUNT},
    {"\"amount_received\":2599", "\"amount_received\":2599.0", PAY_PSP_BAD_AMOUNT}, /* A9 */
    {"\"amount_received\":2599", "\"amount_received\":25.99", PAY_PSP_BAD_AMOUNT},
    {"\"amount_received\":2599", "\"amount_received\":-1", PAY_PSP_BAD_AMOUNT},
    {"\"amount_received\":2599", "\"amount_received\":99999999999999999999", PAY_PSP_NOT_JSON},
    {"\"currency\":\"eur\",", "", PAY_PSP_FIELD_MISSING},
    {"\"eur\"", "\"euro\"", PAY_PSP_BAD_CURRENCY},
    {"\"eur\"", "\"zzz\"", PAY_PSP_BAD_CURRENCY},
    {"\"eur\"", "\"isk\"", PAY_PSP_BAD_AMOUNT}, /* 25.99 ISK x100: not a whole krona */
    {"\"eur\"", "\"iqd\"", PAY_PSP_BAD_AMOUNT}, /* Not on Stripe's page: no rule, no guess. */
    {"\"id\":\"pi_1\"", "\"id\":\"\"", PAY_PSP_FIELD_MISSING},
    {"\"id\":\"pi_1\"", "\"id\":\"pi/../x\"", PAY_PSP_FIELD_MISSING},
    {"\"id\":\"evt_1\",", "", PAY_PSP_FIELD_MISSING},
    {"\"type\":\"payment_intent.succeeded\",", "", PAY_PSP_FIELD_MISSING},
    {"\"object\":\"event\"", "\"object\":\"payment_intent\"", PAY_PSP_MALFORMED_EVENT},
    {"\"livemode\":false", "\"livemode\":true", PAY_PSP_WRONG_MODE},
    {"\"livemode\":false", "\"livemode\":\"false\"", PAY_PSP_FIELD_MISSING},
    {"\"livemode\":false,", "", PAY_PSP_FIELD_MISSING},
    {"\"livemode\":false", "\"livemode\":false,\"account\":\"acct_1\"", PAY_PSP_WRONG_ACCOUNT},
    {"\"livemode\":false", "\"livemode\":false,\"livemode\":false", PAY_PSP_NOT_JSON},
    {"{\"object\":{", "{\"other\":{", PAY_PSP_FIELD_MISSING},
    {"\"pi_1\"", "\"pi_1\\u0000\"", PAY_PSP_NOT_JSON},
    {"\"created\":1714637730", "\"created\":\"soon\"", PAY_PSP_OK},
    {"\"latest_charge\":\"ch_1\"", "\"latest_charge\":null", PAY_PSP_OK},
    {"\"latest_charge\":\"ch_1\"", "\"latest_charge\":{\"id\":\"ch_1\",\"x\":0.5}", PAY_PSP_OK},
    {"\"created\":1714637730", "\"created\":1714637730,\"api_version\":\"2030-01-01\"", PAY_PSP_OK},
};

static void check_refused(struct fixture *fix, size_t row)
{
    struct pay_psp_items items = {0};
    struct pay_err err = {0};
    const enum pay_psp_reason wanted = refusals[row].reason;
    const struct pay_str body = changed(fix, succeeded, refusals[row].from, refusals[row].to);
    const enum pay_status status = parse(fix, body, &items, &err);
    if (err.code != (int)wanted) {
        fail_msg("'%s': %s", refusals[row].to, pay_psp_reason_name((enum pay_psp_reason)err.code));
    }
    assert_int_equal(status, wanted == PAY_PSP_OK ? PAY_OK : PAY_REJECT);
    assert_int_equal(items.count > 0, status == PAY_OK);
}

static void test_s3_a9_refusals(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        check_refused(*state, i);
    }
}

static void test_not_json(void **state)
{
    static const char *const bodies[] = {"", "null", "[]", "{", "5", "\"x\"", "{}", "{\"id\":1}"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct pay_psp_items items = {0};
        assert_int_equal(parse(*state, pay_str_of(bodies[i]), &items, NULL), PAY_REJECT);
        assert_int_equal(items.count, 0);
    }
}

static void test_too_large_is_refused(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_items items;
    struct pay_err err = {0};
    pay_buf_reset(&fix->text);
    while (fix->text.len <= pay_psp_stripe.callback_bytes_max) {
        pay_buf_add_char(&fix->text, ' ');
    }
    assert_int_equal(parse(fix, pay_buf_str(&fix->text), &items, &err), PAY_REJECT);
    assert_int_equal(err.code, PAY_PSP_TOO_LARGE);
}

static void test_full_arena_is_not_the_senders_fault(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_items items;
    const struct pay_psp_notification raw = {.body = bytes_of(pay_str_of(succeeded))};
    bool taken = false;
    for (size_t max = 0; max < 16384 && !taken; max += 64) {
        struct pay_arena *small = pay_arena_new(max);
        struct pay_err err = {0};
        assert_non_null(small);
        const enum pay_status status =
            pay_psp_stripe.parse(&fix->account, &raw, small, &items, &err);
        taken = status == PAY_OK;
        pay_arena_free(small);
        assert_true(taken || (status == PAY_RETRY && err.code == PAY_PSP_NO_MEMORY));
    }
    assert_true(taken);
}

/* What a foreign shop sells in an odd currency is kept, not sent back for three days. */
static void test_foreign_event_with_odd_amount_is_kept(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_items items;
    (void)changed(fix, succeeded, ORDER_ID, "web-12");
    char copy[sizeof succeeded];
    (void)snprintf(copy, sizeof copy, "%s", (const char *)fix->text.data);
    assert_int_equal(parse(fix, changed(fix, copy, "\"eur\"", "\"isk\""), &items, NULL), PAY_OK);
    assert_int_equal(items.items[0].event.type, PAY_EV_OTHER);
    assert_false(items.items[0].event.has_amount);
    /* What is no amount at all is refused, whoever's it is. */
    assert_int_equal(
        parse(fix, changed(fix, copy, "\"amount_received\":2599", "\"amount_received\":-2599"),
              &items, NULL),
        PAY_REJECT);
}

/* Two references as long as Stripe may make them: the key is their digest, and fits. */
static void test_long_references_still_have_a_key(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_items items;
    char long_id[2][191];
    for (size_t i = 0; i < 2; i++) {
        memset(long_id[i], (int)('a' + i), sizeof long_id[i] - 1);
        long_id[i][sizeof long_id[i] - 1] = '\0';
    }
    pay_buf_reset(&fix->text);
    pay_buf_printf(&fix->text,
                   "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1,\"livemode\":false,"
                   "\"type\":\"refund.updated\",\"data\":{\"object\":{\"id\":\"%s\","
                   "\"status\":\"succeeded\",\"amount\":100,\"currency\":\"usd\","
                   "\"payment_intent\":\"%s\"}}}",
                   long_id[0], long_id[1]);
    assert_int_equal(parse(fix, pay_buf_str(&fix->text), &items, NULL), PAY_OK);
    assert_true(pay_str_starts(items.items[0].business_key, "sha256:"));
    assert_int_equal(items.items[0].business_key.len, 7 + 64);
}

/** The name and status of an event, by what it must become. */
static const struct {
    const char *type, *status, *method;
    enum pay_event_type event;
} intent_rows[] = {
    {"payment_intent.succeeded", "succeeded", "automatic", PAY_EV_ATTEMPT_SUCCEEDED},
    {"payment_intent.succeeded", "succeeded", "automatic_async", PAY_EV_ATTEMPT_SUCCEEDED},
    {"payment_intent.succeeded", "succeeded", "manual", PAY_EV_CAPTURE_SUCCEEDED},
    {"payment_intent.succeeded", "processing", "automatic", PAY_EV_OTHER},
    {"payment_intent.processing", "processing", "automatic", PAY_EV_ATTEMPT_PROCESSING},
    {"payment_intent.requires_action", "requires_action", "automatic",
     PAY_EV_ATTEMPT_ACTION_REQUIRED},
    {"payment_intent.partially_funded", "requires_action", "automatic",
     PAY_EV_ATTEMPT_ACTION_REQUIRED},
    {"payment_intent.payment_failed", "requires_payment_method", "automatic",
     PAY_EV_ATTEMPT_DECLINED},
    {"payment_intent.canceled", "canceled", "automatic", PAY_EV_ATTEMPT_CANCELED},
    {"payment_intent.canceled", "succeeded", "automatic", PAY_EV_OTHER},
    {"payment_intent.created", "requires_payment_method", "automatic", PAY_EV_OTHER},
    {"payment_intent.invented", "succeeded", "automatic", PAY_EV_OTHER},
};

static void check_type(const char *what, enum pay_event_type given, enum pay_event_type wanted)
{
    if (given != wanted) {
        fail_msg("%s: %s", what, pay_event_type_name(given));
    }
}

static void check_intent(struct fixture *fix, size_t row)
{
    struct pay_psp_items items;
    pay_buf_reset(&fix->text);
    pay_buf_printf(&fix->text,
                   "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1,\"livemode\":false,"
                   "\"type\":\"%s\",\"data\":{\"object\":{\"id\":\"pi_1\",\"status\":\"%s\","
                   "\"capture_method\":\"%s\",\"amount\":100,\"amount_received\":100,"
                   "\"amount_capturable\":100,\"currency\":\"usd\","
                   "\"client_secret\":\"pi_1_secret_x\",\"metadata\":{}}}}",
                   intent_rows[row].type, intent_rows[row].status, intent_rows[row].method);
    assert_int_equal(parse(fix, pay_buf_str(&fix->text), &items, NULL), PAY_OK);
    assert_int_equal(items.count, 1);
    check_type(intent_rows[row].type, items.items[0].event.type, intent_rows[row].event);
    assert_null(items.items[0].event.merchant_request_no.ptr);
}

static void test_intent_types(void **state)
{
    for (size_t i = 0; i < sizeof intent_rows / sizeof intent_rows[0]; i++) {
        check_intent(*state, i);
    }
}

static const struct {
    const char *type, *members;
    enum pay_event_type event;
    int64_t amount_minor;
} charge_rows[] = {
    {"charge.succeeded", "\"status\":\"succeeded\",\"captured\":true", PAY_EV_ATTEMPT_SUCCEEDED,
     900},
    {"charge.succeeded", "\"status\":\"succeeded\",\"captured\":false", PAY_EV_ATTEMPT_AUTHORIZED,
     1000},
    {"charge.succeeded", "\"status\":\"succeeded\"", PAY_EV_ATTEMPT_AUTHORIZED, 1000},
    {"charge.succeeded", "\"status\":\"failed\",\"captured\":true", PAY_EV_OTHER, -1},
    {"charge.pending", "\"status\":\"pending\"", PAY_EV_ATTEMPT_PROCESSING, 1000},
    {"charge.failed", "\"status\":\"failed\"", PAY_EV_ATTEMPT_DECLINED, 1000},
    {"charge.captured", "\"status\":\"succeeded\",\"captured\":true", PAY_EV_CAPTURE_SUCCEEDED,
     900},
    {"charge.expired", "\"status\":\"succeeded\"", PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED, 1000},
    {"charge.updated", "\"status\":\"succeeded\",\"captured\":true", PAY_EV_OTHER, -1},
};

static void check_charge(struct fixture *fix, size_t row)
{
    struct pay_psp_items items;
    pay_buf_reset(&fix->text);
    pay_buf_printf(&fix->text,
                   "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1,\"livemode\":false,"
                   "\"type\":\"%s\",\"data\":{\"object\":{\"id\":\"ch_1\",%s,\"amount\":1000,"
                   "\"amount_captured\":900,\"currency\":\"usd\",\"payment_intent\":\"pi_1\","
                   "\"failure_code\":\"card_declined\",\"outcome\":{\"reason\":\"fraudulent\"}}}}",
                   charge_rows[row].type, charge_rows[row].members);
    assert_int_equal(parse(fix, pay_buf_str(&fix->text), &items, NULL), PAY_OK);
    const struct pay_event *event = &items.items[0].event;
    check_type(charge_rows[row].type, event->type, charge_rows[row].event);
    assert_string_equal(event->provider_payment_id.ptr, "pi_1");
    assert_int_equal(event->has_amount ? event->amount.amount_minor : -1,
                     charge_rows[row].amount_minor);
    assert_int_equal(event->failure_class, event->type == PAY_EV_ATTEMPT_DECLINED
                                               ? PAY_FAILURE_FRAUD_SUSPECTED
                                               : PAY_FAILURE_NONE);
}

static void test_charge_types(void **state)
{
    for (size_t i = 0; i < sizeof charge_rows / sizeof charge_rows[0]; i++) {
        check_charge(*state, i);
    }
}

static void test_sdk_action_holds_the_secret_and_nothing_else_does(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_items items;
    static const char body[] =
        "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1,\"livemode\":false,"
        "\"type\":\"payment_intent.requires_action\",\"data\":{\"object\":{\"id\":\"pi_1\","
        "\"status\":\"requires_action\",\"amount\":100,\"currency\":\"usd\","
        "\"receipt_email\":\"a@example.com\",\"client_secret\":\"pi_1_secret_x\","
        "\"next_action\":{\"type\":\"use_stripe_sdk\",\"use_stripe_sdk\":{\"x\":1}}}}}";
    assert_int_equal(parse(fix, pay_str_of(body), &items, NULL), PAY_OK);
    const struct pay_event *event = &items.items[0].event;
    assert_int_equal(event->action.type, PAY_ACTION_SDK);
    assert_string_equal(event->action.data.ptr, "{\"client_secret\":\"pi_1_secret_x\"}");
    assert_null(strstr(items.items[0].business_key.ptr, "secret"));
    assert_null(event->action.url.ptr);
}

/* A page of a live payment is never shown over plain http. */
static void test_plain_url_is_for_test_accounts_only(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_items items;
    for (int live = 0; live <= 1; live++) {
        fix->account.live = live == 1;
        pay_buf_reset(&fix->text);
        pay_buf_printf(&fix->text,
                       "{\"id\":\"evt_1\",\"object\":\"event\",\"created\":1,\"livemode\":%s,"
                       "\"type\":\"payment_intent.requires_action\",\"data\":{\"object\":{"
                       "\"id\":\"pi_1\",\"status\":\"requires_action\",\"amount\":100,"
                       "\"currency\":\"usd\",\"next_action\":{\"type\":\"redirect_to_url\","
                       "\"redirect_to_url\":{\"url\":\"http://127.0.0.1/x\"}}}}}",
                       live == 1 ? "true" : "false");
        assert_int_equal(parse(fix, pay_buf_str(&fix->text), &items, NULL), PAY_OK);
        assert_int_equal(items.items[0].event.action.is_set, live == 0);
    }
}

static void test_connect_account_must_match(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_items items;
    struct pay_err err = {0};
    fix->account.settings[1] = (struct pay_psp_setting){"connect_account", "acct_1"};
    fix->account.setting_count = 2;
    assert_int_equal(parse(fix, pay_str_of(succeeded), &items, &err), PAY_REJECT);
    assert_int_equal(err.code, PAY_PSP_WRONG_ACCOUNT);
    const struct pay_str with =
        changed(fix, succeeded, "\"livemode\":false", "\"livemode\":false,\"account\":\"acct_1\"");
    assert_int_equal(parse(fix, with, &items, &err), PAY_OK);
}

/* A foreign number longer than ours is cut, at a whole character, and never taken for ours. */
static void test_long_foreign_number_is_cut(void **state)
{
    struct fixture *fix = *state;
    struct pay_psp_items items;
    const struct pay_str body =
        changed(fix, succeeded, ORDER_ID,
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxyyyyyyyy");
    assert_int_equal(parse(fix, body, &items, NULL), PAY_OK);
    assert_int_equal(items.items[0].event.merchant_request_no.len, 64);
    assert_null(items.items[0].payment_id.ptr);
}

/* Who shares the account may write anything into metadata: only what is a number is carried on. */
static void test_a_foreign_number_that_is_none_is_withheld(void **state)
{
    static const struct {
        const char *number;
        bool is_kept;
    } rows[] = {
        {"SHOP-77", true},
        {"2026/11#30_a.b:c", true},
        {"4242424242424241", true}, /* Not a card's check digit. */
        {"424242424242", true},     /* Shorter than any card's. */
        {"42424242424242424242", true},
        {"buyer@example.com", false},
        {"Jane Doe", false},
        {"Zo\xc3\xab", false},
        {"+49123", false},
        {"4242424242424242", false},
        {"ORDER-4242424242424242-1", false},
        {"378282246310005", false},
    };
    struct fixture *fix = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pay_psp_items items;
        const struct pay_str body = changed(fix, succeeded, ORDER_ID, rows[i].number);
        assert_int_equal(parse(fix, body, &items, NULL), PAY_OK);
        assert_string_equal(items.items[0].event.merchant_request_no.ptr,
                            rows[i].is_kept ? rows[i].number : "withheld");
        assert_null(items.items[0].payment_id.ptr);
    }
}

/* ---- Noise ---- */

/* xorshift: the same run every time, the seed in the failure. */
static uint32_t next_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

static void mutate(struct pay_buf *text, uint32_t *seed)
{
    const size_t at = next_random(seed) % text->len;
    switch (next_random(seed) % 4) {
    case 0:
        text->data[at] = (uint8_t)next_random(seed);
        break;
    case 1:
        memmove(text->data + at, text->data + at + 1, text->len - at - 1);
        text->len--;
        break;
    case 2:
        text->len = at + 1;
        break;
    default:
        text->data[at] = (uint8_t)"0\"{}[],:-.en"[next_random(seed) % 12];
        break;
    }
}

static void check_keys(const struct pay_psp_items *items)
{
    for (size_t i = 0; i < items->count; i++) {
        assert_true(items->items[i].business_key.len > 0);
        assert_true(items->items[i].business_key.len < PAY_CAUSE_SIZE);
        assert_true(items->items[i].transport_key.len <= 200);
    }
}

/* @return whether the broken sample was understood. */
static bool parse_broken_sample(struct fixture *fix, uint32_t *seed)
{
    const size_t rows = sizeof expected_types / sizeof expected_types[0];
    const uint32_t started = *seed;
    struct pay_psp_items items = {0};
    pay_arena_reset(fix->arena);
    (void)sample_body(fix, expected_types[next_random(seed) % rows].sample, NULL);
    for (uint32_t n = next_random(seed) % 4; n > 0 && fix->text.len > 1; n--) {
        mutate(&fix->text, seed);
    }
    const enum pay_status status = parse(fix, pay_buf_str(&fix->text), &items, NULL);
    if (status != PAY_OK && status != PAY_REJECT) {
        fail_msg("seed %u: %s", started, pay_status_name(status));
    }
    check_keys(&items);
    return status == PAY_OK;
}

/* Whatever stands in a body, it is refused or understood, and what is understood has its keys. */
static void test_s3_random_bodies_never_crash(void **state)
{
    uint32_t seed = 20261130;
    size_t taken = 0;
    for (size_t round = 0; round < 4000; round++) {
        taken += parse_broken_sample(*state, &seed);
    }
    assert_true(taken > 400 && taken < 4000); /* Both sides of the refusal were seen. */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_every_sample),
        TEST(test_d7_charge_and_intent_have_one_business_key),
        TEST(test_d7_refunds_are_told_apart_by_their_own_id),
        TEST(test_a_sum_is_no_refund),
        TEST(test_capture_is_named_by_its_charge),
        TEST(test_failed_try_does_not_bind_its_charge),
        TEST(test_action_is_a_redirect),
        TEST(test_dispute_detail),
        TEST(test_our_number_gives_the_payment),
        TEST(test_s3_a9_refusals),
        TEST(test_not_json),
        TEST(test_too_large_is_refused),
        TEST(test_full_arena_is_not_the_senders_fault),
        TEST(test_foreign_event_with_odd_amount_is_kept),
        TEST(test_long_references_still_have_a_key),
        TEST(test_intent_types),
        TEST(test_charge_types),
        TEST(test_sdk_action_holds_the_secret_and_nothing_else_does),
        TEST(test_plain_url_is_for_test_accounts_only),
        TEST(test_connect_account_must_match),
        TEST(test_long_foreign_number_is_cut),
        TEST(test_a_foreign_number_that_is_none_is_withheld),
        TEST(test_s3_random_bodies_never_crash),
    };
    return cmocka_run_group_tests_name("stripe parse", tests, NULL, NULL);
}

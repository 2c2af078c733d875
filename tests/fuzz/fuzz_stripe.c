/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Stripe, or who says so, sends. The first byte says what the rest is:
 *   v   a Stripe-Signature header, a line feed, a body: verified at a fixed time
 *   p   the body of a callback that was verified: parsed
 *   r   four bytes (kind of job, way of asking, delivery and flags, HTTP status), the body of an
 *       answer: read
 *
 * Every event that comes out must have its keys in their form and must fit into the record that
 * carries it on: what the adapter takes can always be kept.
 */
#include <string.h>

#include "common/base/clock.h"
#include "common/contracts/keys.h"
#include "common/contracts/payment_input.h"
#include "common/core/id.h"
#include "common/crypto/secret.h"
#include "common/psp/stripe.h"
#include "tests/fuzz/fuzz.h"

#define ARENA_BYTES_MAX ((size_t)8 << 20)
#define ATTEMPT "01ARZ3NDEKTSV4RRFFQ69G5FAVA01"
#define NOW_US INT64_C(1700000000000000)

static struct pay_psp_account account = {.id = "stripe-a",
                                         .psp = "stripe",
                                         .merchant_id = "acme",
                                         .endpoint = "https://api.stripe.test",
                                         .settings = {{"api_version", "2024-06-20"}},
                                         .setting_count = 1};
static struct pay_codec *codec;
static struct pay_arena *arena;
static struct pay_buf value;

static struct pay_bytes bytes_of(const char *text)
{
    return (struct pay_bytes){(const uint8_t *)text, strlen(text)};
}

static void start(void)
{
    if (codec == NULL) {
        static struct pay_secret *callback_key, *secret_key;
        FUZZ_CHECK(pay_secret_of("whsec-a", bytes_of("whsec_test_secret"), &callback_key, NULL) ==
                   PAY_OK);
        FUZZ_CHECK(pay_secret_of("sk-a", bytes_of("sk_test_0123456789"), &secret_key, NULL) ==
                   PAY_OK);
        account.callback_keys[0] = (struct pay_psp_key){.id = "whsec-a", .secret = callback_key};
        account.callback_key_count = 1;
        account.credentials[0] =
            (struct pay_psp_key){.id = "sk-a", .role = "secret_key", .secret = secret_key};
        account.credential_count = 1;
        FUZZ_CHECK(pay_codec_new(&codec, NULL) == PAY_OK);
        arena = pay_arena_new(ARENA_BYTES_MAX);
        FUZZ_CHECK(arena != NULL);
        value = pay_buf_make(PAY_PAYMENT_INPUT_BYTES_MAX);
    }
    pay_arena_reset(arena);
}

static bool is_between(struct pay_str text, size_t least, size_t most)
{
    return text.ptr != NULL && text.len >= least && text.len <= most &&
           strlen(text.ptr) == text.len;
}

static void check_item(const struct pay_psp_item *item)
{
    struct pay_err err = {.status = PAY_OK};
    const struct pay_payment_input input = {
        .input_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .kind = PAY_WIRE_PSP_EVENT,
        .source = item->source,
        .evidence_level = PAY_EVIDENCE_WEBHOOK,
        .payment_id = item->payment_id,
        .event = item->event,
        .transport_key = item->transport_key,
        .business_key = item->business_key,
        .occurred_at_us = item->occurred_at_us,
        .received_at_us = NOW_US,
    };
    FUZZ_CHECK(is_between(item->transport_key, 1, PAY_TRANSPORT_KEY_MAX));
    FUZZ_CHECK(is_between(item->business_key, 1, PAY_BUSINESS_KEY_MAX));
    FUZZ_CHECK(is_between(item->partition_key, 1, 1024));
    FUZZ_CHECK(item->payment_id.ptr == NULL || pay_id_is_payment(item->payment_id));
    pay_buf_reset(&value);
    FUZZ_CHECK(pay_payment_input_encode(codec, &input, &value, &err) == PAY_OK);
}

static void check_items(const struct pay_psp_items *items)
{
    FUZZ_CHECK(items->count > 0);
    for (size_t i = 0; i < items->count; i++) {
        check_item(&items->items[i]);
        for (size_t j = 0; j < i; j++) {
            FUZZ_CHECK(!pay_str_eq(items->items[i].transport_key, items->items[j].transport_key));
        }
    }
}

static void verify(struct pay_bytes rest)
{
    const uint8_t *end = memchr(rest.ptr, '\n', rest.len);
    const size_t len = end == NULL ? rest.len : (size_t)(end - rest.ptr);
    const struct pay_psp_header header = {
        PAY_STR("Stripe-Signature"),
        pay_arena_str(arena, (struct pay_str){(const char *)rest.ptr, len})};
    const struct pay_psp_notification raw = {
        .headers = &header,
        .header_count = 1,
        .body = end == NULL ? (struct pay_bytes){NULL, 0}
                            : (struct pay_bytes){end + 1, rest.len - len - 1}};
    struct pay_str key_id = {NULL, 0};
    const enum pay_psp_reason reason = pay_psp_stripe.verify(&account, &raw, NOW_US, &key_id);
    FUZZ_CHECK((unsigned)reason < PAY_PSP_REASON_COUNT);
    FUZZ_CHECK(reason != PAY_PSP_OK || pay_str_eq_c(key_id, "whsec-a"));
}

static void parse(struct pay_bytes rest)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_psp_items items = {.count = 0};
    const struct pay_psp_notification raw = {.body = rest};
    const enum pay_status status = pay_psp_stripe.parse(&account, &raw, arena, &items, &err);
    FUZZ_CHECK(status == PAY_OK || status == PAY_REJECT); /* There is room for all of it. */
    if (status == PAY_OK) {
        check_items(&items);
    }
}

/* A definite no is for the only send of a money call, or carries the transaction itself. */
static void check_no(const struct pay_psp_response *response, const struct pay_psp_item *item)
{
    const enum pay_event_type type = item->event.type;
    const bool is_no = type == PAY_EV_ATTEMPT_FAILED || type == PAY_EV_CAPTURE_FAILED ||
                       type == PAY_EV_REFUND_FAILED;
    const bool is_money =
        response->job->kind == PAY_JOB_SUBMIT || response->job->kind == PAY_JOB_CONFIRM ||
        response->job->kind == PAY_JOB_CAPTURE || response->job->kind == PAY_JOB_REFUND;
    FUZZ_CHECK(!is_no || (is_money && response->only_send) ||
               item->event.provider_payment_id.ptr != NULL ||
               item->event.provider_action_id.ptr != NULL);
}

static void read_answer(struct pay_bytes rest)
{
    if (rest.len < 4) {
        return;
    }
    struct pay_err err = {.status = PAY_OK};
    struct pay_psp_reading reading = {.items = {.count = 0}};
    const enum pay_job_kind kind = (enum pay_job_kind)(rest.ptr[0] % PAY_JOB_KIND_COUNT);
    const bool is_capture = kind == PAY_JOB_CAPTURE || kind == PAY_JOB_QUERY_CAPTURE;
    const bool is_refund = kind == PAY_JOB_REFUND || kind == PAY_JOB_QUERY_REFUND;
    const char *action = is_capture  ? "01ARZ3NDEKTSV4RRFFQ69G5FAVC01"
                         : is_refund ? "01ARZ3NDEKTSV4RRFFQ69G5FAVR01"
                                     : NULL;
    const struct pay_psp_request_job job = {
        .kind = kind,
        .job_id = PAY_STR(ATTEMPT ".JOB"),
        .payment_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .attempt_id = PAY_STR(ATTEMPT),
        .action_id = pay_str_of(action),
        .request_no = action == NULL ? PAY_STR(ATTEMPT) : pay_str_of(action),
        .number = 1,
        .method = PAY_STR("card"),
        .provider_reference = PAY_STR("pi_3Pabcdefghijklmnop"),
        .amount_minor = 2599,
        .attempt_amount_minor = 2599,
        .currency = PAY_STR("EUR"),
        .capture_mode = (rest.ptr[2] & 8) != 0 ? PAY_CAPTURE_MANUAL : PAY_CAPTURE_AUTOMATIC,
    };
    const struct pay_psp_response response = {
        .job = &job,
        .send_no = 1,
        .only_send = (rest.ptr[2] & 4) != 0,
        .query_by = (enum pay_query_by)(rest.ptr[1] % PAY_QUERY_BY_COUNT),
        .asked_at_us = NOW_US,
        .delivery = (enum pay_psp_delivery)((rest.ptr[2] & 3) % PAY_PSP_DELIVERY_COUNT),
        .http_status = 100 + 4 * rest.ptr[3] % 500,
        .body = {rest.ptr + 4, rest.len - 4},
    };
    FUZZ_CHECK(pay_psp_stripe.read(&account, &response, arena, &reading, &err) == PAY_OK);
    check_items(&reading.items);
    for (size_t i = 0; i < reading.items.count; i++) {
        check_no(&response, &reading.items.items[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    start();
    const struct pay_bytes rest = {data + 1, size - 1};
    switch (data[0]) {
    case 'v':
        verify(rest);
        break;
    case 'p':
        parse(rest);
        break;
    case 'r':
        read_answer(rest);
        break;
    default:
        break;
    }
    return 0;
}

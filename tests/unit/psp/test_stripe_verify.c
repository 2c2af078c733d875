/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "common/base/str.h"
#include "common/crypto/base64.h"
#include "common/crypto/hmac.h"
#include "common/psp/registry.h"
#include "common/psp/stripe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define VECTOR_COUNT 41 /* As delivered: a file that goes missing is a failure. */
#define HEADERS_MAX 8

static struct pay_str member_str(const struct pay_json_value *object, const char *name)
{
    return pay_json_str(pay_json_member(object, name));
}

static struct pay_bytes bytes_of(struct pay_str text)
{
    return (struct pay_bytes){(const uint8_t *)text.ptr, text.len};
}

static size_t vector_headers(const struct pay_json_value *vector, struct pay_psp_header *headers)
{
    void *iterator = NULL;
    size_t count = 0;
    struct pay_str name;
    const struct pay_json_value *value;
    const struct pay_json_value *all = pay_json_member(vector, "headers");
    while (pay_json_next(all, &iterator, &name, &value)) {
        const bool many = pay_json_kind(value) == PAY_JSON_ARRAY;
        for (size_t i = 0; i < (many ? pay_json_count(value) : 1); i++) {
            assert_true(count < HEADERS_MAX);
            headers[count++] =
                (struct pay_psp_header){name, pay_json_str(many ? pay_json_item(value, i) : value)};
        }
    }
    return count;
}

static size_t vector_keys(const struct pay_json_value *vector, struct pay_bytes *keys)
{
    const struct pay_json_value *list = pay_json_member(vector, "secrets");
    const size_t count = pay_json_count(list);
    for (size_t i = 0; i < count; i++) {
        keys[i] = bytes_of(pay_json_str(pay_json_item(list, i)));
    }
    if (count == 0) {
        keys[0] = bytes_of(member_str(vector, "secret"));
    }
    return count == 0 ? 1 : count;
}

static struct pay_bytes vector_body(struct fixture *fix, const struct pay_json_value *vector)
{
    const struct pay_str encoded = member_str(vector, "payload_b64");
    if (encoded.ptr == NULL) {
        return bytes_of(member_str(vector, "payload"));
    }
    pay_buf_reset(&fix->text);
    assert_true(pay_base64_decode(encoded, &fix->text));
    return pay_buf_bytes(&fix->text);
}

static void check_primitive(const struct pay_json_value *vector)
{
    uint8_t mac[PAY_HMAC_BYTES];
    char hex[2 * PAY_HMAC_BYTES + 1];
    pay_hmac_sha256(bytes_of(member_str(vector, "secret")), bytes_of(member_str(vector, "payload")),
                    mac);
    pay_hex_encode((struct pay_bytes){mac, sizeof mac}, hex);
    assert_string_equal(hex, member_str(vector, "expected").ptr);
}

static void check_webhook(struct fixture *fix, const struct pay_json_value *vector,
                          const char *file)
{
    struct pay_psp_header headers[HEADERS_MAX] = {0};
    struct pay_bytes keys[PAY_TEST_KEYS_MAX];
    struct pay_str key_id = {NULL, 0};
    int64_t now_s = 0;
    size_t index = 0;
    const size_t key_count = vector_keys(vector, keys);
    struct pay_psp_notification raw = {.headers = headers, .body = vector_body(fix, vector)};
    raw.header_count = vector_headers(vector, headers);
    assert_true(pay_json_int(pay_json_member(vector, "now"), &now_s));
    /* The rule on the keys as they stand: a newline in one is a part of it. */
    const char *wanted = member_str(vector, "code").ptr;
    enum pay_psp_reason reason = pay_stripe_check_signature(headers[0].value, raw.body, keys,
                                                            key_count, now_s * 1000000, &index);
    if (raw.header_count == 1 && strcmp(pay_psp_reason_name(reason), wanted) != 0) {
        fail_msg("%s: rule says %s", file, pay_psp_reason_name(reason));
    }
    fixture_keys(fix, keys, key_count);
    reason = pay_psp_stripe.verify(&fix->account, &raw, now_s * 1000000, &key_id);
    /* Loading trims the newline that an editor adds: then the key is the right one. */
    if (strcmp(file, "secret_with_newline.json") == 0) {
        wanted = "ok";
    }
    if (strcmp(pay_psp_reason_name(reason), wanted) != 0) {
        fail_msg("%s: adapter says %s", file, pay_psp_reason_name(reason));
    }
    assert_int_equal(reason == PAY_PSP_OK, key_id.ptr != NULL);
    /* What verifies says nothing of what it holds: reading it must be safe in any case. */
    struct pay_psp_items items;
    pay_arena_reset(fix->arena);
    const enum pay_status parsed =
        pay_psp_stripe.parse(&fix->account, &raw, fix->arena, &items, NULL);
    assert_true(parsed == PAY_OK || parsed == PAY_REJECT);
}

static void check_vector(struct fixture *fix, const char *file)
{
    char path[512];
    (void)snprintf(path, sizeof path, "vectors/stripe/%s", file);
    const struct pay_json_value *vector = fixture_json(fix, path);
    if (pay_str_eq_c(member_str(vector, "kind"), "primitive")) {
        check_primitive(vector);
    } else {
        check_webhook(fix, vector, file);
    }
}

/* Every file of the directory, so that none is forgotten (S1, S5, S11). */
static void test_s1_s5_s11_every_vector(void **state)
{
    assert_int_equal(fixture_each_file(*state, "vectors/stripe", check_vector), VECTOR_COUNT);
}

static const char body[] = "{\n  \"id\": \"evt_test_webhook\",\n  \"object\": \"event\"\n}";
static const char good[] =
    "t=1700000000,v1=4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230150";

static enum pay_psp_reason verify_at(struct fixture *fix, const char *name, const char *value,
                                     int64_t now_us, struct pay_str *ret_key)
{
    const struct pay_psp_header header = {pay_str_of(name), pay_str_of(value)};
    const struct pay_psp_notification raw = {
        .headers = &header, .header_count = 1, .body = bytes_of(pay_str_of(body))};
    return pay_psp_stripe.verify(&fix->account, &raw, now_us, ret_key);
}

#define T0 INT64_C(1700000000000000)
#define S INT64_C(1000000)

/* 300 s itself passes on both sides, one more does not (S11). */
static void test_s11_both_ends_of_the_window(void **state)
{
    static const struct {
        int64_t now_us;
        enum pay_psp_reason reason;
    } rows[] = {
        {T0 + 300 * S, PAY_PSP_OK},
        {T0 + 300 * S + 999999, PAY_PSP_OK},
        {T0 + 301 * S, PAY_PSP_TIMESTAMP_TOO_OLD},
        {T0 - 300 * S, PAY_PSP_OK},
        {T0 - 301 * S, PAY_PSP_TIMESTAMP_IN_FUTURE},
        {0, PAY_PSP_TIMESTAMP_IN_FUTURE},
        {INT64_MAX, PAY_PSP_TIMESTAMP_TOO_OLD},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pay_str key = {NULL, 0};
        assert_int_equal(verify_at(*state, "stripe-signature", good, rows[i].now_us, &key),
                         rows[i].reason);
    }
}

static void test_key_id_says_which_secret(void **state)
{
    struct fixture *fix = *state;
    struct pay_str key = {NULL, 0};
    const struct pay_bytes keys[] = {bytes_of(PAY_STR("whsec_other")),
                                     bytes_of(PAY_STR("whsec_test_secret"))};
    fixture_keys(fix, keys, 2);
    assert_int_equal(verify_at(fix, "STRIPE-SIGNATURE", good, T0, &key), PAY_PSP_OK);
    assert_string_equal(key.ptr, "whsec-b");
}

/* No key is no permission (S7). */
static void test_s7_no_key_verifies_nothing(void **state)
{
    struct fixture *fix = *state;
    struct pay_str key = {NULL, 0};
    struct pay_secret *secret = NULL;
    fix->account.callback_key_count = 0;
    assert_int_equal(verify_at(fix, "Stripe-Signature", good, T0, &key), PAY_PSP_NO_KEYS);
    assert_null(key.ptr);
    assert_int_not_equal(pay_secret_of("empty", bytes_of(PAY_STR(" \n")), &secret, NULL), PAY_OK);
}

static void test_header_forms(void **state)
{
    static const struct {
        const char *value;
        enum pay_psp_reason reason;
    } rows[] = {
        {"t=1700000000, v1=4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230150",
         PAY_PSP_OK},
        {"v1=4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230150,t=1700000000",
         PAY_PSP_OK},
        {"t=1700000000,t=1700000000,"
         "v1=4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230150",
         PAY_PSP_MALFORMED_HEADER},
        {"v1=4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230150",
         PAY_PSP_MALFORMED_HEADER},
        {"t=-1700000000,v1=00", PAY_PSP_MALFORMED_HEADER},
        {"t=+1700000000,v1=00", PAY_PSP_MALFORMED_HEADER},
        {"t=0,v1=00", PAY_PSP_MALFORMED_HEADER},
        {"t=1700000000,v1=00,v0=4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230150",
         PAY_PSP_SIGNATURE_MISMATCH}, /* Only v1 counts, also beside a v1. */
        {"t=1700000000", PAY_PSP_NO_V1_SIGNATURE},
        {"t=1700000000,v1=", PAY_PSP_SIGNATURE_MISMATCH},
        {"t=1700000000,v1=4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230151",
         PAY_PSP_SIGNATURE_MISMATCH},
        {"t=1700000001,v1=4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230150",
         PAY_PSP_SIGNATURE_MISMATCH},
        {" ", PAY_PSP_MALFORMED_HEADER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pay_str key = {NULL, 0};
        const enum pay_psp_reason reason =
            verify_at(*state, "Stripe-Signature", rows[i].value, T0, &key);
        assert_string_equal(pay_psp_reason_name(reason), pay_psp_reason_name(rows[i].reason));
    }
}

static void test_header_longer_than_any_is_malformed(void **state)
{
    struct fixture *fix = *state;
    struct pay_str key = {NULL, 0};
    pay_buf_reset(&fix->text);
    pay_buf_add_c(&fix->text, good);
    for (size_t i = 0; i < 3000; i++) {
        pay_buf_add_c(&fix->text, ",v1=");
    }
    assert_int_equal(verify_at(fix, "Stripe-Signature", (const char *)fix->text.data, T0, &key),
                     PAY_PSP_MALFORMED_HEADER);
}

/* Every registered adapter verifies: there is none that takes anybody's word (S17). */
static void test_s17_every_adapter_is_complete(void **state)
{
    struct fixture *fix = *state;
    assert_true(pay_psp_count() > 0);
    for (size_t i = 0; i < pay_psp_count(); i++) {
        const struct pay_psp_adapter *psp = pay_psp_at(i);
        const struct pay_psp_notification bare = {.body = bytes_of(pay_str_of(body))};
        struct pay_str key = {NULL, 0};
        assert_true(psp->verify != NULL && psp->parse != NULL && psp->answer != NULL);
        assert_true(psp->build != NULL && psp->read != NULL && psp->authorize != NULL);
        assert_true(psp->choose_query != NULL && psp->check_account != NULL);
        assert_true(psp->traits.not_founds_needed > 0 && psp->answer_timeout_ms > 0);
        assert_true(psp->request_no_bytes_max >= 29);
        assert_int_not_equal(psp->verify(&fix->account, &bare, T0, &key), PAY_PSP_OK);
        assert_ptr_equal(pay_psp_find(pay_str_of(psp->name)), psp);
        for (size_t other = i + 1; other < pay_psp_count(); other++) {
            assert_string_not_equal(psp->name, pay_psp_at(other)->name);
        }
    }
    assert_null(pay_psp_find(PAY_STR("mock")));
    assert_null(pay_psp_find((struct pay_str){NULL, 0}));
}

static void test_answers(void **state)
{
    static const unsigned statuses[PAY_PSP_OUTCOME_COUNT] = {
        [PAY_PSP_DURABLE] = 200,  [PAY_PSP_DUPLICATE] = 200,      [PAY_PSP_REFUSED] = 400,
        [PAY_PSP_MISMATCH] = 400, [PAY_PSP_UNAVAILABLE] = 503,    [PAY_PSP_BODY_TOO_LARGE] = 413,
        [PAY_PSP_TOO_FAST] = 429, [PAY_PSP_UNKNOWN_ACCOUNT] = 404};
    (void)state;
    for (int i = 0; i < PAY_PSP_OUTCOME_COUNT; i++) {
        const struct pay_psp_answer answer = pay_psp_stripe.answer((enum pay_psp_outcome)i);
        assert_int_equal(answer.status, statuses[i]);
        assert_string_equal(answer.content_type, "application/json");
        assert_true(answer.body.ptr != NULL && answer.body.len > 0);
        assert_int_equal(answer.retry_after_s > 0,
                         i == PAY_PSP_TOO_FAST || i == PAY_PSP_UNAVAILABLE);
    }
    /* An outcome out of range is never a success. */
    assert_int_equal(pay_psp_stripe.answer(PAY_PSP_OUTCOME_COUNT).status, 503);
}

static void test_reason_names_are_distinct(void **state)
{
    (void)state;
    for (int i = 0; i < PAY_PSP_REASON_COUNT; i++) {
        assert_string_not_equal(pay_psp_reason_name((enum pay_psp_reason)i), "?");
        for (int j = i + 1; j < PAY_PSP_REASON_COUNT; j++) {
            assert_string_not_equal(pay_psp_reason_name((enum pay_psp_reason)i),
                                    pay_psp_reason_name((enum pay_psp_reason)j));
        }
    }
    assert_string_equal(pay_psp_reason_name(PAY_PSP_REASON_COUNT), "?");
    assert_string_equal(pay_psp_refusal_code(PAY_PSP_SIGNATURE_MISMATCH), "SIGNATURE");
    assert_string_equal(pay_psp_refusal_code(PAY_PSP_TIMESTAMP_TOO_OLD), "TIME_WINDOW");
    assert_string_equal(pay_psp_refusal_code(PAY_PSP_TIMESTAMP_IN_FUTURE), "TIME_WINDOW");
    assert_string_equal(pay_psp_refusal_code(PAY_PSP_BAD_AMOUNT), "FORMAT");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_s1_s5_s11_every_vector),
        TEST(test_s11_both_ends_of_the_window),
        TEST(test_key_id_says_which_secret),
        TEST(test_s7_no_key_verifies_nothing),
        TEST(test_header_forms),
        TEST(test_header_longer_than_any_is_malformed),
        TEST(test_s17_every_adapter_is_complete),
        TEST(test_answers),
        TEST(test_reason_names_are_distinct),
    };
    return cmocka_run_group_tests_name("stripe verify", tests, NULL, NULL);
}

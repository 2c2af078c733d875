/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: what is sent is what was asked, signed over exactly its bytes, and no secret stands in the
 * signed value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/core/id.h"
#include "common/crypto/sha256.h"
#include "tools/payfactctl/send.h"

#define PAYMENT "01JD0000000000000000000001"
#define NOW_US INT64_C(1764500000000000)

struct fixture {
    char dir[64];
    char private_path[96];
    char public_path[96];
    struct pay_send_options options;
    struct pay_send_order order;
    struct pay_codec *codec;
    struct pay_arena *arena;
    struct pay_command command;
    struct pay_command_secrets secrets;
    struct pay_err err;
};
static struct fixture fixture;

static int make(void **state)
{
    struct fixture *f = &fixture;
    (void)state;
    memset(f, 0, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/pay_send_XXXXXX");
    if (mkdtemp(f->dir) == NULL) {
        return -1;
    }
    (void)snprintf(f->private_path, sizeof f->private_path, "%.60s/k.pem", f->dir);
    (void)snprintf(f->public_path, sizeof f->public_path, "%.60s/k.pub.pem", f->dir);
    f->options = (struct pay_send_options){
        .caller = "shop",
        .key_id = "shop-a",
        .key_file = f->private_path,
        .merchant = "acme",
        .payment_id = PAYMENT,
        .order_no = "O-1",
        .amount_minor = 2599,
        .currency = "EUR",
    };
    f->arena = pay_arena_new(1 << 20);
    return pay_ed25519_generate_files(f->private_path, f->public_path, &f->err) == PAY_OK &&
                   pay_codec_new(&f->codec, &f->err) == PAY_OK && f->arena != NULL
               ? 0
               : -1;
}

static int drop(void **state)
{
    (void)state;
    pay_send_free(&fixture.order);
    fixture.codec = pay_codec_free(fixture.codec);
    fixture.arena = pay_arena_free(fixture.arena);
    return unlink(fixture.private_path) + unlink(fixture.public_path) + rmdir(fixture.dir);
}

static enum pay_status build(enum pay_command_type type)
{
    pay_send_free(&fixture.order);
    return pay_send_build(type, &fixture.options, NOW_US, &fixture.order, &fixture.err);
}

/* As the relay does it. */
static void build_and_read(enum pay_command_type type)
{
    struct fixture *f = &fixture;
    struct pay_ed25519_public *key = NULL;
    struct pay_buf message = pay_buf_make(PAY_COMMAND_BYTES_MAX + 64);
    if (build(type) != PAY_OK) {
        fail_msg("%s: %s", f->err.op, f->err.text);
    }
    pay_buf_add(&message, PAY_COMMAND_SIGNATURE_PREFIX, PAY_COMMAND_SIGNATURE_PREFIX_BYTES);
    pay_buf_add(&message, f->order.value.data, f->order.value.len);
    assert_int_equal(pay_ed25519_public_load(f->public_path, &key, &f->err), PAY_OK);
    const bool is_signed =
        pay_ed25519_verify(key, pay_buf_bytes(&message),
                           (struct pay_bytes){f->order.signature, sizeof f->order.signature});
    key = pay_ed25519_public_free(key);
    pay_buf_free(&message);
    assert_true(is_signed);
    assert_int_equal(pay_command_decode(f->codec, pay_buf_bytes(&f->order.value), f->arena,
                                        &f->command, &f->err),
                     PAY_OK);
    assert_int_equal(f->command.type, type);
    if (f->order.secrets_value.len > 0) {
        uint8_t digest[PAY_SHA256_BYTES];
        pay_sha256(pay_buf_bytes(&f->order.secrets_value), digest);
        assert_int_equal(f->command.secrets_sha256.len, sizeof digest);
        assert_memory_equal(f->command.secrets_sha256.ptr, digest, sizeof digest);
        assert_int_equal(pay_command_secrets_decode(f->codec,
                                                    pay_buf_bytes(&f->order.secrets_value),
                                                    f->arena, &f->secrets, &f->err),
                         PAY_OK);
    } else {
        assert_null(f->command.secrets_sha256.ptr);
    }
}

static void add(struct pay_arg_list *list, const char *text)
{
    list->items[list->count++] = text;
}

static void create_payment_says_everything(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    add(&f->options.routes, "stripe/stripe-a/card:failover");
    add(&f->options.routes, "stripe/stripe-b/card");
    add(&f->options.instruments, "pm_secret_a");
    add(&f->options.instruments, "pm_secret_b");
    add(&f->options.extra, "brand=visa=debit");
    f->options.return_url = "https://shop.example/back";
    f->options.payer_id = "cus_secret";
    f->options.payer_ip = "192.0.2.7";
    f->options.expires_in_s = 60;
    f->options.no_start = true;
    f->options.capture = "MANUAL";
    f->options.command_id = "c-1";
    build_and_read(PAY_CMD_CREATE_PAYMENT);
    const struct pay_cmd_create_payment *create = &f->command.create_payment;
    assert_string_equal(f->command.caller.ptr, "shop");
    assert_string_equal(f->command.merchant_id.ptr, "acme");
    assert_string_equal(f->command.payment_id.ptr, PAYMENT);
    assert_string_equal(f->command.command_id.ptr, "c-1");
    assert_int_equal(f->command.issued_at_us, NOW_US);
    assert_string_equal(create->merchant_order_no.ptr, "O-1");
    assert_int_equal(create->amount.amount_minor, 2599);
    assert_string_equal(create->amount.currency, "EUR");
    assert_int_equal(create->capture_mode, PAY_CAPTURE_MANUAL);
    assert_int_equal(create->expires_at_us, NOW_US + 60 * INT64_C(1000000));
    assert_int_equal(create->retry_until_expiry, -1);
    assert_false(create->start);
    assert_int_equal(create->route_count, 2);
    assert_true(create->routes[0].failover_on_not_found);
    assert_string_equal(create->routes[0].method.ptr, "card");
    assert_false(create->routes[1].failover_on_not_found);
    assert_string_equal(create->routes[1].psp_account.ptr, "stripe-b");
    assert_int_equal(f->secrets.salt.len, PAY_COMMAND_SALT_BYTES);
    assert_int_equal(f->secrets.param_count, 2);
    assert_string_equal(f->secrets.params[0].instrument.ptr, "pm_secret_a");
    assert_string_equal(f->secrets.params[1].instrument.ptr, "pm_secret_b");
    assert_string_equal(f->secrets.params[1].payer_id.ptr, "cus_secret");
    assert_string_equal(f->secrets.params[1].extra[0].name.ptr, "brand");
    assert_string_equal(f->secrets.params[1].extra[0].value.ptr, "visa=debit");
}

static bool holds(const struct pay_buf *buf, const char *text)
{
    const size_t len = strlen(text);
    for (size_t at = 0; at + len <= buf->len; at++) {
        if (memcmp(buf->data + at, text, len) == 0) {
            return true;
        }
    }
    return false;
}

static void no_secret_stands_in_the_signed_value(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    static const char *const secrets[] = {"pm_secret", "cus_secret", "shop.example"};
    add(&f->options.routes, "stripe/stripe-a/card");
    add(&f->options.instruments, "pm_secret");
    f->options.payer_id = "cus_secret";
    f->options.return_url = "https://shop.example/back";
    build_and_read(PAY_CMD_CREATE_PAYMENT);
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        assert_false(holds(&f->order.value, secrets[i]));
        assert_true(holds(&f->order.secrets_value, secrets[i]));
    }
}

static void the_other_kinds(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    add(&f->options.routes, "stripe/stripe-b/card");
    build_and_read(PAY_CMD_CHANGE_METHOD);
    assert_string_equal(f->command.route.psp_account.ptr, "stripe-b");
    add(&f->options.instruments, "pm_1");
    build_and_read(PAY_CMD_START_ATTEMPT);
    assert_int_equal(f->secrets.param_count, 1);
    f->options.attempt_id = PAYMENT "A01";
    f->options.redirect_data = "payload=xyz";
    build_and_read(PAY_CMD_CONTINUE_ATTEMPT);
    assert_string_equal(f->command.attempt_id.ptr, PAYMENT "A01");
    assert_int_equal(f->secrets.redirect_data.len, 11);
    assert_memory_equal(f->secrets.redirect_data.ptr, "payload=xyz", 11);
    build_and_read(PAY_CMD_CANCEL_PAYMENT);
    assert_string_equal(f->command.reason_code.ptr, "REQUESTED_BY_CALLER");
    assert_int_equal(f->order.secrets_value.len, 0);
}

static void new_ids_are_made_where_asked(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    char first[PAY_ULID_LEN + 1];
    f->options.payment_id = "new";
    build_and_read(PAY_CMD_CREATE_PAYMENT);
    assert_true(pay_id_is_payment(f->command.payment_id));
    assert_string_equal(f->command.payment_id.ptr, f->order.payment_id);
    assert_int_equal(f->command.command_id.len, PAY_ULID_LEN);
    memcpy(first, f->order.payment_id, sizeof first);
    build_and_read(PAY_CMD_CREATE_PAYMENT);
    assert_string_not_equal(first, f->order.payment_id);
    assert_int_equal(build(PAY_CMD_CANCEL_PAYMENT), PAY_REJECT);
}

static void headers_carry_key_signature_and_secrets(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    struct pay_kafka_headers headers;
    build_and_read(PAY_CMD_CANCEL_PAYMENT);
    assert_true(pay_send_headers(&f->order, "shop-a", &headers));
    assert_int_equal(headers.count, 2);
    assert_true(pay_str_eq_c(pay_kafka_headers_get_str(&headers, "payfact-key-id"), "shop-a"));
    assert_int_equal(pay_kafka_headers_get(&headers, "payfact-signature").len, 64);
    add(&f->options.routes, "stripe/stripe-b/card");
    add(&f->options.instruments, "pm_1");
    build_and_read(PAY_CMD_START_ATTEMPT);
    assert_true(pay_send_headers(&f->order, "shop-a", &headers));
    assert_true(pay_bytes_eq(pay_kafka_headers_get(&headers, "payfact-secrets"),
                             pay_buf_bytes(&f->order.secrets_value)));
}

static void must_not_be_a_route(const char *text)
{
    struct pay_route_choice route;
    if (pay_send_route(text, &route)) {
        fail_msg("\"%s\" was taken for a route", text);
    }
}

static void routes_are_read_exactly(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",        "stripe",       "stripe/a",
                                        "/a/card", "stripe//card", "stripe/a/",
                                        "a/b/c/d", "a/b/c:",       "a/b/c:fail"};
    struct pay_route_choice route;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        must_not_be_a_route(wrong[i]);
    }
    assert_true(pay_send_route("stripe/a/card", &route));
    assert_false(route.failover_on_not_found);
    assert_true(pay_send_route("stripe/a/card:failover", &route));
    assert_true(route.failover_on_not_found);
    assert_true(pay_str_eq_c(route.method, "card"));
}

static void what_does_not_make_a_command_is_refused(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    const struct pay_send_options good = f->options;
    f->options.currency = "EUX";
    assert_int_equal(build(PAY_CMD_CREATE_PAYMENT), PAY_REJECT);
    f->options = good;
    f->options.payment_id = "01jd0000000000000000000001";
    assert_int_equal(build(PAY_CMD_CREATE_PAYMENT), PAY_REJECT);
    f->options = good;
    f->options.capture = "LATER";
    assert_int_equal(build(PAY_CMD_CREATE_PAYMENT), PAY_REJECT);
    f->options = good;
    add(&f->options.instruments, "pm_1"); /* of which route? */
    assert_int_equal(build(PAY_CMD_CREATE_PAYMENT), PAY_REJECT);
    add(&f->options.instruments, "pm_2");
    for (int i = 0; i < 3; i++) {
        add(&f->options.routes, "stripe/a/card");
    }
    assert_int_equal(build(PAY_CMD_CREATE_PAYMENT), PAY_REJECT);
    assert_int_equal(build(PAY_CMD_START_ATTEMPT), PAY_REJECT);
    f->options = good;
    f->options.traceparent = "00-x";
    assert_int_equal(build(PAY_CMD_CREATE_PAYMENT), PAY_REJECT);
    f->options = good;
    f->options.attempt_id = PAYMENT;
    assert_int_equal(build(PAY_CMD_CONTINUE_ATTEMPT), PAY_REJECT);
    f->options = good;
    f->options.key_file = "/nonexistent";
    assert_int_equal(build(PAY_CMD_CREATE_PAYMENT), PAY_FATAL);
}

#define SHA256 "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void money_back_and_forth(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    f->options.reason = "duplicate";
    f->options.idempotency_key = "credit-note-7";
    f->options.attempt_id = PAYMENT "A02";
    build_and_read(PAY_CMD_REQUEST_REFUND);
    assert_int_equal(f->command.money.amount.amount_minor, 2599);
    assert_string_equal(f->command.money.amount.currency, "EUR");
    assert_string_equal(f->command.money.attempt_id.ptr, PAYMENT "A02");
    assert_string_equal(f->command.money.reason_code.ptr, "duplicate");
    assert_string_equal(f->command.money.idempotency_key.ptr, "credit-note-7");
    build_and_read(PAY_CMD_CAPTURE);
    assert_true(f->command.money.is_final);
    f->options.is_partial = true;
    build_and_read(PAY_CMD_CAPTURE);
    assert_false(f->command.money.is_final);
    f->options.reason = NULL;
    build_and_read(PAY_CMD_REQUEST_REFUND);
    assert_string_equal(f->command.money.reason_code.ptr, "REQUESTED_BY_CALLER");
    f->options.currency = "EURO";
    assert_int_equal(build(PAY_CMD_REQUEST_REFUND), PAY_REJECT);
}

static void what_two_others_decide(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    f->options.aggregate_id = PAYMENT "R01";
    f->options.expected_version = 3;
    f->options.from_status = "UNKNOWN";
    f->options.to_status = "SUCCEEDED";
    f->options.provider_reference = "re_1";
    f->options.reason = "PSP_CONFIRMED";
    add(&f->options.attachments, "mail=1=" SHA256);
    build_and_read(PAY_CMD_CORRECT_STATE);
    const struct pay_cmd_controlled *wish = &f->command.controlled;
    assert_string_equal(wish->aggregate_id.ptr, PAYMENT "R01");
    assert_int_equal(wish->expected_version, 3);
    assert_string_equal(wish->from_status.ptr, "UNKNOWN");
    assert_string_equal(wish->to_status.ptr, "SUCCEEDED");
    assert_string_equal(wish->provider_reference.ptr, "re_1");
    assert_string_equal(wish->reason_code.ptr, "PSP_CONFIRMED");
    assert_true(wish->has_amount && wish->amount.amount_minor == 2599);
    assert_int_equal(wish->attachment_count, 1);
    assert_string_equal(wish->attachments[0].reference.ptr, "mail=1");
    assert_int_equal(wish->attachments[0].sha256.len, PAY_SHA256_BYTES);
    assert_int_equal(wish->attachments[0].sha256.ptr[1], 0x11);
    f->options.amount_minor = 0;
    f->options.currency = NULL;
    build_and_read(PAY_CMD_CORRECT_STATE);
    assert_false(f->command.controlled.has_amount);
    build_and_read(PAY_CMD_FORCE_CLOSE_UNKNOWN);
    assert_string_equal(f->command.controlled.to_status.ptr, "SUCCEEDED");
    build_and_read(PAY_CMD_RELEASE_RESERVATION);
    build_and_read(PAY_CMD_OVERRIDE_BLOCK);
    assert_string_equal(f->command.controlled.aggregate_id.ptr, PAYMENT "R01");
    f->options.reason = "REFUNDED";
    build_and_read(PAY_CMD_RESOLVE_CASE);
    assert_int_equal(f->command.controlled.attachment_count, 1);
    f->options.amount_minor = 5; /* of which currency? */
    assert_int_equal(build(PAY_CMD_CORRECT_STATE), PAY_REJECT);
    f->options.amount_minor = 0;
    add(&f->options.attachments, "mail=12");
    assert_int_equal(build(PAY_CMD_CORRECT_STATE), PAY_REJECT);
    f->options.attachments.items[1] = "=" SHA256;
    assert_int_equal(build(PAY_CMD_CORRECT_STATE), PAY_REJECT);
    f->options.payment_id = ""; /* A case of no payment is dlq's. */
    assert_int_equal(build(PAY_CMD_RESOLVE_CASE), PAY_REJECT);
}

static void words_name_the_bytes_they_are_about(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    f->options.request_id = "shop/c-1";
    f->options.request_sha256 = SHA256;
    f->options.reason = "NOT_SHOWN";
    build_and_read(PAY_CMD_APPROVE);
    assert_string_equal(f->command.approval.request_id.ptr, "shop/c-1");
    assert_int_equal(f->command.approval.request_sha256.len, PAY_SHA256_BYTES);
    assert_int_equal(f->command.approval.request_sha256.ptr[15], 0xff);
    build_and_read(PAY_CMD_DECLINE);
    assert_string_equal(f->command.approval.reason_code.ptr, "NOT_SHOWN");
    f->options.request_sha256 = "0011";
    assert_int_equal(build(PAY_CMD_APPROVE), PAY_REJECT);
}

static void a_pause_is_of_a_route_and_no_payment(void **state)
{
    (void)state;
    struct fixture *f = &fixture;
    f->options.payment_id = "";
    f->options.key = "stripe/stripe-a";
    f->options.psp = "stripe";
    f->options.psp_account = "stripe-a";
    f->options.reason = "PSP_DOWN";
    build_and_read(PAY_CMD_PAUSE_ROUTE);
    assert_string_equal(f->order.key, "stripe/stripe-a");
    assert_string_equal(f->command.subject.psp_account.ptr, "stripe-a");
    assert_int_equal(f->command.subject.method.len, 0);
    f->options.method = "card";
    build_and_read(PAY_CMD_RESUME_ROUTE);
    assert_string_equal(f->command.subject.method.ptr, "card");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(create_payment_says_everything, make, drop),
        cmocka_unit_test_setup_teardown(no_secret_stands_in_the_signed_value, make, drop),
        cmocka_unit_test_setup_teardown(the_other_kinds, make, drop),
        cmocka_unit_test_setup_teardown(new_ids_are_made_where_asked, make, drop),
        cmocka_unit_test_setup_teardown(headers_carry_key_signature_and_secrets, make, drop),
        cmocka_unit_test_setup_teardown(routes_are_read_exactly, make, drop),
        cmocka_unit_test_setup_teardown(money_back_and_forth, make, drop),
        cmocka_unit_test_setup_teardown(what_two_others_decide, make, drop),
        cmocka_unit_test_setup_teardown(words_name_the_bytes_they_are_about, make, drop),
        cmocka_unit_test_setup_teardown(a_pause_is_of_a_route_and_no_payment, make, drop),
        cmocka_unit_test_setup_teardown(what_does_not_make_a_command_is_refused, make, drop),
    };
    return cmocka_run_group_tests_name("send", tests, NULL, NULL);
}

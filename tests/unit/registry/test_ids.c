/* SPDX-License-Identifier: Apache-2.0 */
/* What schema ids mean, on their way in and out: what is asked, how often, and what is waited for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/contracts/released.h"
#include "common/registry/incoming.h"
#include "common/registry/outgoing.h"
#include "tests/unit/contracts/samples.h"
#include "tests/unit/registry/fake.h"

#define ANSWER_MAX ((size_t)256 * 1024)
#define ID 0x01020304U

struct fixture {
    struct fake fake;
    struct pay_registry *registry;
    struct pay_codec *codec;
    struct pay_arena *arena;
    struct pay_incoming *incoming;
    struct pay_outgoing *outgoing;
    struct pay_buf answer; /* The schema at hand, as the registry tells it. */
    struct pay_buf value, framed;
    struct pay_err err;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    memset(&fixture, 0, sizeof fixture);
    fake_start(&fixture.fake);
    const struct pay_registry_options options = {.url = fixture.fake.url};
    assert_int_equal(pay_registry_new(&options, &fixture.registry, &fixture.err), PAY_OK);
    assert_int_equal(pay_codec_new(&fixture.codec, &fixture.err), PAY_OK);
    fixture.arena = pay_arena_new((size_t)1024 * 1024);
    assert_non_null(fixture.arena);
    assert_int_equal(
        pay_incoming_new(fixture.registry, fixture.codec, &fixture.incoming, &fixture.err), PAY_OK);
    assert_int_equal(pay_outgoing_new(fixture.registry, PAY_RECORD_PAYMENT_EVENT, "payfact.events",
                                      &fixture.outgoing, &fixture.err),
                     PAY_OK);
    fixture.answer = pay_buf_make(ANSWER_MAX);
    fixture.value = pay_buf_make(ANSWER_MAX);
    fixture.framed = pay_buf_make(ANSWER_MAX);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    fixture->incoming = pay_incoming_free(fixture->incoming);
    fixture->outgoing = pay_outgoing_free(fixture->outgoing);
    fixture->codec = pay_codec_free(fixture->codec);
    fixture->registry = pay_registry_free(fixture->registry);
    fixture->arena = pay_arena_free(fixture->arena);
    pay_buf_free(&fixture->answer);
    pay_buf_free(&fixture->value);
    pay_buf_free(&fixture->framed);
    fake_stop(&fixture->fake);
    return 0;
}

static void say(struct fixture *fixture, int status, const char *body)
{
    const struct fake_answer answer = {status, body};
    fake_say(&fixture->fake, &answer, 1);
}

/* The current schema of a record, with one more field before all others. */
static void make_newer(enum pay_record record, struct pay_buf *out)
{
    static const char fields[] = "\"fields\"";
    struct pay_released released[PAY_RELEASED_MAX];
    const size_t count = pay_released(record, released);
    const char *text = released[count - 1].json.ptr;
    const char *at = strstr(text, fields);
    assert_non_null(at);
    at = strchr(at, '[') + 1;
    pay_buf_add(out, text, (size_t)(at - text));
    pay_buf_add_c(out, "{\"name\":\"newer\",\"type\":\"string\",\"default\":\"\"},");
    pay_buf_add_c(out, at);
    assert_false(out->failed);
}

static const char *answer_of(struct fixture *fixture, struct pay_str schema)
{
    pay_buf_reset(&fixture->answer);
    pay_buf_printf(&fixture->answer, "{\"id\":%u,\"version\":1,\"schema\":", ID);
    pay_buf_add_json_str(&fixture->answer, schema);
    pay_buf_add_c(&fixture->answer, "}");
    assert_false(fixture->answer.failed);
    return pay_buf_str(&fixture->answer).ptr;
}

static struct pay_str current(enum pay_record record)
{
    static struct pay_released released[PAY_RELEASED_MAX];
    const size_t count = pay_released(record, released);
    return released[count - 1].json;
}

/* The smallest value of a record, framed by ID; "newer" as its first field where asked for. */
static struct pay_bytes value_of(struct fixture *fixture, enum pay_record record, bool is_newer)
{
    union any_record sample;
    static const uint8_t frame[] = {0, 1, 2, 3, 4};
    memset(&sample, 0, sizeof sample);
    record_cases[record].make_small(&sample, 0);
    pay_buf_reset(&fixture->value);
    assert_int_equal(
        record_cases[record].encode(fixture->codec, &sample, &fixture->value, &fixture->err),
        PAY_OK);
    pay_buf_reset(&fixture->framed);
    pay_buf_add(&fixture->framed, frame, sizeof frame);
    if (is_newer) {
        pay_buf_add_c(&fixture->framed, "\x06"
                                        "new"); /* A string of three bytes. */
    }
    pay_buf_add(&fixture->framed, (const uint8_t *)fixture->value.data + PAY_CODEC_FRAME_BYTES,
                fixture->value.len - PAY_CODEC_FRAME_BYTES);
    return pay_buf_bytes(&fixture->framed);
}

static enum pay_status decode(struct fixture *fixture, enum pay_record record,
                              struct pay_bytes value)
{
    union any_record into;
    pay_arena_reset(fixture->arena);
    return record_cases[record].decode(fixture->codec, value, fixture->arena, &into, &fixture->err);
}

static enum pay_status resolve(struct fixture *fixture, enum pay_record record,
                               struct pay_bytes value)
{
    return pay_incoming_resolve(fixture->incoming, record, value, &fixture->err);
}

static int asked(struct fixture *fixture)
{
    return atomic_load(&fixture->fake.requests);
}

/* ---- in ---- */

static void test_our_own_schema_is_asked_for_once(void **state)
{
    struct fixture *fixture = *state;
    const enum pay_record records[] = {PAY_RECORD_COMMAND, PAY_RECORD_RAW_NOTIFICATION};
    for (size_t i = 0; i < 2; i++) {
        const struct pay_bytes value = value_of(fixture, records[i], false);
        say(fixture, 200, answer_of(fixture, current(records[i])));
        assert_int_equal(decode(fixture, records[i], value), PAY_REJECT);
        assert_int_equal(fixture->err.code, PAY_CODEC_SCHEMA_UNKNOWN);
        for (int times = 0; times < 3; times++) {
            assert_int_equal(resolve(fixture, records[i], value), PAY_OK);
            assert_int_equal(decode(fixture, records[i], value), PAY_OK);
        }
        assert_int_equal(asked(fixture),
                         (int)i + 1); /* Of each record: an id may be of one only. */
    }
    assert_non_null(strstr(fixture->fake.last, "GET /apis/ccompat/v7/schemas/ids/16909060 HTTP"));
}

static void test_other_framings_ask_for_nothing(void **state)
{
    struct fixture *fixture = *state;
    static const uint8_t odd[] = {1, 2, 3, 4, 5};
    (void)value_of(fixture, PAY_RECORD_COMMAND, false);
    assert_int_equal(resolve(fixture, PAY_RECORD_COMMAND, pay_buf_bytes(&fixture->value)), PAY_OK);
    assert_int_equal(resolve(fixture, PAY_RECORD_COMMAND, (struct pay_bytes){odd, 5}), PAY_OK);
    assert_int_equal(resolve(fixture, PAY_RECORD_COMMAND, (struct pay_bytes){odd + 5, 0}), PAY_OK);
    assert_int_equal(resolve(fixture, PAY_RECORD_COMMAND, (struct pay_bytes){NULL, 0}), PAY_OK);
    assert_int_equal(asked(fixture), 0);
}

static void test_a_newer_notification_is_read(void **state)
{
    struct fixture *fixture = *state;
    const enum pay_record record = PAY_RECORD_RAW_NOTIFICATION;
    struct pay_buf schema = pay_buf_make(ANSWER_MAX);
    make_newer(record, &schema);
    say(fixture, 200, answer_of(fixture, pay_buf_str(&schema)));
    const struct pay_bytes value = value_of(fixture, record, true);
    assert_int_equal(resolve(fixture, record, value), PAY_OK);
    assert_int_equal(decode(fixture, record, value), PAY_OK);
    pay_buf_free(&schema);
}

/* The processor could not read it, and a schema is not covered by the signature. */
static void test_a_newer_command_is_not(void **state)
{
    struct fixture *fixture = *state;
    const enum pay_record record = PAY_RECORD_COMMAND;
    struct pay_buf schema = pay_buf_make(ANSWER_MAX);
    make_newer(record, &schema);
    say(fixture, 200, answer_of(fixture, pay_buf_str(&schema)));
    const struct pay_bytes value = value_of(fixture, record, true);
    for (int times = 0; times < 3; times++) {
        assert_int_equal(resolve(fixture, record, value), PAY_OK);
        assert_int_equal(decode(fixture, record, value), PAY_REJECT);
        assert_int_equal(fixture->err.code, PAY_CODEC_SCHEMA_UNKNOWN);
    }
    assert_int_equal(asked(fixture), 1);
    pay_buf_free(&schema);
}

static void test_a_schema_of_something_else(void **state)
{
    struct fixture *fixture = *state;
    const struct pay_bytes value = value_of(fixture, PAY_RECORD_COMMAND, false);
    say(fixture, 200, answer_of(fixture, current(PAY_RECORD_PAYMENT_EVENT)));
    assert_int_equal(resolve(fixture, PAY_RECORD_COMMAND, value), PAY_OK);
    assert_int_equal(decode(fixture, PAY_RECORD_COMMAND, value), PAY_REJECT);
    assert_int_equal(fixture->err.code, PAY_CODEC_SCHEMA_UNKNOWN);
}

/* There it is, and will never be of use: no second for a replica, no asking again. */
static void test_a_schema_that_is_not_avro(void **state)
{
    struct fixture *fixture = *state;
    const struct pay_bytes value = value_of(fixture, PAY_RECORD_COMMAND, false);
    say(fixture, 200, "{\"schema\":\"x\",\"schemaType\":\"PROTOBUF\"}");
    for (int times = 0; times < 3; times++) {
        assert_int_equal(resolve(fixture, PAY_RECORD_COMMAND, value), PAY_OK);
        assert_int_equal(decode(fixture, PAY_RECORD_COMMAND, value), PAY_REJECT);
        assert_int_equal(fixture->err.code, PAY_CODEC_SCHEMA_UNKNOWN);
    }
    assert_int_equal(asked(fixture), 1);
}

/* An outage says nothing about a schema: nothing may become a dead letter of it. */
static void test_while_it_is_away_nothing_is_decided(void **state)
{
    struct fixture *fixture = *state;
    const struct pay_bytes value = value_of(fixture, PAY_RECORD_COMMAND, false);
    static const struct fake_answer bad[] = {{0, ""}, {503, ""}, {404, "no such path"}, {401, ""}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fake_say(&fixture->fake, &bad[i], 1);
        assert_int_equal(resolve(fixture, PAY_RECORD_COMMAND, value), PAY_RETRY);
    }
    say(fixture, 200, answer_of(fixture, current(PAY_RECORD_COMMAND)));
    assert_int_equal(resolve(fixture, PAY_RECORD_COMMAND, value), PAY_OK);
    assert_int_equal(decode(fixture, PAY_RECORD_COMMAND, value), PAY_OK);
}

static void test_an_absent_id_gets_a_second_and_then_is_absent(void **state)
{
    struct fixture *fixture = *state;
    const struct timespec pause = {.tv_nsec = 20000000};
    const struct pay_bytes value = value_of(fixture, PAY_RECORD_COMMAND, false);
    const int64_t began_us = pay_clock_mono_us();
    say(fixture, 404, "{\"error_code\":40403}");
    while (resolve(fixture, PAY_RECORD_COMMAND, value) == PAY_RETRY) {
        assert_int_equal(fixture->err.code, PAY_REGISTRY_NOT_FOUND);
        assert_true(pay_clock_mono_us() - began_us < INT64_C(20000000));
        (void)nanosleep(&pause, NULL);
    }
    assert_true(pay_clock_mono_us() - began_us >= INT64_C(1000) * PAY_INCOMING_GRACE_MS);
    assert_int_equal(decode(fixture, PAY_RECORD_COMMAND, value), PAY_REJECT);
    const int before = asked(fixture);
    assert_int_equal(resolve(fixture, PAY_RECORD_COMMAND, value), PAY_OK);
    assert_int_equal(asked(fixture), before); /* Not again for a while. */
}

static void test_any_number_of_ids_stays_bounded(void **state)
{
    struct fixture *fixture = *state;
    const enum pay_record record = PAY_RECORD_COMMAND;
    uint8_t value[8] = {0};
    say(fixture, 200, answer_of(fixture, current(record)));
    for (unsigned i = 0; i <= PAY_INCOMING_IDS_MAX; i++) {
        value[3] = (uint8_t)(i >> 8);
        value[4] = (uint8_t)i;
        assert_int_equal(resolve(fixture, record, (struct pay_bytes){value, 8}), PAY_OK);
    }
    assert_int_equal(asked(fixture), PAY_INCOMING_IDS_MAX + 1);
    assert_int_equal(resolve(fixture, record, (struct pay_bytes){value, 8}), PAY_OK);
    assert_int_equal(asked(fixture), PAY_INCOMING_IDS_MAX + 1);
    value[3] = value[4] = 0; /* The oldest made room: asked again, and right again. */
    assert_int_equal(resolve(fixture, record, (struct pay_bytes){value, 8}), PAY_OK);
    assert_int_equal(asked(fixture), PAY_INCOMING_IDS_MAX + 2);
}

/* ---- out ---- */

static enum pay_status refresh(struct fixture *fixture, const char *versions, const char *first,
                               const char *second)
{
    const struct fake_answer answers[] = {{200, versions}, {200, first}, {200, second}};
    fake_say(&fixture->fake, answers, 3);
    return pay_outgoing_refresh(fixture->outgoing, &fixture->err);
}

static void test_events_are_framed_by_the_id_of_their_schema(void **state)
{
    struct fixture *fixture = *state;
    static const uint8_t unset[PAY_CODEC_FRAME_BYTES] = {0xc3, 0x01}; /* Fingerprint 0. */
    struct pay_buf out = pay_buf_make(ANSWER_MAX);
    const enum pay_record record = PAY_RECORD_PAYMENT_EVENT;
    const struct pay_bytes wanted = value_of(fixture, record, false);
    const struct pay_bytes single = pay_buf_bytes(&fixture->value);
    assert_int_equal(pay_outgoing_frame(fixture->outgoing, single, &out, &fixture->err), PAY_RETRY);
    /* What is not ours in the subject is passed over. */
    assert_int_equal(refresh(fixture, "[1,2]", "{\"id\":1,\"schema\":\"\\\"int\\\"\"}",
                             answer_of(fixture, current(record))),
                     PAY_OK);
    assert_int_equal(asked(fixture), 3);
    assert_int_equal(pay_outgoing_frame(fixture->outgoing, (struct pay_bytes){unset, sizeof unset},
                                        &out, &fixture->err),
                     PAY_RETRY);
    for (int times = 0; times < 2; times++) {
        assert_int_equal(pay_outgoing_frame(fixture->outgoing, single, &out, &fixture->err),
                         PAY_OK);
        assert_true(pay_bytes_eq(pay_buf_bytes(&out), wanted));
    }
    assert_int_equal(refresh(fixture, "[1,2]", "", ""), PAY_OK);
    assert_int_equal(asked(fixture), 4); /* Versions do not change: only the list was asked for. */
    pay_buf_free(&out);
}

static void test_nothing_else_is_framed(void **state)
{
    struct fixture *fixture = *state;
    struct pay_buf out = pay_buf_make(ANSWER_MAX);
    static const uint8_t odd[][12] = {{0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}, {0xc3, 2}, "text"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pay_outgoing_frame(fixture->outgoing, (struct pay_bytes){odd[i], 12}, &out,
                                            &fixture->err),
                         PAY_REJECT);
    }
    assert_int_equal(
        pay_outgoing_frame(fixture->outgoing, (struct pay_bytes){odd[1], 2}, &out, &fixture->err),
        PAY_REJECT);
    pay_buf_free(&out);
}

static void test_without_a_subject_events_wait(void **state)
{
    struct fixture *fixture = *state;
    static const struct fake_answer bad[] = {
        {404, "{\"error_code\":40401}"}, {0, ""}, {500, ""}, {404, ""}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fake_say(&fixture->fake, &bad[i], 1);
        assert_int_equal(pay_outgoing_refresh(fixture->outgoing, &fixture->err), PAY_RETRY);
    }
    assert_int_equal(refresh(fixture, "[]", "", ""), PAY_OK);
    assert_false(pay_outgoing_knows(
        fixture->outgoing, pay_codec_fingerprint(fixture->codec, PAY_RECORD_PAYMENT_EVENT)));
}

int main(void)
{
#define TEST(name_) cmocka_unit_test_setup_teardown(test_##name_, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(our_own_schema_is_asked_for_once),
        TEST(other_framings_ask_for_nothing),
        TEST(a_newer_notification_is_read),
        TEST(a_newer_command_is_not),
        TEST(a_schema_of_something_else),
        TEST(a_schema_that_is_not_avro),
        TEST(while_it_is_away_nothing_is_decided),
        TEST(an_absent_id_gets_a_second_and_then_is_absent),
        TEST(any_number_of_ids_stays_bounded),
        TEST(events_are_framed_by_the_id_of_their_schema),
        TEST(nothing_else_is_framed),
        TEST(without_a_subject_events_wait),
    };
    return cmocka_run_group_tests_name("registry.ids", tests, NULL, NULL);
}

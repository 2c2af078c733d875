/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input that nobody should send: whatever comes, the answer is a refusal or a value, in bounded
 * time and memory, and nothing is kept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/contracts/samples.h"

#define ARENA_BYTES ((size_t)4 * 1024 * 1024)
#define OUT_BYTES ((size_t)64 * 1024)
#define RANDOM_VALUES 100000
#define RANDOM_BYTES 256
/* One byte of text takes one allocation of 16; an item of a list at most its struct. */
#define ARENA_PER_BYTE 64

struct fixture {
    struct pay_codec *codec;
    struct pay_arena *arena;
    struct pay_buf out;
    struct pay_buf value;
    struct pay_err err;
    union any_record in, back;
};

static int set_up(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    f->arena = pay_arena_new(ARENA_BYTES);
    f->out = pay_buf_make(OUT_BYTES);
    f->value = pay_buf_make(OUT_BYTES);
    *state = f;
    return pay_codec_new(&f->codec, &f->err) == PAY_OK && f->arena != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    f->codec = pay_codec_free(f->codec);
    f->arena = pay_arena_free(f->arena);
    pay_buf_free(&f->out);
    pay_buf_free(&f->value);
    test_free(f);
    return 0;
}

/* Decode from a heap copy of exactly that size, so that a sanitizer sees every byte read beyond. */
static enum pay_status decode(struct fixture *f, enum pay_record record, const uint8_t *bytes,
                              size_t len)
{
    uint8_t *copy = malloc(len == 0 ? 1 : len);
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    pay_arena_reset(f->arena);
    const enum pay_status status = record_cases[record].decode(
        f->codec, (struct pay_bytes){copy, len}, f->arena, &f->back, &f->err);
    free(copy);
    assert_true(status == PAY_OK || status == PAY_REJECT);
    assert_true(pay_arena_used(f->arena) <= ARENA_PER_BYTE * (len + 64));
    return status;
}

static void assert_refused(struct fixture *f, enum pay_status status, enum pay_codec_code code)
{
    assert_int_equal(status, PAY_REJECT);
    assert_string_equal(pay_codec_code_name((enum pay_codec_code)f->err.code),
                        pay_codec_code_name(code));
}

static void make(struct fixture *f, enum pay_record record, size_t variant)
{
    record_cases[record].make(&f->in, variant);
    pay_buf_reset(&f->out);
    assert_int_equal(record_cases[record].encode(f->codec, &f->in, &f->out, &f->err), PAY_OK);
}

/* What was decoded from damaged bytes is still within every bound: it can be written again. */
static void assert_sound(struct fixture *f, enum pay_record record)
{
    struct pay_buf again = pay_buf_make(OUT_BYTES);
    const enum pay_status status = record_cases[record].encode(f->codec, &f->back, &again, &f->err);
    pay_buf_free(&again);
    if (status != PAY_OK) {
        print_error("%s: %s\n", f->err.op, f->err.text);
    }
    assert_int_equal(status, PAY_OK);
}

static void for_every_sample(struct fixture *f, void (*check)(struct fixture *, enum pay_record))
{
    for (int record = 0; record < PAY_RECORD_COUNT; record++) {
        for (size_t variant = 0; variant < record_cases[record].variants; variant++) {
            make(f, (enum pay_record)record, variant);
            check(f, (enum pay_record)record);
        }
    }
}

static void check_truncations(struct fixture *f, enum pay_record record)
{
    for (size_t len = 0; len < f->out.len; len++) {
        assert_refused(f, decode(f, record, f->out.data, len), PAY_CODEC_MALFORMED);
    }
}

static void test_every_truncation_is_malformed(void **state)
{
    for_every_sample(*state, check_truncations);
}

static void check_flips(struct fixture *f, enum pay_record record)
{
    uint8_t bytes[4096];
    const size_t len = f->out.len;
    static const uint8_t masks[] = {0x01, 0x02, 0x40, 0x80, 0xff};

    assert_true(len <= sizeof bytes);
    memcpy(bytes, f->out.data, len);
    for (size_t i = 0; i < len * sizeof masks; i++) {
        const size_t at = i / sizeof masks;
        bytes[at] ^= masks[i % sizeof masks];
        if (decode(f, record, bytes, len) == PAY_OK) {
            assert_sound(f, record);
        }
        bytes[at] ^= masks[i % sizeof masks];
    }
}

static void test_every_flip_is_refused_or_sound(void **state)
{
    for_every_sample(*state, check_flips);
}

static void check_trailing(struct fixture *f, enum pay_record record)
{
    pay_buf_add_char(&f->out, '\0');
    assert_refused(f, decode(f, record, f->out.data, f->out.len), PAY_CODEC_MALFORMED);
}

static void test_a_byte_behind_the_record_is_malformed(void **state)
{
    for_every_sample(*state, check_trailing);
}

/* xorshift64*: the same bytes on every machine. */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed >> 12;
    *seed ^= *seed << 25;
    *seed ^= *seed >> 27;
    return *seed * UINT64_C(2685821657736338717);
}

static void fill(uint8_t *bytes, size_t len, uint64_t *seed)
{
    for (size_t i = 0; i < len; i++) {
        /* Small numbers are lengths and branches that go on: more of them reach deep. */
        const uint64_t number = next_random(seed) >> 32;
        bytes[i] = (uint8_t)((number & 0x300) == 0 ? number : number % 20);
    }
}

static void test_random_bodies(void **state)
{
    struct fixture *f = *state;
    /* Before any thread. NOLINTNEXTLINE(concurrency-mt-unsafe) */
    const char *given = getenv("PAY_SEED");
    uint64_t seed = given == NULL ? 20261130 : strtoull(given, NULL, 10) | 1;
    uint8_t bytes[PAY_CODEC_FRAME_BYTES + RANDOM_BYTES] = {0xc3, 0x01};

    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < RANDOM_VALUES; i++) {
        const enum pay_record record = (enum pay_record)(i % PAY_RECORD_COUNT);
        const size_t len = next_random(&seed) % RANDOM_BYTES;
        pay_fingerprint_put(bytes + 2, pay_codec_fingerprint(f->codec, record));
        fill(bytes + PAY_CODEC_FRAME_BYTES, len, &seed);
        if (decode(f, record, bytes, PAY_CODEC_FRAME_BYTES + len) == PAY_OK) {
            assert_sound(f, record);
        }
    }
}

/* Goal M2: malformed records cost no memory. */
static void test_malformed_records_leave_no_memory(void **state)
{
    struct fixture *f = *state;
    size_t before = 0;

    make(f, PAY_RECORD_PAYMENT_INPUT, PAY_WIRE_PSP_EVENT);
    for (int i = 0; i < 20000; i++) {
        if (i == 1000) {
            before = mallinfo2().uordblks;
        }
        const size_t len = PAY_CODEC_FRAME_BYTES + (size_t)i % (f->out.len - PAY_CODEC_FRAME_BYTES);
        assert_int_equal(decode(f, PAY_RECORD_PAYMENT_INPUT, f->out.data, len), PAY_REJECT);
    }
    assert_int_equal(mallinfo2().uordblks, before);
}

/* --- By hand -------------------------------------------------------------------------------- */

/* A RawNotification up to its headers: the lists of this record are the easiest to attack. */
static void start_notification(struct fixture *f, struct pay_buf *value)
{
    static const char start[] = "\x02n\x06psp\x02"
                                "a\x08POST\x02/"
                                "\x00";
    uint8_t print[8];

    pay_fingerprint_put(print, pay_codec_fingerprint(f->codec, PAY_RECORD_RAW_NOTIFICATION));
    pay_buf_reset(value);
    pay_buf_add(value, "\xc3\x01", 2);
    pay_buf_add(value, print, 8);
    pay_buf_add(value, start, sizeof start - 1);
}

struct hand_case {
    const char *what;
    const char *bytes;
    size_t len;
    enum pay_codec_code code; /* NONE: fine. */
};

#define HAND(what_, bytes_, code_) {what_, bytes_, sizeof(bytes_) - 1, PAY_CODEC_##code_}
#define ONE "\x02h\x02v" /* One header: name h, value v. */
#define TAIL \
    "\x02"   \
    "b"      \
    "\x02"   \
    "\x00" /* Body b, received_at 1, no traceparent. */

static const struct hand_case hand_cases[] = {
    HAND("no header", "\x00" TAIL, NONE),
    HAND("one block of one", "\x02" ONE "\x00" TAIL, NONE),
    HAND("two blocks", "\x02" ONE "\x04" ONE ONE "\x00" TAIL, NONE),
    HAND("a block with its size", "\x01\x08" ONE "\x00" TAIL, NONE),
    HAND("a block with a wrong size", "\x01\x06" ONE "\x00" TAIL, MALFORMED),
    HAND("a block with a size beyond the end", "\x01\x80\x80\x01" ONE "\x00" TAIL, MALFORMED),
    HAND("a block with a negative size", "\x01\x07" ONE "\x00" TAIL, MALFORMED),
    HAND("the most negative count", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x02" ONE "\x00" TAIL,
         MALFORMED),
    HAND("2^62 items", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01" ONE "\x00" TAIL, MALFORMED),
    HAND("a number of 11 bytes", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01" TAIL, MALFORMED),
    HAND("a number of 65 bits", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02" TAIL, MALFORMED),
    HAND("zero in ten bytes", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00" TAIL, NONE),
    HAND("a string of 2 GiB",
         "\x02\x02h\xfe\xff\xff\xff\x0f"
         "v\x00" TAIL,
         MALFORMED),
    HAND("a string of -1 bytes", "\x02\x02h\x01v\x00" TAIL, MALFORMED),
    HAND("an empty name", "\x02\x00\x02v\x00" TAIL, MALFORMED),
    HAND("a name with a NUL", "\x02\x02\x00\x02v\x00" TAIL, MALFORMED),
    HAND("a name that is no UTF-8", "\x02\x02\xff\x02v\x00" TAIL, MALFORMED),
    HAND("a value that is no UTF-8", "\x02\x02h\x02\xff\x00" TAIL, NONE),
    HAND("a negative time",
         "\x00\x02"
         "b\x01\x00",
         MALFORMED),
    HAND("a branch that is not there",
         "\x00\x02"
         "b\x02\x04",
         MALFORMED),
    HAND("a branch that is not there, and what it could be",
         "\x00\x02"
         "b\x02\x04\x00",
         MALFORMED),
    HAND("zero and a 65th bit", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02" TAIL, MALFORMED),
    HAND("a negative branch",
         "\x00\x02"
         "b\x02\x01",
         MALFORMED),
};

/* value: framed, up to the case's bytes. */
static void check_hand(struct fixture *f, enum pay_record record, const struct pay_buf *value,
                       const struct hand_case *with)
{
    const enum pay_codec_code code = with->code;

    f->err.code = PAY_CODEC_NONE;
    const enum pay_status status = decode(f, record, value->data, value->len);
    if ((status == PAY_OK) != (code == PAY_CODEC_NONE) || f->err.code != (int)code) {
        print_error("%s: %s\n", with->what, pay_status_name(status));
    }
    assert_int_equal(f->err.code, code);
    assert_int_equal(status, code == PAY_CODEC_NONE ? PAY_OK : PAY_REJECT);
}

/* A CommandSecrets by the schema of that fingerprint, up to its salt. */
static void start_secrets(struct fixture *f, const uint8_t print[8])
{
    pay_buf_reset(&f->value);
    pay_buf_add(&f->value, "\xc3\x01", 2);
    pay_buf_add(&f->value, print, 8);
    pay_buf_add(&f->value,
                "\x20"
                "0123456789abcdef",
                17);
}

static void test_hand_made_values(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof hand_cases / sizeof hand_cases[0]; i++) {
        start_notification(f, &f->value);
        pay_buf_add(&f->value, hand_cases[i].bytes, hand_cases[i].len);
        check_hand(f, PAY_RECORD_RAW_NOTIFICATION, &f->value, &hand_cases[i]);
    }
}

static void test_the_same_key_twice(void **state)
{
    struct fixture *f = *state;
    static const struct hand_case cases[] = {
        HAND("two keys",
             "\x02\x00\x00\x00\x00\x04\x02"
             "a\x02"
             "1\x02"
             "b\x02"
             "2\x00\x00\x00",
             NONE),
        HAND("one twice",
             "\x02\x00\x00\x00\x00\x04\x02"
             "a\x02"
             "1\x02"
             "a\x02"
             "2\x00\x00\x00",
             MALFORMED),
    };
    uint8_t print[8];

    pay_fingerprint_put(print, pay_codec_fingerprint(f->codec, PAY_RECORD_COMMAND_SECRETS));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start_secrets(f, print);
        pay_buf_add(&f->value, cases[i].bytes, cases[i].len);
        check_hand(f, PAY_RECORD_COMMAND_SECRETS, &f->value, &cases[i]);
    }
}

/* One header more than allowed, each in a block of its own. */
static void test_many_small_blocks(void **state)
{
    struct fixture *f = *state;
    for (size_t count = PAY_NOTIFICATION_HEADERS_MAX; count < PAY_NOTIFICATION_HEADERS_MAX + 2;
         count++) {
        start_notification(f, &f->value);
        for (size_t i = 0; i < count; i++) {
            pay_buf_add(&f->value, "\x02" ONE, 5);
        }
        pay_buf_add(&f->value, "\x00" TAIL, 5);
        const enum pay_status status =
            decode(f, PAY_RECORD_RAW_NOTIFICATION, f->value.data, f->value.len);
        if (count == PAY_NOTIFICATION_HEADERS_MAX) {
            assert_int_equal(status, PAY_OK);
            assert_int_equal(f->back.raw_notification.header_count, count);
            assert_string_equal(f->back.raw_notification.headers[count - 1].name.ptr, "h");
        } else {
            assert_refused(f, status, PAY_CODEC_TOO_LARGE);
        }
    }
}

static void test_symbol_out_of_range(void **state)
{
    struct fixture *f = *state;

    make(f, PAY_RECORD_COMMAND, PAY_CMD_UNRECOGNIZED);
    const size_t at = PAY_CODEC_FRAME_BYTES + 1 + sizeof("command_id") - 1;
    assert_int_equal(f->out.data[at], 2 * PAY_CMD_UNRECOGNIZED);
    assert_int_equal(decode(f, PAY_RECORD_COMMAND, f->out.data, f->out.len), PAY_OK);
    f->out.data[at] = 2 * PAY_CMD_COUNT;
    assert_refused(f, decode(f, PAY_RECORD_COMMAND, f->out.data, f->out.len), PAY_CODEC_MALFORMED);
    f->out.data[at] = 1;
    assert_refused(f, decode(f, PAY_RECORD_COMMAND, f->out.data, f->out.len), PAY_CODEC_MALFORMED);
}

static void test_a_part_of_another_kind_is_malformed(void **state)
{
    struct fixture *f = *state;
    const size_t at = PAY_CODEC_FRAME_BYTES + 1 + sizeof("command_id") - 1;

    for (int type = 0; type < PAY_CMD_COUNT; type++) {
        make(f, PAY_RECORD_COMMAND, PAY_CMD_CAPTURE);
        f->out.data[at] = (uint8_t)(2 * type);
        const enum pay_status status = decode(f, PAY_RECORD_COMMAND, f->out.data, f->out.len);
        assert_int_equal(status == PAY_OK, type == PAY_CMD_CAPTURE);
    }
}

static void test_too_large_a_value_is_not_looked_at(void **state)
{
    struct fixture *f = *state;

    for (int record = 0; record < PAY_RECORD_COUNT; record++) {
        const size_t len = pay_record_bytes_max((enum pay_record)record) + 1;
        uint8_t *bytes = calloc(1, len);
        assert_non_null(bytes);
        const enum pay_status status = decode(f, (enum pay_record)record, bytes, len);
        free(bytes);
        assert_refused(f, status, PAY_CODEC_TOO_LARGE);
    }
}

/* Fields that the struct does not have are bounded too. */
static void test_skipped_fields_are_bounded(void **state)
{
    struct fixture *f = *state;
    static const char schema[] =
        "{\"type\":\"record\",\"name\":\"CommandSecrets\",\"namespace\":\"payfact\",\"fields\":["
        "{\"name\":\"salt\",\"type\":\"bytes\"},"
        "{\"name\":\"nothings\",\"type\":{\"type\":\"array\",\"items\":\"null\"}},"
        "{\"name\":\"fix\",\"type\":{\"type\":\"fixed\",\"name\":\"F\",\"size\":4}},"
        "{\"name\":\"map\",\"type\":{\"type\":\"map\",\"values\":\"double\"}},"
        "{\"name\":\"word\",\"type\":{\"type\":\"enum\",\"name\":\"W\",\"symbols\":[\"A\"]}}]}";
    static const struct hand_case cases[] = {
        HAND("fine",
             "\x0a\x00"
             "fixd"
             "\x02\x02k"
             "doubleXX"
             "\x00\x00",
             NONE),
        HAND("10^15 nulls",
             "\x80\x80\xb4\xcc\xd4\xdf\xc6\x03\x00"
             "fixd"
             "\x00\x00",
             TOO_LARGE),
        HAND("half a fixed",
             "\x00"
             "fi",
             MALFORMED),
        HAND("half a double",
             "\x00"
             "fixd"
             "\x02\x02k"
             "doub",
             MALFORMED),
        HAND("no such symbol",
             "\x00"
             "fixd"
             "\x00\x02",
             MALFORMED),
    };
    uint64_t learned = 0;
    uint8_t print[8];

    assert_int_equal(pay_codec_learn(f->codec, PAY_RECORD_COMMAND_SECRETS, pay_str_of(schema),
                                     &learned, &f->err),
                     PAY_OK);
    pay_fingerprint_put(print, learned);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start_secrets(f, print);
        pay_buf_add(&f->value, cases[i].bytes, cases[i].len);
        check_hand(f, PAY_RECORD_COMMAND_SECRETS, &f->value, &cases[i]);
    }
}

static void test_a_schema_within_itself_is_refused(void **state)
{
    struct fixture *f = *state;
    static const char endless[] =
        "{\"type\":\"record\",\"name\":\"CommandSecrets\",\"fields\":["
        "{\"name\":\"salt\",\"type\":\"bytes\"},"
        "{\"name\":\"next\",\"type\":[\"null\",\"CommandSecrets\"],\"default\":null}]}";
    uint64_t learned = 0;

    assert_int_equal(pay_codec_learn(f->codec, PAY_RECORD_COMMAND_SECRETS, pay_str_of(endless),
                                     &learned, &f->err),
                     PAY_REJECT);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_truncation_is_malformed),
        TEST(test_every_flip_is_refused_or_sound),
        TEST(test_a_byte_behind_the_record_is_malformed),
        TEST(test_random_bodies),
        TEST(test_malformed_records_leave_no_memory),
        TEST(test_hand_made_values),
        TEST(test_the_same_key_twice),
        TEST(test_many_small_blocks),
        TEST(test_symbol_out_of_range),
        TEST(test_a_part_of_another_kind_is_malformed),
        TEST(test_too_large_a_value_is_not_looked_at),
        TEST(test_skipped_fields_are_bounded),
        TEST(test_a_schema_within_itself_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of every topic's record, and schemas as a registry could send them. The first byte says of
 * which record, and whether the rest is a whole value or only a body behind the right frame; 's'
 * begins a schema's text.
 *
 * What decodes must encode again, to a value that decodes to the same: nothing that was taken in
 * can become something that the next reader refuses.
 */
#include <string.h>

#include "common/contracts/codec.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/contracts/samples.h"

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define BYTES_MAX ((size_t)2 << 20)

/* avro-c loses what it has read of a schema that defines one name twice. The relay reads a schema
 * of a registry once per id and keeps its word that it is of no use (common/registry/incoming.c).
 */
const char *__lsan_default_suppressions(void); /* NOLINT(bugprone-reserved-identifier): LSan's. */
const char *__lsan_default_suppressions(void)  /* NOLINT(bugprone-reserved-identifier) */
{
    return "leak:libavro.so";
}

static struct pay_codec *codec, *learner;
static struct pay_arena *arena;
static struct pay_buf framed, again, twice;
static size_t learned;

static void start(void)
{
    if (codec == NULL) {
        FUZZ_CHECK(pay_codec_new(&codec, NULL) == PAY_OK);
        arena = pay_arena_new(ARENA_BYTES_MAX);
        FUZZ_CHECK(arena != NULL);
        framed = pay_buf_make(BYTES_MAX);
        again = pay_buf_make(BYTES_MAX);
        twice = pay_buf_make(BYTES_MAX);
    }
    pay_arena_reset(arena);
    pay_buf_reset(&framed);
    pay_buf_reset(&again);
    pay_buf_reset(&twice);
}

/* Commands of a kind that this version does not know can be read and not be written. */
static bool is_writable(enum pay_record record, const union any_record *value)
{
    switch (record) {
    case PAY_RECORD_COMMAND:
        return value->command.type != PAY_CMD_UNRECOGNIZED;
    case PAY_RECORD_PAYMENT_INPUT:
        return value->payment_input.kind != PAY_WIRE_UNRECOGNIZED;
    default:
        return true;
    }
}

static void check_value(enum pay_record record, struct pay_bytes value)
{
    struct pay_err err = {.status = PAY_OK};
    union any_record decoded = {.command = {.type = PAY_CMD_UNRECOGNIZED}};
    union any_record back = {.command = {.type = PAY_CMD_UNRECOGNIZED}};
    const struct record_case *of = &record_cases[record];
    const enum pay_status status = of->decode(codec, value, arena, &decoded, &err);
    FUZZ_CHECK(status == PAY_OK || status == PAY_REJECT); /* There is room for all of it. */
    FUZZ_CHECK(status == PAY_OK || (err.code > PAY_CODEC_NONE && err.code < PAY_CODEC_NO_MEMORY));
    if (status != PAY_OK || !is_writable(record, &decoded)) {
        return;
    }
    FUZZ_CHECK(of->encode(codec, &decoded, &again, &err) == PAY_OK);
    FUZZ_CHECK(of->decode(codec, pay_buf_bytes(&again), arena, &back, &err) == PAY_OK);
    FUZZ_CHECK(of->encode(codec, &back, &twice, &err) == PAY_OK);
    FUZZ_CHECK(pay_bytes_eq(pay_buf_bytes(&again), pay_buf_bytes(&twice)));
}

/* A codec keeps what it has learned: a new one before it is full, so that no input is the last. */
static void check_schema(struct pay_str json)
{
    uint64_t fingerprint = 0;
    if (learner == NULL || learned == PAY_CODEC_WRITERS_MAX / 2) {
        learner = pay_codec_free(learner);
        FUZZ_CHECK(pay_codec_new(&learner, NULL) == PAY_OK);
        learned = 0;
    }
    for (int record = 0; record < PAY_RECORD_COUNT; record++) {
        const enum pay_status status =
            pay_codec_learn(learner, (enum pay_record)record, json, &fingerprint, NULL);
        FUZZ_CHECK(status == PAY_OK || status == PAY_REJECT);
        learned += status == PAY_OK ? 1 : 0;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    start();
    const struct pay_bytes rest = {data + 1, size - 1};
    if (data[0] == 's') {
        check_schema((struct pay_str){(const char *)rest.ptr, rest.len});
        return 0;
    }
    const enum pay_record record = (enum pay_record)((data[0] >> 1) % PAY_RECORD_COUNT);
    if ((data[0] & 1) != 0) {
        check_value(record, rest);
        return 0;
    }
    uint8_t frame[PAY_CODEC_FRAME_BYTES] = {0xc3, 0x01};
    pay_fingerprint_put(frame + 2, pay_codec_fingerprint(codec, record));
    pay_buf_add(&framed, frame, sizeof frame);
    pay_buf_add(&framed, rest.ptr, rest.len);
    if (!framed.failed) {
        check_value(record, pay_buf_bytes(&framed));
    }
    return 0;
}

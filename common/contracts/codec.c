/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/codec.h"

#include "common/base/assert.h"
#include "common/base/mem.h"
#include "common/contracts/codec_internal.h"
#include "common/contracts/fingerprint.h"
#include "common/contracts/plan.h"
#include "common/contracts/read.h"
#include "common/contracts/released.h"
#include "common/contracts/schemas.h"
#include "common/contracts/write.h"

#include <pthread.h>
#include <string.h>

#include "common/base/banned.h"

#define PLAN_BYTES_MAX                                                        \
    ((size_t)8 * 1024 * 1024) /* Address space; only what is used is touched. \
                               */
#define REGISTRY_FRAME_BYTES 5

struct record_row {
    const char *name;
    const char *decode_op;
    const char *encode_op;
    size_t bytes_max;
    const struct pay_bind_record *bind;
};

#define ROW(name_, bytes_max_, bind_) \
    {(name_), "decode " name_, "encode " name_, (bytes_max_), (bind_)}

static const struct record_row rows[PAY_RECORD_COUNT] = {
    [PAY_RECORD_RAW_NOTIFICATION] =
        ROW("RawNotification", PAY_RAW_NOTIFICATION_BYTES_MAX, &pay_bind_raw_notification),
    [PAY_RECORD_COMMAND] = ROW("Command", PAY_COMMAND_BYTES_MAX, &pay_bind_command),
    [PAY_RECORD_COMMAND_SECRETS] =
        ROW("CommandSecrets", PAY_COMMAND_SECRETS_BYTES_MAX, &pay_bind_command_secrets),
    [PAY_RECORD_PAYMENT_INPUT] =
        ROW("PaymentInput", PAY_PAYMENT_INPUT_BYTES_MAX, &pay_bind_payment_input),
    [PAY_RECORD_PSP_JOB] = ROW("PspJob", PAY_PSP_JOB_BYTES_MAX, &pay_bind_psp_job),
    [PAY_RECORD_PAYMENT_EVENT] =
        ROW("PaymentEvent", PAY_PAYMENT_EVENT_BYTES_MAX, &pay_bind_payment_event),
    [PAY_RECORD_DEAD_LETTER] = ROW("DeadLetter", PAY_DEAD_LETTER_BYTES_MAX, &pay_bind_dead_letter),
};

struct known_schema {
    uint64_t fingerprint;
    int version; /* Of history; 0: current or learned. */
    struct pay_plan plan;
};

struct record_state {
    avro_schema_t current;
    struct known_schema known[PAY_CODEC_WRITERS_MAX]; /* The current one first. */
    size_t known_count;
    size_t own;     /* Index of this release's newest: 0, but for a former release's test build. */
    size_t writing; /* Index of the one to write by. */
};

struct pay_codec {
    struct pay_arena *plans;
    avro_writer_t writer;
    pay_codec_find_schema find;
    void *find_arg;
    struct record_state records[PAY_RECORD_COUNT];
};

const char *pay_codec_code_name(enum pay_codec_code code)
{
    static const char *const names[PAY_CODEC_CODE_COUNT] = {
        [PAY_CODEC_NONE] = "NONE",
        [PAY_CODEC_MALFORMED] = "MALFORMED",
        [PAY_CODEC_SCHEMA_UNKNOWN] = "SCHEMA_UNKNOWN",
        [PAY_CODEC_TOO_LARGE] = "TOO_LARGE",
        [PAY_CODEC_NO_MEMORY] = "NO_MEMORY",
    };
    return (unsigned)code < PAY_CODEC_CODE_COUNT ? names[code] : "?";
}

const char *pay_record_name(enum pay_record record)
{
    return (unsigned)record < PAY_RECORD_COUNT ? rows[record].name : "?";
}

size_t pay_record_bytes_max(enum pay_record record)
{
    return (unsigned)record < PAY_RECORD_COUNT ? rows[record].bytes_max : 0;
}

enum pay_status pay_codec_refuse(enum pay_record record, enum pay_codec_code code, const char *why,
                                 struct pay_err *err)
{
    return pay_err_set(err, PAY_REJECT, (int)code, rows[record].decode_op, "%s", why);
}

/* --- Schemas -------------------------------------------------------------------------------- */

/* avro-c keeps the text of a parse error in one global. */
static avro_schema_t parse_schema(const char *json, size_t len)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    avro_schema_t schema = NULL;

    PAY_ASSERT(pthread_mutex_lock(&lock) == 0);
    if (avro_schema_from_json_length(json, len, &schema) != 0) {
        schema = NULL;
    }
    PAY_ASSERT(pthread_mutex_unlock(&lock) == 0);
    return schema;
}

static const struct known_schema *find_known(const struct record_state *state, uint64_t fingerprint)
{
    for (size_t i = 0; i < state->known_count; i++) {
        if (state->known[i].fingerprint == fingerprint) {
            return &state->known[i];
        }
    }
    return NULL;
}

/* Takes writer: it is only needed while the plan is made, unless it is the current one. */
static enum pay_status know(struct pay_codec *codec, enum pay_record record, avro_schema_t writer,
                            struct known_schema schema, struct pay_err *err)
{
    struct record_state *state = &codec->records[record];
    const bool is_first = state->current == NULL;
    enum pay_status status =
        state->known_count < PAY_CODEC_WRITERS_MAX
            ? pay_plan_make(codec->plans, rows[record].bind, writer,
                            is_first ? writer : state->current, &schema.plan, err)
            : pay_err_set(err, PAY_REJECT, 0, "learn schema", "too many schemas of one record");

    if (status == PAY_OK) {
        state->known[state->known_count++] = schema;
    }
    if (is_first) {
        state->current = writer;
    } else {
        (void)avro_schema_decref(writer); /* The number that is left: of no interest. */
    }
    return status;
}

/* A version of history that is the same as the current schema only gives that its number. */
static enum pay_status know_text(struct pay_codec *codec, enum pay_record record,
                                 const struct pay_schema_text *text, struct pay_err *err)
{
    struct record_state *state = &codec->records[record];

    if (state->known_count > 0 && state->known[0].fingerprint == text->fingerprint) {
        state->known[0].version = text->version;
        return PAY_OK;
    }
    avro_schema_t writer = parse_schema(text->json, text->len);
    if (writer == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "load schema", "'%s' version %d cannot be parsed",
                           text->record, text->version);
    }
    return know(codec, record, writer,
                (struct known_schema){.fingerprint = text->fingerprint, .version = text->version},
                err);
}

/* A former release knows nothing newer than its own: here, than the last of the history it has. */
static void forget_current(struct record_state *state)
{
    PAY_ASSERT(state->known_count > 1);
    state->known[0].fingerprint = 0; /* Of no schema. */
    state->own = state->writing = state->known_count - 1;
}

static enum pay_status load_record(struct pay_codec *codec, enum pay_record record,
                                   struct pay_err *err)
{
    enum pay_status status = PAY_OK;

    for (size_t i = 0; i < pay_schema_text_count && status == PAY_OK; i++) {
        if (strcmp(pay_schema_texts[i].record, rows[record].name) == 0) {
            status = know_text(codec, record, &pay_schema_texts[i], err);
        }
    }
    if (status == PAY_OK && codec->records[record].known_count == 0) {
        return pay_err_set(err, PAY_FATAL, 0, "load schema", "'%s' is missing", rows[record].name);
    }
    if (PAY_FORMER_SCHEMAS && status == PAY_OK && codec->records[record].known[0].version == 0) {
        forget_current(&codec->records[record]);
    }
    return status;
}

enum pay_status pay_codec_new(struct pay_codec **ret_codec, struct pay_err *err)
{
    static const char nothing[1];
    enum pay_status status = PAY_OK;
    struct pay_codec *codec = pay_mem_new(1, sizeof *codec);

    if (codec != NULL) {
        codec->plans = pay_arena_new(PLAN_BYTES_MAX);
        codec->writer = avro_writer_memory(nothing, 0);
    }
    if (codec == NULL || codec->plans == NULL || codec->writer == NULL) {
        status = pay_err_set(err, PAY_FATAL, 0, "make codec", "out of memory");
        goto out;
    }
    for (int record = 0; record < PAY_RECORD_COUNT && status == PAY_OK; record++) {
        status = load_record(codec, (enum pay_record)record, err);
    }
    if (status != PAY_OK) { /* The schemas are ours: it is the program that is wrong. */
        status = PAY_FATAL;
        if (err != NULL) {
            err->status = status;
        }
    }
out:
    if (status != PAY_OK) {
        (void)pay_codec_free(codec); /* Always NULL. */
    } else {
        *ret_codec = codec;
    }
    return status;
}

struct pay_codec *pay_codec_free(struct pay_codec *codec)
{
    if (codec == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < PAY_RECORD_COUNT; i++) {
        if (codec->records[i].current != NULL) {
            (void)avro_schema_decref(codec->records[i].current);
        }
    }
    if (codec->writer != NULL) {
        avro_writer_free(codec->writer);
    }
    codec->plans = pay_arena_free(codec->plans);
    return pay_mem_free(codec);
}

enum pay_status pay_codec_write_version(struct pay_codec *codec, enum pay_record record,
                                        int version, struct pay_err *err)
{
    struct record_state *state = &codec->records[record];

    for (size_t i = 0; i < state->known_count; i++) {
        const bool is_meant = version == 0 ? i == state->own : state->known[i].version == version;
        if (is_meant && state->known[i].plan.writable) {
            state->writing = i;
            return PAY_OK;
        }
    }
    return pay_err_set(err, PAY_REJECT, 0, "choose schema", "cannot write '%s' by version %d",
                       rows[record].name, version);
}

/* @param ret_schema taken by the caller. */
static enum pay_status read_schema(enum pay_record record, struct pay_str schema_json,
                                   avro_schema_t *ret_schema, uint64_t *ret_fingerprint,
                                   struct pay_err *err)
{
    static const char op[] = "learn schema";

    if (schema_json.ptr == NULL || schema_json.len > PAY_CODEC_SCHEMA_BYTES_MAX) {
        return pay_err_set(err, PAY_REJECT, PAY_CODEC_TOO_LARGE, op, "absent or too large");
    }
    avro_schema_t schema = parse_schema(schema_json.ptr, schema_json.len);
    if (schema == NULL) {
        return pay_err_set(err, PAY_REJECT, PAY_CODEC_MALFORMED, op, "not a schema");
    }
    if (avro_typeof(schema) != AVRO_RECORD ||
        strcmp(avro_schema_name(schema), rows[record].name) != 0 ||
        !pay_schema_fingerprint(schema, ret_fingerprint)) {
        (void)avro_schema_decref(schema);
        return pay_err_set(err, PAY_REJECT, PAY_CODEC_MALFORMED, op, "not a schema of '%s'",
                           rows[record].name);
    }
    *ret_schema = schema;
    return PAY_OK;
}

enum pay_status pay_schema_text_fingerprint(enum pay_record record, struct pay_str schema_json,
                                            uint64_t *ret_fingerprint, struct pay_err *err)
{
    avro_schema_t schema = NULL;
    const enum pay_status status = read_schema(record, schema_json, &schema, ret_fingerprint, err);

    if (status == PAY_OK) {
        (void)avro_schema_decref(schema);
    }
    return status;
}

enum pay_status pay_codec_learn(struct pay_codec *codec, enum pay_record record,
                                struct pay_str schema_json, uint64_t *ret_fingerprint,
                                struct pay_err *err)
{
    uint64_t fingerprint = 0;
    avro_schema_t schema = NULL;
    enum pay_status status = read_schema(record, schema_json, &schema, &fingerprint, err);

    if (status != PAY_OK) {
        return status;
    }
    if (find_known(&codec->records[record], fingerprint) != NULL) {
        (void)avro_schema_decref(schema);
    } else {
        status =
            know(codec, record, schema, (struct known_schema){.fingerprint = fingerprint}, err);
    }
    if (status == PAY_OK) {
        *ret_fingerprint = fingerprint;
    }
    return status;
}

void pay_codec_on_schema_id(struct pay_codec *codec, pay_codec_find_schema find, void *arg)
{
    codec->find = find;
    codec->find_arg = arg;
}

/* --- Framing -------------------------------------------------------------------------------- */

void pay_fingerprint_put(uint8_t dst[8], uint64_t fingerprint)
{
    for (unsigned i = 0; i < 8; i++) {
        dst[i] = (uint8_t)(fingerprint >> (8 * i));
    }
}

bool pay_fingerprint_get(struct pay_bytes bytes, uint64_t *ret_fingerprint)
{
    uint64_t fingerprint = 0;

    if (bytes.ptr == NULL || bytes.len != 8) {
        return false;
    }
    for (unsigned i = 0; i < 8; i++) {
        fingerprint |= (uint64_t)bytes.ptr[i] << (8 * i);
    }
    *ret_fingerprint = fingerprint;
    return true;
}

uint64_t pay_codec_fingerprint(const struct pay_codec *codec, enum pay_record record)
{
    const struct record_state *state = &codec->records[record];
    return state->known[state->writing].fingerprint;
}

static bool is_single_object(struct pay_bytes value)
{
    return value.ptr != NULL && value.len >= PAY_CODEC_FRAME_BYTES && value.ptr[0] == 0xc3 &&
           value.ptr[1] == 0x01;
}

static bool is_registry_framed(struct pay_bytes value)
{
    return value.ptr != NULL && value.len >= REGISTRY_FRAME_BYTES && value.ptr[0] == 0x00;
}

static struct pay_bytes body_of(struct pay_bytes value)
{
    const size_t frame = is_single_object(value) ? PAY_CODEC_FRAME_BYTES : REGISTRY_FRAME_BYTES;
    return (struct pay_bytes){value.ptr + frame, value.len - frame};
}

static uint32_t schema_id_of(struct pay_bytes value)
{
    return (uint32_t)value.ptr[1] << 24 | (uint32_t)value.ptr[2] << 16 |
           (uint32_t)value.ptr[3] << 8 | (uint32_t)value.ptr[4];
}

enum pay_status pay_codec_fingerprint_of(const struct pay_codec *codec, enum pay_record record,
                                         struct pay_bytes value, uint64_t *ret_fingerprint,
                                         struct pay_err *err)
{
    if (is_single_object(value)) {
        const bool done =
            pay_fingerprint_get((struct pay_bytes){value.ptr + 2, 8}, ret_fingerprint);
        PAY_ASSERT(done);
        return PAY_OK;
    }
    if (!is_registry_framed(value)) {
        return pay_codec_refuse(record, PAY_CODEC_MALFORMED, "neither framing", err);
    }
    if (codec->find == NULL ||
        !codec->find(codec->find_arg, record, schema_id_of(value), ret_fingerprint)) {
        return pay_codec_refuse(record, PAY_CODEC_SCHEMA_UNKNOWN, "unknown registry id", err);
    }
    return PAY_OK;
}

/* --- Encode, decode ------------------------------------------------------------------------- */

/* By the schema of that fingerprint; value is framed. */
static enum pay_status decode_by(const struct record_state *state, uint64_t fingerprint,
                                 struct pay_bytes value, struct pay_arena *arena, void *into,
                                 const struct pay_check *check)
{
    const struct known_schema *schema = find_known(state, fingerprint);

    if (schema == NULL) {
        return pay_err_set(check->err, PAY_REJECT, PAY_CODEC_SCHEMA_UNKNOWN, check->op,
                           "unknown writer schema");
    }
    return pay_read_record(check, schema->plan.root, body_of(value), arena, into);
}

static enum pay_status check_size(enum pay_record record, struct pay_bytes value,
                                  struct pay_err *err)
{
    return value.len > rows[record].bytes_max
               ? pay_codec_refuse(record, PAY_CODEC_TOO_LARGE, "the value is too large", err)
               : PAY_OK;
}

enum pay_status pay_codec_decode(struct pay_codec *codec, enum pay_record record,
                                 struct pay_bytes value, struct pay_arena *arena, void *into,
                                 struct pay_err *err)
{
    const struct pay_check check = {.op = rows[record].decode_op, .err = err};
    uint64_t fingerprint = 0;
    enum pay_status status = check_size(record, value, err);

    if (status == PAY_OK) {
        status = pay_codec_fingerprint_of(codec, record, value, &fingerprint, err);
    }
    if (status == PAY_OK) {
        status = decode_by(&codec->records[record], fingerprint, value, arena, into, &check);
    }
    return status;
}

enum pay_status pay_codec_decode_command_as(struct pay_codec *codec, uint64_t fingerprint,
                                            struct pay_bytes value, struct pay_arena *arena,
                                            void *into, struct pay_err *err)
{
    const enum pay_record record = PAY_RECORD_COMMAND;
    const struct pay_check check = {.op = rows[record].decode_op, .err = err};
    uint64_t framed = 0;
    enum pay_status status = check_size(record, value, err);

    if (status == PAY_OK &&
        (value.ptr == NULL || (!is_single_object(value) && !is_registry_framed(value)))) {
        status = pay_codec_refuse(record, PAY_CODEC_MALFORMED, "neither framing", err);
    }
    if (status == PAY_OK && is_single_object(value)) {
        status = pay_codec_fingerprint_of(codec, record, value, &framed, err);
        if (status == PAY_OK && framed != fingerprint) {
            status = pay_codec_refuse(record, PAY_CODEC_MALFORMED,
                                      "its framing names another schema", err);
        }
    }
    if (status == PAY_OK) {
        status = decode_by(&codec->records[record], fingerprint, value, arena, into, &check);
    }
    return status;
}

enum pay_status pay_codec_encode(struct pay_codec *codec, enum pay_record record, const void *from,
                                 struct pay_buf *out, struct pay_err *err)
{
    const struct record_state *state = &codec->records[record];
    const struct known_schema *schema = &state->known[state->writing];
    const struct pay_check check = {.op = rows[record].encode_op, .err = err};
    const size_t before = out->len;
    size_t bytes = 0;
    enum pay_status status = pay_write_measure(&check, schema->plan.root, from, &bytes);

    if (status != PAY_OK) {
        return status;
    }
    if (bytes + PAY_CODEC_FRAME_BYTES > rows[record].bytes_max ||
        bytes + PAY_CODEC_FRAME_BYTES > out->max - out->len) {
        return pay_err_set(err, PAY_REJECT, PAY_CODEC_TOO_LARGE, check.op, "%zu bytes are too many",
                           bytes);
    }
    uint8_t *dst = pay_buf_extend(out, bytes + PAY_CODEC_FRAME_BYTES);
    if (dst == NULL) {
        return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, check.op, "out of memory");
    }
    dst[0] = 0xc3;
    dst[1] = 0x01;
    pay_fingerprint_put(dst + 2, schema->fingerprint);
    status = pay_write_record(&check, schema->plan.root, from, codec->writer,
                              dst + PAY_CODEC_FRAME_BYTES, bytes);
    if (status != PAY_OK) {
        pay_buf_cut(out, before);
    }
    return status;
}

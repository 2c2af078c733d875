/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/payfactctl/dlq.h"

#include "common/base/clock.h"
#include "common/contracts/topics.h"
#include "common/io/kafka/kafka_reader.h"

#include "common/base/banned.h"

static const char op[] = "dlq";

#define READ_TIMEOUT_MS 60000

enum pay_status pay_dlq_find(const struct pay_ctl *ctl, const char *id, struct pay_arena *arena,
                             const struct pay_dead_thing **ret_thing, struct pay_err *err)
{
    struct pay_store *store = NULL;
    struct pay_explain_rows rows = {.count = 0};
    enum pay_status status = pay_ctl_store(ctl, "payfactctl dlq", true, &store, err);
    if (status == PAY_OK) {
        status = pay_store_dead_get(store, id, arena, &rows, err);
    }
    (void)pay_store_free(store); /* always NULL */
    if (status == PAY_OK) {
        *ret_thing = rows.count == 0 ? NULL : rows.rows;
    }
    return status;
}

struct reader {
    struct pay_dlq_reading *reading;
    struct pay_codec *codec;
    struct pay_arena *arena;
};

static bool on_record(void *ctx, const struct pay_kafka_msg *msg)
{
    struct reader *reader = ctx;
    struct pay_dead_letter letter;
    struct pay_err err;
    pay_arena_reset(reader->arena);
    if (pay_dead_letter_decode(reader->codec, msg->value, reader->arena, &letter, &err) != PAY_OK) {
        reader->reading->unreadable++;
        return true;
    }
    return reader->reading->on_letter(reader->reading->ctx, &letter);
}

enum pay_status pay_dlq_read(struct pay_ctl *ctl, struct pay_dlq_reading *reading,
                             struct pay_err *err)
{
    char topic[PAY_TOPIC_NAME_SIZE];
    struct reader reader = {.reading = reading, .arena = pay_arena_new(PAY_DLQ_ARENA_BYTES_MAX)};
    struct pay_kafka_reader_options options = {
        .topic = topic,
        .since_ms =
            reading->since_s == 0 ? 0 : pay_clock_wall_us() / 1000 - reading->since_s * 1000,
        .timeout_ms = READ_TIMEOUT_MS,
        .on_record = on_record,
        .ctx = &reader,
    };
    enum pay_status status =
        reader.arena == NULL ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out")
        : !pay_topic_name(topic, PAY_TOPIC_DLQ, ctl->settings.topic_prefix)
            ? pay_err_set(err, PAY_FATAL, 0, op, "PAYFACT_TOPIC_PREFIX is not part of a name")
            : pay_codec_new(&reader.codec, err);
    if (status == PAY_OK) {
        status = pay_ctl_kafka_conf(ctl, &options.conf, err);
    }
    if (status == PAY_OK) {
        status = pay_kafka_read_topic(&options, err);
    }
    (void)pay_codec_free(reader.codec); /* always NULL, as the next */
    (void)pay_arena_free(reader.arena);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/kafka/kafka_reader.h"

#include "common/base/clock.h"
#include "common/io/kafka/kafka_internal.h"

#include "common/base/banned.h"

static const char op[] = "kafka read";

#define POLL_MS 200

struct reader {
    const struct pay_kafka_reader_options *options;
    struct pay_kafka_note note;
    rd_kafka_t *rk;
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *queue;
    int32_t partitions; /* Started. */
    int32_t open;       /* Of those, not read to their end. */
    int64_t end_us;     /* Monotonic. */
};

static int left_ms(const struct reader *reader)
{
    const int64_t left_us = reader->end_us - pay_clock_mono_us();
    return left_us <= 0 ? 0 : (int)(left_us / 1000) + 1;
}

static void on_error(rd_kafka_t *rk, int code, const char *text, void *opaque)
{
    struct reader *reader = opaque;
    (void)rk;
    pay_kafka_note_error(&reader->note, code, text);
}

static enum pay_status make_client(struct reader *reader, struct pay_err *err)
{
    static const struct pay_kafka_setting settings[] = {
        {"enable.partition.eof", "true", 0},
        {"allow.auto.create.topics", "false", 0},
        {"auto.offset.reset", "earliest", 0},
    };
    char why[PAY_KAFKA_ERRSTR_BYTES];
    rd_kafka_conf_t *conf = NULL;
    const enum pay_status status = pay_kafka_conf_build(
        &reader->options->conf, settings, sizeof settings / sizeof settings[0], &conf, err);
    if (status != PAY_OK) {
        return status;
    }
    rd_kafka_conf_set_opaque(conf, reader);
    rd_kafka_conf_set_error_cb(conf, on_error);
    reader->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (reader->rk == NULL) {
        rd_kafka_conf_destroy(conf); /* Only a success takes it. */
        return pay_err_set(err, PAY_FATAL, 0, op, "%s", why);
    }
    reader->topic = rd_kafka_topic_new(reader->rk, reader->options->topic, NULL);
    reader->queue = rd_kafka_queue_new(reader->rk);
    return reader->topic == NULL ? pay_err_set(err, PAY_FATAL, 0, op, "the topic's name is none")
                                 : PAY_OK;
}

static enum pay_status count_partitions(struct reader *reader, int32_t *ret_count,
                                        struct pay_err *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    enum pay_status status =
        pay_kafka_metadata(reader->rk, reader->topic, left_ms(reader), &metadata, err);
    if (status != PAY_OK) {
        return status;
    }
    const int count = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
    if (count <= 0 || count > PAY_KAFKA_READER_PARTITIONS_MAX) {
        status = pay_err_set(err, PAY_REJECT, 0, op, "no topic %.200s", reader->options->topic);
    }
    rd_kafka_metadata_destroy(metadata);
    *ret_count = count;
    return status;
}

/* Where each partition begins for us: at its first record of that time, or at its first one. */
static enum pay_status find_offsets(struct reader *reader, int32_t count,
                                    rd_kafka_topic_partition_list_t *list, struct pay_err *err)
{
    for (int32_t i = 0; i < count; i++) {
        rd_kafka_topic_partition_list_add(list, reader->options->topic, i)->offset =
            reader->options->since_ms > 0 ? reader->options->since_ms : RD_KAFKA_OFFSET_BEGINNING;
    }
    if (reader->options->since_ms <= 0) {
        return PAY_OK;
    }
    const rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(reader->rk, list, left_ms(reader));
    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? PAY_OK
               : pay_kafka_fail(err, op, code, rd_kafka_err2str(code));
}

static enum pay_status start(struct reader *reader, struct pay_err *err)
{
    int32_t count = 0;
    enum pay_status status = count_partitions(reader, &count, err);
    if (status != PAY_OK) {
        return status;
    }
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    status = find_offsets(reader, count, list, err);
    for (int32_t i = 0; status == PAY_OK && i < count; i++) {
        if (rd_kafka_consume_start_queue(reader->topic, i, list->elems[i].offset, reader->queue) !=
            0) {
            const rd_kafka_resp_err_t code = rd_kafka_last_error();
            status = pay_kafka_fail(err, op, code, rd_kafka_err2str(code));
            break;
        }
        reader->partitions++;
        reader->open++;
    }
    rd_kafka_topic_partition_list_destroy(list);
    return status;
}

/* @return false: enough. */
static bool take(struct reader *reader, rd_kafka_message_t *rkm)
{
    bool goes_on = true;
    if (rkm->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        (void)rd_kafka_consume_stop(reader->topic, rkm->partition); /* Its end is the end. */
        reader->open--;
    } else if (rkm->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        pay_kafka_note_error(&reader->note, rkm->err, rd_kafka_message_errstr(rkm));
    } else {
        struct pay_kafka_msg msg = {.handle = NULL};
        pay_kafka_view(rkm, reader->options->topic, &msg);
        goes_on = reader->options->on_record(reader->options->ctx, &msg);
    }
    rd_kafka_message_destroy(rkm);
    return goes_on;
}

static enum pay_status read_all(struct reader *reader, struct pay_err *err)
{
    while (reader->open > 0) {
        rd_kafka_message_t *rkm = rd_kafka_consume_queue(reader->queue, POLL_MS);
        (void)rd_kafka_poll(reader->rk, 0); /* Errors of the client. */
        if (rkm != NULL && !take(reader, rkm)) {
            return PAY_OK;
        }
        if (reader->open > 0 && left_ms(reader) == 0) {
            return pay_kafka_note_take(&reader->note, err) && err->status != PAY_OK
                       ? PAY_RETRY
                       : pay_err_set(err, PAY_RETRY, 0, op, "the end was not reached in time");
        }
    }
    return PAY_OK;
}

static void finish(struct reader *reader)
{
    for (int32_t i = 0; i < reader->partitions; i++) {
        (void)rd_kafka_consume_stop(reader->topic, i); /* Fails for those that are stopped. */
    }
    if (reader->queue != NULL) {
        rd_kafka_queue_destroy(reader->queue);
    }
    if (reader->topic != NULL) {
        rd_kafka_topic_destroy(reader->topic);
    }
    if (reader->rk != NULL) {
        rd_kafka_destroy(reader->rk);
    }
    (void)pthread_mutex_destroy(&reader->note.lock); /* Nobody holds it any more. */
}

enum pay_status pay_kafka_read_topic(const struct pay_kafka_reader_options *options,
                                     struct pay_err *err)
{
    struct reader reader = {
        .options = options,
        .end_us = pay_clock_mono_us() + (int64_t)options->timeout_ms * 1000,
    };
    (void)pthread_mutex_init(&reader.note.lock, NULL); /* Cannot fail with default attributes. */
    enum pay_status status = make_client(&reader, err);
    if (status == PAY_OK) {
        status = start(&reader, err);
    }
    if (status == PAY_OK) {
        status = read_all(&reader, err);
    }
    finish(&reader);
    return status;
}

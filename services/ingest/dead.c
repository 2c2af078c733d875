/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/dead.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/contracts/headers.h"

#include "common/base/banned.h"

/* Secrets of a command stay out; their digest stands in the command. */
static size_t copy_headers(const struct pay_kafka_msg *msg, struct pay_dead_header *headers)
{
    size_t count = 0;
    for (size_t i = 0; i < msg->headers.count && count < PAY_DEAD_LETTER_HEADERS_MAX; i++) {
        const struct pay_kafka_header *header = &msg->headers.items[i];
        if (strcmp(header->name, PAY_HEADER_SECRETS) != 0) {
            headers[count++] = (struct pay_dead_header){pay_str_of(header->name), header->value};
        }
    }
    return count;
}

static enum pay_status seal_value(struct pay_desk *desk, const struct pay_kafka_msg *msg,
                                  struct pay_dead_letter *letter, struct pay_err *err)
{
    if (msg->value.ptr == NULL) {
        return PAY_OK;
    }
    const struct pay_str bound_to =
        pay_arena_printf(desk->arena, "dead/%s", letter->dead_letter_id.ptr);
    if (bound_to.ptr == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "dead letter", "arena full");
    }
    return pay_keys_seal(desk->ingest->keys, bound_to, msg->value, desk->arena,
                         &letter->sealed_value, err);
}

static enum pay_status put(struct pay_desk *desk, const struct pay_dead_letter *letter,
                           const struct pay_kafka_msg *msg, struct pay_outlet_wait *wait,
                           struct pay_err *err)
{
    struct pay_buf value = pay_buf_make(PAY_DEAD_LETTER_BYTES_MAX);
    enum pay_status status = pay_dead_letter_encode(desk->codec, letter, &value, err);
    if (status == PAY_OK) {
        const struct pay_outlet_record record = {
            .topic = desk->ingest->topics[PAY_TOPIC_DLQ],
            .key = {(const char *)msg->key.ptr, msg->key.len},
            .value = pay_buf_bytes(&value),
        };
        status = pay_outlet_wait_put(wait, desk->ingest->outlet, &record, err);
    }
    pay_buf_free(&value);
    return status;
}

enum pay_status pay_dead_put(struct pay_desk *desk, const struct pay_kafka_msg *msg,
                             enum pay_dead_reason reason, const char *text,
                             struct pay_outlet_wait *wait, struct pay_err *err)
{
    struct pay_dead_header headers[PAY_DEAD_LETTER_HEADERS_MAX];
    const int64_t now_us = pay_clock_wall_us();
    struct pay_dead_letter letter = {
        .dead_letter_id =
            pay_dead_letter_id(desk->arena, pay_str_of(msg->topic), msg->partition, msg->offset),
        .service = PAY_STR("payfact-ingest"),
        .service_version = PAY_STR(PAY_VERSION),
        .topic = pay_str_of(msg->topic),
        .partition = msg->partition,
        .offset = msg->offset,
        .key = msg->key,
        .headers = headers,
        .header_count = copy_headers(msg, headers),
        .reason = reason,
        .text = pay_str_of(text),
        .first_failed_at_us = now_us,
        .last_failed_at_us = now_us,
        .tries = 1,
    };
    if (letter.dead_letter_id.ptr == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "dead letter", "arena full");
    }
    enum pay_status status = seal_value(desk, msg, &letter, err);
    if (status == PAY_OK) {
        status = put(desk, &letter, msg, wait, err);
    }
    if (status == PAY_OK) {
        pay_metric_add(desk->ingest->metrics[PAY_IM_DEAD],
                       (const char *const[]){msg->topic, pay_dead_reason_name(reason)}, 1);
        pay_log(PAY_LOG_WARN, "dead_letter", PAY_F_STR("topic", msg->topic),
                PAY_F_INT("partition", msg->partition), PAY_F_INT("offset", msg->offset),
                PAY_F_STR("reason", pay_dead_reason_name(reason)), PAY_F_STR("text", text));
    }
    return status;
}

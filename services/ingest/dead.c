/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/dead.h"

#include <string.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/contracts/headers.h"

#include "common/base/banned.h"

#define PAUSE_MS 500

struct pay_dead_source pay_dead_source_of(const struct pay_kafka_msg *msg)
{
    return (struct pay_dead_source){msg->topic, msg->partition,     msg->offset,       msg->key,
                                    msg->value, msg->headers.items, msg->headers.count};
}

/* Secrets of a command stay out; their digest stands in the command. */
static size_t copy_headers(const struct pay_dead_source *from, struct pay_dead_header *headers)
{
    size_t count = 0;
    for (size_t i = 0; i < from->header_count && count < PAY_DEAD_LETTER_HEADERS_MAX; i++) {
        const struct pay_kafka_header *header = &from->headers[i];
        if (strcmp(header->name, PAY_HEADER_SECRETS) != 0) {
            headers[count++] = (struct pay_dead_header){pay_str_of(header->name), header->value};
        }
    }
    return count;
}

static enum pay_status seal_value(struct pay_desk *desk, const struct pay_dead_source *from,
                                  struct pay_dead_letter *letter, struct pay_err *err)
{
    if (from->value.ptr == NULL) {
        return PAY_OK;
    }
    const struct pay_str bound_to =
        pay_arena_printf(desk->arena, "dead/%s", letter->dead_letter_id.ptr);
    if (bound_to.ptr == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "dead letter", "arena full");
    }
    return pay_keys_seal(desk->ingest->keys, bound_to, from->value, desk->arena,
                         &letter->sealed_value, err);
}

/* Whole, or as much of it as the record may hold. */
static enum pay_status encode(struct pay_desk *desk, struct pay_dead_letter *letter,
                              struct pay_buf *value, struct pay_err *err)
{
    enum pay_status status = pay_dead_letter_encode(desk->codec, letter, value, err);
    if (status == PAY_REJECT) {
        letter->header_count = 0;
        pay_buf_reset(value);
        status = pay_dead_letter_encode(desk->codec, letter, value, err);
    }
    if (status == PAY_REJECT) {
        letter->key = (struct pay_bytes){NULL, 0};
        letter->sealed_value = (struct pay_sealed){.ciphertext = {NULL, 0}};
        pay_buf_reset(value);
        status = pay_dead_letter_encode(desk->codec, letter, value, err);
    }
    return status;
}

static enum pay_status put(struct pay_desk *desk, struct pay_dead_letter *letter,
                           struct pay_outlet_wait *wait, struct pay_err *err)
{
    struct pay_buf value = pay_buf_make(PAY_DEAD_LETTER_BYTES_MAX);
    enum pay_status status = encode(desk, letter, &value, err);
    if (status == PAY_OK) {
        const struct pay_outlet_record record = {
            .topic = desk->ingest->topics[PAY_TOPIC_DLQ],
            .key = {(const char *)letter->key.ptr, letter->key.len},
            .value = pay_buf_bytes(&value),
        };
        status = pay_outlet_wait_put(wait, desk->ingest->outlet, &record, err);
    }
    pay_buf_free(&value);
    return status;
}

static void note_letter(struct pay_desk *desk, const struct pay_dead_source *from,
                        enum pay_dead_reason reason, const char *text)
{
    pay_metric_add(desk->ingest->metrics[PAY_IM_DEAD],
                   (const char *const[]){from->topic, pay_dead_reason_name(reason)}, 1);
    pay_log(PAY_LOG_WARN, "dead_letter", PAY_F_STR("topic", from->topic),
            PAY_F_INT("partition", from->partition), PAY_F_INT("offset", from->offset),
            PAY_F_STR("reason", pay_dead_reason_name(reason)), PAY_F_STR("text", text));
}

enum pay_status pay_dead_put(struct pay_desk *desk, const struct pay_dead_source *from,
                             enum pay_dead_reason reason, const char *text,
                             struct pay_outlet_wait *wait, struct pay_err *err)
{
    struct pay_dead_header headers[PAY_DEAD_LETTER_HEADERS_MAX];
    const int64_t now_us = pay_clock_wall_us();
    struct pay_dead_letter letter = {
        .dead_letter_id =
            pay_dead_letter_id(desk->arena, pay_str_of(from->topic), from->partition, from->offset),
        .service = PAY_STR("payfact-ingest"),
        .service_version = PAY_STR(PAY_VERSION),
        .topic = pay_str_of(from->topic),
        .partition = from->partition,
        .offset = from->offset,
        .key = from->key,
        .headers = headers,
        .header_count = copy_headers(from, headers),
        .reason = reason,
        .text = pay_str_of(text),
        .first_failed_at_us = now_us,
        .last_failed_at_us = now_us,
        .tries = 1,
    };
    if (letter.dead_letter_id.ptr == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "dead letter", "arena full");
    }
    enum pay_status status = seal_value(desk, from, &letter, err);
    if (status == PAY_OK) {
        status = put(desk, &letter, wait, err);
    }
    if (status == PAY_OK) {
        note_letter(desk, from, reason, text);
    }
    return status;
}

enum pay_status pay_dead_keep(struct pay_desk *desk, const struct pay_dead_source *from,
                              enum pay_dead_reason reason, const char *text,
                              struct pay_outlet_wait *wait, struct pay_health_loop *loop)
{
    /* What is left of it where the topic takes no record of its size. */
    const struct pay_dead_source bare = {
        .topic = from->topic, .partition = from->partition, .offset = from->offset};
    for (;;) {
        struct pay_err err = {.status = PAY_OK};
        struct pay_err why = {.status = PAY_OK};
        pay_arena_reset(desk->arena);
        enum pay_status status = pay_dead_put(desk, from, reason, text, wait, &err);
        const enum pay_status reported = pay_outlet_wait_done(wait, &why);
        if (status == PAY_OK && reported == PAY_OK) {
            return PAY_OK;
        }
        if (status == PAY_OK) {
            status = reported;
            err = why;
        }
        pay_log(PAY_LOG_ERROR, "dead_letter_not_kept", PAY_F_STR("topic", from->topic),
                PAY_F_INT("partition", from->partition), PAY_F_INT("offset", from->offset),
                PAY_F_ERR(&err));
        pay_metric_add(desk->ingest->metrics[PAY_IM_ERRORS], (const char *const[]){"dead_letter"},
                       1);
        pay_health_beat(loop);
        if (status == PAY_REJECT && from != &bare) {
            from = &bare;
            continue;
        }
        if (pay_service_wait(desk->ingest->svc, PAUSE_MS)) {
            return PAY_RETRY;
        }
    }
}

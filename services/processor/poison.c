/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include <stdint.h>
#include <stdio.h>

#include "common/crypto/aead.h"

#include "common/base/banned.h"

static enum pay_status full(struct pay_err *err)
{
    return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "poison", "the arena is full");
}

static bool open_case(struct pay_try *turn, const struct pay_item *item)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_case_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    *row = (struct pay_store_case_row){
        .case_id = pay_arena_printf(arena, "//%s", item->transport_key.ptr),
        .kind = PAY_CASE_DEAD_INPUT,
        .aggregate_id = PAY_STR(""),
        .number = 1,
        .input_id = item->inbox.input_id,
        .event_name = "POISON",
        .reason_code = pay_dead_reason_name(item->dead),
        .open = true,
    };
    return row->case_id.ptr != NULL && pay_list_add(arena, &turn->loose->cases, row);
}

static int64_t received_at(const struct pay_item *item)
{
    const int64_t ms = item->msg->timestamp_ms; /* Whatever its producer wrote. */
    if (item->input.received_at_us > 0) {
        return item->input.received_at_us;
    }
    return ms > 0 && ms <= INT64_MAX / 1000 ? ms * 1000 : 1;
}

/* What cannot be sealed, because it is larger than whatever may be made of a record, stays where it
 * is: the row and the dead letter name its place and its digest. */
#define SEALED_MAX (PAY_DEAD_LETTER_BYTES_MAX - PAY_AEAD_OVERHEAD)

static enum pay_status seal_row(struct pay_try *turn, struct pay_item *item, struct pay_str aad,
                                struct pay_err *err)
{
    struct pay_worker *worker = turn->worker;
    const struct pay_bytes value = item->msg->value;
    if (value.len > SEALED_MAX) {
        return PAY_OK;
    }
    pay_buf_reset(&worker->bytes);
    enum pay_status status =
        pay_keyring_seal(worker->keyring, (struct pay_bytes){(const uint8_t *)aad.ptr, aad.len},
                         value, &item->inbox.key_id, &worker->bytes, err);
    if (status != PAY_OK) {
        return status;
    }
    item->inbox.body = pay_arena_bytes(worker->scratch, pay_buf_bytes(&worker->bytes));
    return item->inbox.body.ptr == NULL ? full(err) : PAY_OK;
}

static struct pay_str input_id(const struct pay_item *item)
{
    return item->input.input_id.len > 0 ? item->input.input_id : pay_str_of(item->place);
}

enum pay_status pay_poison_keep(struct pay_try *turn, struct pay_item *item, struct pay_err *err)
{
    struct pay_worker *worker = turn->worker;
    struct pay_arena *arena = worker->scratch;
    struct pay_bytes value = item->msg->value;
    uint8_t *sha256 = pay_arena_alloc(arena, PAY_SHA256_BYTES);
    struct pay_str aad = pay_arena_printf(arena, "//%s", item->transport_key.ptr);
    if (sha256 == NULL || aad.ptr == NULL) {
        return full(err);
    }
    item->inbox = (struct pay_store_inbox_row){
        .key = {item->key, PAY_STORE_INBOX_KEY_BYTES},
        .psp = PAY_STR(""),
        .psp_account = PAY_STR(""),
        .transport_key = item->transport_key,
        .input_id = input_id(item),
        .kind = "POISON",
        .source =
            item->input.source == PAY_SOURCE_UNRECOGNIZED ? PAY_SOURCE_LOCAL : item->input.source,
        .verification = pay_str_of(pay_dead_reason_name(item->dead)),
        .status = "DEAD",
        .received_at_us = received_at(item),
        .copies = 1,
    };
    pay_sha256(value, sha256);
    item->inbox.sha256 = (struct pay_bytes){sha256, PAY_SHA256_BYTES};
    return seal_row(turn, item, aad, err);
}

/* What came before of a deadline's key tells its story, unless it is this very record, of which the
 * letter may be missing. */
bool pay_poison_settle(struct pay_try *turn, struct pay_item *item)
{
    if (item->condemned.aggregate_id.ptr == NULL) {
        return open_case(turn, item);
    }
    item->dead_letter = item->inbox.is_new || item->inbox.is_same_input;
    return pay_list_add(turn->worker->scratch, &turn->loose->postponed, &item->condemned) &&
           (!item->dead_letter || open_case(turn, item));
}

static size_t copy_headers(const struct pay_kafka_msg *msg,
                           struct pay_dead_header headers[PAY_KAFKA_HEADERS_MAX])
{
    for (size_t i = 0; i < msg->headers.count; i++) {
        headers[i].name = pay_str_of(msg->headers.items[i].name);
        headers[i].value = msg->headers.items[i].value;
    }
    return msg->headers.count;
}

/* Whatever it is, it may hold raw PSP data: only holders of the keyring read it again. */
static enum pay_status seal(struct pay_worker *worker, const struct pay_item *item,
                            struct pay_str bound_to, struct pay_sealed *ret_sealed,
                            struct pay_err *err)
{
    if (item->msg->value.len > SEALED_MAX) {
        return PAY_OK;
    }
    struct pay_buf sealed = pay_buf_make(PAY_DEAD_LETTER_BYTES_MAX);
    enum pay_status status = pay_keyring_seal(
        worker->keyring, (struct pay_bytes){(const uint8_t *)bound_to.ptr, bound_to.len},
        item->msg->value, &ret_sealed->key_id, &sealed, err);
    if (status == PAY_OK) {
        ret_sealed->ciphertext = pay_arena_bytes(worker->scratch, pay_buf_bytes(&sealed));
        ret_sealed->bound_to = bound_to;
        if (ret_sealed->ciphertext.ptr == NULL) {
            status = full(err);
        }
    }
    pay_buf_free(&sealed);
    return status;
}

/* What is too large goes without: the stored row has the bytes, and the place names the record. */
static enum pay_status encode(struct pay_worker *worker, struct pay_dead_letter *letter,
                              struct pay_buf *out, struct pay_err *err)
{
    pay_buf_reset(out);
    enum pay_status status = pay_dead_letter_encode(worker->codec, letter, out, err);
    if (status == PAY_REJECT) {
        letter->header_count = 0;
        pay_buf_reset(out);
        status = pay_dead_letter_encode(worker->codec, letter, out, err);
    }
    if (status == PAY_REJECT) {
        letter->key = (struct pay_bytes){NULL, 0};
        letter->sealed_value = (struct pay_sealed){.ciphertext = {NULL, 0}};
        pay_buf_reset(out);
        status = pay_dead_letter_encode(worker->codec, letter, out, err);
    }
    return status;
}

enum pay_status pay_poison_letter(struct pay_worker *worker, const struct pay_item *item,
                                  int64_t now_us, struct pay_buf *out, struct pay_err *err)
{
    struct pay_dead_header headers[PAY_KAFKA_HEADERS_MAX];
    const struct pay_kafka_msg *msg = item->msg;
    struct pay_dead_letter letter = {
        .dead_letter_id = pay_dead_letter_id(worker->scratch, pay_str_of(msg->topic),
                                             msg->partition, msg->offset),
        .service = PAY_STR("payfact-processor"),
        .service_version = PAY_STR(PAY_VERSION),
        .topic = pay_str_of(msg->topic),
        .partition = msg->partition,
        .offset = msg->offset,
        .key = msg->key,
        .headers = headers,
        .header_count = copy_headers(msg, headers),
        .reason = item->dead,
        .text = item->kind == PAY_ITEM_POISON ? pay_str_of(item->dead_text)
                                              : PAY_STR("its payment did not turn up in time"),
        .first_failed_at_us = now_us,
        .last_failed_at_us = now_us,
        .tries = 1,
        .traceparent = item->input.traceparent,
    };
    struct pay_str bound_to = pay_arena_printf(worker->scratch, "dead/%s/%d/%lld", msg->topic,
                                               (int)msg->partition, (long long)msg->offset);
    if (letter.dead_letter_id.ptr == NULL || bound_to.ptr == NULL) {
        return full(err);
    }
    enum pay_status status = seal(worker, item, bound_to, &letter.sealed_value, err);
    if (status != PAY_OK) {
        return status;
    }
    return encode(worker, &letter, out, err);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/contracts/headers.h"
#include "common/contracts/keys.h"
#include "common/core/id.h"

#include "common/base/banned.h"

bool pay_list_add(struct pay_arena *arena, struct pay_list *list, void *item)
{
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 8 : list->cap * 2;
        void **items = (void **)pay_arena_array(arena, cap, sizeof(*items));
        if (items == NULL) {
            return false;
        }
        if (list->count > 0) {
            memcpy((void *)items, (const void *)list->items, list->count * sizeof(*items));
        }
        list->items = items;
        list->cap = cap;
    }
    list->items[list->count++] = item;
    return true;
}

void pay_list_sort(struct pay_list *list, int (*order)(const void *, const void *))
{
    if (list->count > 1) {
        qsort((void *)list->items, list->count, sizeof(*list->items), order);
    }
}

/* No two records have the same. */
static void use_place(struct pay_item *item)
{
    char key[PAY_TRANSPORT_KEY_SIZE];
    item->transport_key = (struct pay_str){NULL, 0};
    item->condemned = (struct pay_store_deadline){.aggregate_id = {NULL, 0}};
    struct pay_str topic = pay_str_of(item->msg->topic);
    if (pay_transport_key_poison(key, topic, item->msg->partition, item->msg->offset)) {
        (void)snprintf(item->place, sizeof(item->place), "%s", key);
        item->transport_key = pay_str_of(item->place);
    }
    struct pay_bytes parts[] = {
        {(const uint8_t *)"//", 2},
        {(const uint8_t *)item->transport_key.ptr, item->transport_key.len},
    };
    pay_sha256_parts(parts, 2, item->key);
    item->cause = item->transport_key;
}

void pay_item_poison(struct pay_item *item, enum pay_dead_reason reason, const char *text)
{
    item->kind = PAY_ITEM_POISON;
    item->dead = reason;
    item->dead_letter = true;
    item->has_key = true;
    (void)snprintf(item->dead_text, sizeof(item->dead_text), "%s", text);
    use_place(item);
}

void pay_item_condemn(struct pay_item *item, enum pay_dead_reason reason, const char *text)
{
    const bool is_deadline = item->kind == PAY_ITEM_DEADLINE && item->has_key;
    const struct pay_str key = item->transport_key;
    const struct pay_store_deadline row = {
        .kind = item->deadline_kind,
        .aggregate_id = item->input.deadline.aggregate_id,
        .due_at_us = item->input.deadline.due_at_us,
    };
    item->input = (struct pay_payment_input){.kind = PAY_WIRE_UNRECOGNIZED,
                                             .source = PAY_SOURCE_UNRECOGNIZED};
    item->command = NULL;
    item->route_count = 0;
    item->trace_id = (struct pay_str){NULL, 0};
    item->normalized = (struct pay_bytes){NULL, 0};
    pay_item_poison(item, reason, text);
    if (is_deadline && pay_inbox_digest(PAY_STR(""), PAY_STR(""), key, item->key)) {
        item->transport_key = item->cause = key;
        item->condemned = row;
    }
}

bool pay_item_forget_deadline(struct pay_item *item)
{
    const bool was_deadline = item->condemned.aggregate_id.ptr != NULL;
    use_place(item);
    return was_deadline;
}

/* The parts are joined with '/', so the first two must not hold one. */
static bool is_name(struct pay_str text)
{
    if (text.ptr == NULL || text.len >= PAY_NAME_SIZE) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_')) {
            return false;
        }
    }
    return true;
}

bool pay_inbox_digest(struct pay_str psp, struct pay_str psp_account, struct pay_str transport_key,
                      uint8_t ret_digest[PAY_SHA256_BYTES])
{
    if (!is_name(psp) || !is_name(psp_account) || transport_key.ptr == NULL ||
        transport_key.len == 0 || transport_key.len > PAY_TRANSPORT_KEY_MAX) {
        return false;
    }
    struct pay_bytes parts[] = {
        {(const uint8_t *)psp.ptr, psp.len},
        {(const uint8_t *)"/", 1},
        {(const uint8_t *)psp_account.ptr, psp_account.len},
        {(const uint8_t *)"/", 1},
        {(const uint8_t *)transport_key.ptr, transport_key.len},
    };
    pay_sha256_parts(parts, sizeof(parts) / sizeof(parts[0]), ret_digest);
    return true;
}

static bool set_key(struct pay_item *item, struct pay_str psp, struct pay_str psp_account)
{
    item->transport_key = item->input.transport_key;
    item->has_key = pay_inbox_digest(psp, psp_account, item->transport_key, item->key);
    return item->has_key;
}

/* Said of no record: it is read again where there is room. */
static const char no_room[] = "there is no room for it";

static const char *keep(struct pay_worker *worker, struct pay_item *item)
{
    struct pay_err err;
    pay_buf_reset(&worker->bytes);
    const enum pay_status status =
        pay_payment_input_encode_stored(worker->codec, &item->input, &worker->bytes, &err);
    if (status != PAY_OK) {
        return status == PAY_RETRY ? no_room : "an input that cannot be kept";
    }
    item->normalized = pay_arena_bytes(worker->reading, pay_buf_bytes(&worker->bytes));
    return item->normalized.ptr == NULL ? no_room : NULL;
}

static const char *read_event(struct pay_worker *worker, struct pay_item *item)
{
    item->kind = PAY_ITEM_EVENT;
    item->cause = item->input.business_key;
    if (item->cause.ptr == NULL || item->cause.len == 0) {
        return "an event without business key";
    }
    const char *why = pay_derive_refuse(&item->input);
    if (why != NULL) {
        return why;
    }
    if (!set_key(item, item->input.event.psp, item->input.event.psp_account)) {
        return "an event's psp, account or transport key is not of its form";
    }
    return keep(worker, item);
}

static const char *read_deadline(struct pay_worker *worker, struct pay_item *item)
{
    char key[PAY_TRANSPORT_KEY_SIZE];
    const struct pay_wire_deadline *due = &item->input.deadline;
    item->kind = PAY_ITEM_DEADLINE;
    if (!pay_deadline_kind_parse(due->kind, &item->deadline_kind)) {
        return "a deadline of an unknown kind";
    }
    if (!pay_transport_key_deadline(key, due->kind, due->aggregate_id, due->due_at_us)) {
        return "a deadline without aggregate";
    }
    /* Our own form, whatever the message says: it is what makes a deadline act once. */
    item->input.transport_key = pay_arena_str(worker->reading, pay_str_of(key));
    item->cause = item->input.transport_key;
    if (item->cause.ptr == NULL) {
        return no_room;
    }
    if (item->input.source != PAY_SOURCE_LOCAL || !set_key(item, PAY_STR(""), PAY_STR(""))) {
        return "a deadline that is not local";
    }
    return keep(worker, item);
}

static const char *read_replay(struct pay_worker *worker, struct pay_item *item)
{
    (void)worker; /* nothing to keep: it names a stored row */
    const struct pay_wire_replay *replay = &item->input.replay;
    item->kind = PAY_ITEM_REPLAY;
    bool is_key =
        pay_inbox_digest(replay->psp, replay->psp_account, replay->transport_key, item->key);
    return is_key ? NULL : "a replay that names no stored event";
}

static const char *read_refused(struct pay_worker *worker, struct pay_item *item)
{
    (void)worker; /* the evidence is sealed already */
    item->kind = PAY_ITEM_REFUSED;
    item->cause = item->input.refused.reason_code;
    bool is_key = set_key(item, item->input.refused.psp, item->input.refused.psp_account);
    return is_key ? NULL : "a refused notification without a key of its form";
}

static const char *read_command(struct pay_worker *worker, struct pay_item *item)
{
    item->kind = PAY_ITEM_COMMAND;
    /* It makes poison by itself: its reasons differ. */
    return pay_item_read_command(worker, item) ? NULL : no_room;
}

static const char *read_unknown(struct pay_worker *worker, struct pay_item *item)
{
    (void)worker;
    (void)item;
    return "an input of a kind that this version does not know";
}

typedef const char *read_fn(struct pay_worker *, struct pay_item *);
static read_fn *const readers[PAY_WIRE_KIND_COUNT] = {
    [PAY_WIRE_PSP_EVENT] = read_event,
    [PAY_WIRE_COMMAND] = read_command,
    [PAY_WIRE_REJECTED_COMMAND] = read_command,
    [PAY_WIRE_DEADLINE] = read_deadline,
    [PAY_WIRE_REPLAY] = read_replay,
    [PAY_WIRE_REFUSED_NOTIFICATION] = read_refused,
    [PAY_WIRE_UNRECOGNIZED] = read_unknown,
};

static enum pay_status read(struct pay_worker *worker, const struct pay_kafka_msg *msg,
                            struct pay_bytes value, struct pay_item *item, struct pay_err *err)
{
    *item = (struct pay_item){.msg = msg, .verdict = PAY_VERDICT_COUNT};
    enum pay_status status =
        pay_payment_input_decode(worker->codec, value, worker->reading, &item->input, err);
    if (status == PAY_RETRY) {
        return status;
    }
    if (status != PAY_OK) {
        item->input = (struct pay_payment_input){.kind = PAY_WIRE_UNRECOGNIZED,
                                                 .source = PAY_SOURCE_UNRECOGNIZED};
        pay_item_poison(item, pay_dead_reason_of_code(err->code), err->text);
        return PAY_OK;
    }
    if (!pay_traceparent_valid(item->input.traceparent)) {
        item->input.traceparent = (struct pay_str){NULL, 0};
    } else {
        item->trace_id = (struct pay_str){item->input.traceparent.ptr + 3, 32};
    }
    if (item->input.payment_id.ptr != NULL && item->input.payment_id.len > 0 &&
        !pay_id_is_payment(item->input.payment_id)) {
        pay_item_poison(item, PAY_DEAD_MALFORMED, "a payment id that is not of its form");
        return PAY_OK;
    }
    const char *why = readers[item->input.kind](worker, item);
    if (why == no_room || pay_arena_refused(worker->reading)) {
        return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "item.read", "%s", no_room);
    }
    if (why != NULL) {
        pay_item_poison(item, PAY_DEAD_MALFORMED, why);
    }
    return PAY_OK;
}

enum pay_status pay_item_read(struct pay_worker *worker, const struct pay_kafka_msg *msg,
                              struct pay_item *item, struct pay_err *err)
{
    worker->reading = worker->batch;
    return read(worker, msg, msg->value, item, err);
}

enum pay_status pay_item_read_kept(struct pay_worker *worker, const struct pay_kafka_msg *msg,
                                   struct pay_bytes value, struct pay_item *item,
                                   struct pay_err *err)
{
    worker->reading = worker->scratch;
    return read(worker, msg, value, item, err);
}

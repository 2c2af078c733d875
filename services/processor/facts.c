/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include "common/base/hash.h"
#include "common/contracts/headers.h"
#include "common/core/id.h"

#include "common/base/banned.h"

static enum pay_status full(struct pay_err *err)
{
    return pay_err_set(err, PAY_RETRY, PAY_CODEC_NO_MEMORY, "fact.emit", "the arena is full");
}

static struct pay_str text_of(const char *text)
{
    return text == NULL || text[0] == '\0' ? (struct pay_str){NULL, 0} : pay_str_of(text);
}

static bool is_answer(enum pay_fact_type type)
{
    return type == PAY_FACT_COMMAND_ACCEPTED || type == PAY_FACT_COMMAND_REJECTED;
}

static bool is_dispute(enum pay_fact_type type)
{
    return type == PAY_FACT_DISPUTE_OPENED || type == PAY_FACT_DISPUTE_UPDATED ||
           type == PAY_FACT_DISPUTE_CLOSED;
}

static void set_payment(struct pay_payment_event *event, const struct pay_snapshot *snapshot,
                        const struct pay_item *item, const struct pay_fact *fact)
{
    const struct pay_order *order = &snapshot->order;
    event->payment_id = pay_str_of(order->payment_id);
    event->merchant_id = pay_str_of(order->merchant_id);
    event->merchant_order_no = text_of(order->merchant_order_no);
    if (fact->sequence == 0 && item->command != NULL) {
        /* Outside the payment's order: it may be unknown or another merchant's. */
        event->payment_id = item->command->payment_id;
        event->merchant_id = item->command->merchant_id;
        event->merchant_order_no = (struct pay_str){NULL, 0};
    }
    if (event->payment_id.ptr == NULL) {
        event->payment_id = PAY_STR("");
    }
}

static void set_attempt(struct pay_payment_event *event, const struct pay_snapshot *snapshot,
                        const struct pay_fact *fact)
{
    if (fact->attempt_index < 0) {
        return;
    }
    const struct pay_attempt *attempt = &snapshot->attempts[fact->attempt_index];
    event->attempt_id = pay_str_of(attempt->attempt_id);
    event->psp = pay_str_of(attempt->psp);
    event->psp_account = pay_str_of(attempt->psp_account);
    event->method = pay_str_of(attempt->method);
}

static void set_money(struct pay_payment_event *event, const struct pay_snapshot *snapshot,
                      const struct pay_fact *fact)
{
    const char *currency = snapshot->order.amount.currency;
    if (fact->has_amount) {
        event->has_amount = true;
        event->amount_minor = fact->amount.amount_minor;
        currency = fact->amount.currency;
    }
    if (fact->has_totals) {
        event->totals = (struct pay_event_totals){
            .is_set = true,
            .authorized_minor = fact->totals.authorized,
            .capture_reserved_minor = fact->totals.capture_reserved,
            .captured_minor = fact->totals.captured,
            .refund_reserved_minor = fact->totals.refund_reserved,
            .refunded_minor = fact->totals.refunded,
            .withdrawn_minor = fact->totals.withdrawn,
        };
    }
    if (fact->has_amount || fact->has_totals) {
        (void)pay_str_copy(event->currency, sizeof(event->currency), pay_str_of(currency));
    }
}

static void set_review(struct pay_payment_event *event, const struct pay_snapshot *snapshot,
                       const struct pay_fact *fact)
{
    if (fact->case_index < 0) {
        return;
    }
    const struct pay_case *item = &snapshot->cases[fact->case_index];
    event->review = (struct pay_event_review){
        .case_id = pay_str_of(item->case_id),
        .kind = pay_str_of(pay_case_kind_name(item->kind)),
        .has_proposed_refund = item->proposed_refund_minor > 0,
        .proposed_refund_minor = item->proposed_refund_minor,
        .resolution_code = fact->type == PAY_FACT_MANUAL_REVIEW_RESOLVED
                               ? text_of(fact->reason_code)
                               : (struct pay_str){NULL, 0},
    };
}

static void set_command(struct pay_payment_event *event, const struct pay_item *item,
                        const struct pay_fact *fact)
{
    if (!is_answer(fact->type) || item->command == NULL) {
        return;
    }
    event->command = (struct pay_event_command){
        .caller = item->command->caller,
        .command_id = item->command->command_id,
        .command_type = pay_str_of(pay_command_type_name(item->command->type)),
        .result_id = text_of(fact->result_id),
    };
}

/* What was decided, not what the message said: it may have been old, or said twice. */
static void set_dispute(struct pay_payment_event *event, const struct pay_snapshot *snapshot,
                        const struct pay_item *item, const struct pay_fact *fact)
{
    if (fact->dispute_index < 0) {
        event->dispute = item->what->event.dispute;
        return;
    }
    const struct pay_dispute *dispute = &snapshot->disputes[fact->dispute_index];
    event->dispute = (struct pay_dispute_detail){
        .is_set = true,
        .status = (int)dispute->status,
        .funds = (int)fact->funds,
        .is_inquiry = dispute->is_inquiry,
        .reason_code = text_of(dispute->reason_code),
        .evidence_due_at_us = dispute->evidence_due_at_us,
    };
}

static void make_event(const struct pay_try *turn, const struct pay_snapshot *snapshot,
                       const struct pay_item *item, const struct pay_fact *fact,
                       struct pay_payment_event *event)
{
    *event = (struct pay_payment_event){
        .event_id = pay_str_of(fact->event_id),
        .type = fact->type,
        .sequence = fact->sequence,
        .aggregate_id = pay_str_of(fact->aggregate_id),
        .previous_status = text_of(fact->previous_status),
        .status = text_of(fact->status),
        .order_status = fact->has_order_status
                            ? pay_str_of(pay_order_status_name(fact->order_status))
                            : (struct pay_str){NULL, 0},
        .reason_code = pay_str_of(fact->reason_code),
        .failure_class = fact->failure_class,
        .failure_code = fact->failure_code,
        .evidence_level = fact->evidence,
        .provider_reference = fact->provider_reference,
        .occurred_at_us = item->what->occurred_at_us,
        .decided_at_us = turn->now_us,
        .traceparent = item->input.traceparent,
    };
    set_payment(event, snapshot, item, fact);
    set_attempt(event, snapshot, fact);
    set_money(event, snapshot, fact);
    set_review(event, snapshot, fact);
    set_command(event, item, fact);
    if (fact->has_action) {
        event->action = item->what->event.action;
    }
    if (is_dispute(fact->type)) {
        set_dispute(event, snapshot, item, fact);
    }
}

struct pay_store_outbox_row *pay_outbox_row(struct pay_try *turn, struct pay_unit *unit,
                                            struct pay_str topic, struct pay_str key)
{
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_outbox_row *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return NULL;
    }
    row->topic = topic;
    row->key = pay_arena_str(arena, key);
    row->shard = (int)pay_hash_partition(key, turn->worker->partitions);
    return pay_list_add(arena, &unit->outbox, row) ? row : NULL;
}

bool pay_outbox_header(struct pay_arena *arena, struct pay_store_outbox_row *row, const char *name,
                       struct pay_str value)
{
    if (row->header_count == PAY_STORE_OUTBOX_HEADERS_MAX) {
        return false;
    }
    struct pay_store_header *header = &row->headers[row->header_count++];
    header->name = pay_str_of(name);
    header->value = pay_arena_str(arena, value);
    return header->value.ptr != NULL;
}

/* The key is the payment's, or where there is none the one that the input came under. */
static struct pay_str key_of(const struct pay_payment_event *event, const struct pay_item *item)
{
    if (event->payment_id.len > 0) {
        return event->payment_id;
    }
    return (struct pay_str){(const char *)item->msg->key.ptr, item->msg->key.len};
}

static bool set_headers(struct pay_arena *arena, const struct pay_payment_event *event,
                        struct pay_store_outbox_row *row)
{
    struct pay_header headers[PAY_EVENT_HEADERS_MAX];
    struct pay_event_header_scratch room;
    size_t count = pay_event_headers(event, &room, headers);
    bool fits = true;
    for (size_t i = 0; i < count && fits; i++) {
        fits = pay_outbox_header(arena, row, headers[i].name, headers[i].value);
    }
    return fits;
}

static bool emit(struct pay_try *turn, struct pay_unit *unit, const struct pay_item *item,
                 const struct pay_payment_event *event, struct pay_bytes payload)
{
    struct pay_str key = key_of(event, item);
    if (key.ptr == NULL) {
        key = PAY_STR("");
    }
    struct pay_store_outbox_row *row = pay_outbox_row(turn, unit, PAY_STR("events"), key);
    if (row == NULL) {
        return false;
    }
    row->payload = payload;
    return set_headers(turn->worker->scratch, event, row);
}

enum pay_status pay_fact_emit(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item,
                              const struct pay_fact *fact, struct pay_bytes *ret_payload,
                              struct pay_err *err)
{
    struct pay_payment_event event;
    struct pay_worker *worker = turn->worker;
    make_event(turn, &unit->snapshot, item, fact, &event);
    pay_buf_reset(&worker->bytes);
    enum pay_status status = pay_payment_event_encode(worker->codec, &event, &worker->bytes, err);
    if (status != PAY_OK) {
        return status;
    }
    *ret_payload = pay_arena_bytes(worker->scratch, pay_buf_bytes(&worker->bytes));
    if (ret_payload->ptr == NULL || !emit(turn, unit, item, &event, *ret_payload)) {
        return full(err);
    }
    return PAY_OK;
}

enum pay_status pay_fact_again(struct pay_try *turn, struct pay_unit *unit, struct pay_item *item,
                               struct pay_bytes payload, struct pay_err *err)
{
    struct pay_payment_event event;
    struct pay_worker *worker = turn->worker;
    const enum pay_status status =
        pay_payment_event_decode(worker->codec, payload, worker->scratch, &event, err);
    if (status != PAY_OK) {
        return status;
    }
    return emit(turn, unit, item, &event, payload) ? PAY_OK : full(err);
}

enum pay_status pay_fact_withhold(struct pay_try *turn, const struct pay_item *item,
                                  const struct pay_payment_event *dead, struct pay_err *err)
{
    char event_id[PAY_EVENT_ID_SIZE];
    struct pay_worker *worker = turn->worker;
    struct pay_withheld *withheld = pay_arena_alloc(worker->scratch, sizeof(*withheld));
    if (withheld == NULL) {
        return full(err);
    }
    pay_id_fact(event_id, PAY_FACT_EVENT_WITHHELD, dead->payment_id.ptr, dead->event_id.ptr);
    const struct pay_payment_event event = {
        .event_id = pay_str_of(event_id),
        .type = PAY_FACT_EVENT_WITHHELD,
        .payment_id = dead->payment_id,
        .merchant_id = dead->merchant_id,
        .merchant_order_no = dead->merchant_order_no,
        .sequence = dead->sequence,
        .aggregate_id = dead->payment_id,
        .reason_code = item->command->subject.reason_code,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .withheld = {dead->event_id, pay_str_of(pay_fact_type_name(dead->type))},
        .decided_at_us = turn->now_us,
        .traceparent = dead->traceparent,
    };
    pay_buf_reset(&worker->bytes);
    const enum pay_status status =
        pay_payment_event_encode(worker->codec, &event, &worker->bytes, err);
    if (status != PAY_OK) {
        return status;
    }
    withheld->dead = &item->dead_event;
    withheld->row.payload = pay_arena_bytes(worker->scratch, pay_buf_bytes(&worker->bytes));
    bool fits = withheld->row.payload.ptr != NULL &&
                set_headers(worker->scratch, &event, &withheld->row) &&
                pay_list_add(worker->scratch, &turn->loose->withheld, withheld);
    return fits ? PAY_OK : full(err);
}

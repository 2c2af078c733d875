/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/work.h"

#include <string.h>

#include "common/core/id.h"

#include "common/base/banned.h"

static bool ask(struct pay_try *turn, struct pay_item *item, struct pay_str reference)
{
    if (reference.ptr == NULL || reference.len == 0) {
        return true;
    }
    struct pay_arena *arena = turn->worker->scratch;
    struct pay_store_reference_ask *row = pay_arena_alloc(arena, sizeof(*row));
    if (row == NULL) {
        return false;
    }
    row->psp = item->what->event.psp;
    row->psp_account = item->what->event.psp_account;
    row->reference = reference;
    return pay_list_add(arena, &turn->references, row) &&
           pay_list_add(arena, &turn->ref_items, item);
}

bool pay_resolve_ask(struct pay_try *turn, struct pay_item *item)
{
    const struct pay_event *event = &item->what->event;
    bool fits =
        ask(turn, item, event->provider_payment_id) && ask(turn, item, event->provider_action_id);
    for (size_t i = 0; i < event->reference_count && fits; i++) {
        fits = ask(turn, item, event->references[i].reference);
    }
    return fits;
}

/* The payment that the message names, or that our own number on the PSP's side names. */
static void set_named(struct pay_item *item)
{
    struct pay_str named = item->what->payment_id;
    struct pay_str number = item->what->event.merchant_request_no;
    if (named.ptr != NULL && named.len > 0) {
        (void)pay_str_copy(item->payment_id, sizeof(item->payment_id), named);
    } else if (pay_id_is_action(number)) {
        number.len = PAY_PAYMENT_ID_SIZE - 1;
        (void)pay_str_copy(item->payment_id, sizeof(item->payment_id), number);
    }
}

void pay_resolve(struct pay_try *turn)
{
    for (size_t i = 0; i < turn->count; i++) {
        struct pay_item *item = turn->items[i];
        if (item->what != NULL && item->what->kind == PAY_WIRE_PSP_EVENT) {
            set_named(item);
        }
    }
    for (size_t i = 0; i < turn->references.count; i++) {
        const struct pay_store_reference_ask *row = turn->references.items[i];
        struct pay_item *item = turn->ref_items.items[i];
        if (row->attempt_id[0] == '\0' || row->ambiguous) {
            continue;
        }
        if (item->payment_id[0] == '\0') {
            pay_id_payment_of(item->payment_id, row->attempt_id);
        } else if (strncmp(item->payment_id, row->attempt_id, PAY_PAYMENT_ID_SIZE - 1) != 0) {
            item->foreign_reference = true;
        }
    }
}

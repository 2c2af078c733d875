/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/callback.h"

#include "common/base/ulid.h"

#include "common/base/banned.h"

enum pay_status pay_callback_read(struct pay_callback *callback, struct pay_arena *arena,
                                  struct pay_err *err)
{
    const struct pay_psp_adapter *adapter = callback->account->adapter;
    const struct pay_psp_account *account = &callback->account->psp;
    callback->reason =
        adapter->verify(account, &callback->raw, callback->received_at_us, &callback->verified_by);
    if (callback->reason != PAY_PSP_OK) { /* S0: it goes no further. */
        return pay_err_set(err, PAY_REJECT, (int)callback->reason, "verify", "%s",
                           pay_psp_reason_name(callback->reason));
    }
    struct pay_err why = {.status = PAY_OK};
    const enum pay_status status =
        adapter->parse(account, &callback->raw, arena, &callback->items, &why);
    if (status == PAY_REJECT) {
        callback->reason = (enum pay_psp_reason)why.code;
    }
    if (status != PAY_OK && err != NULL) {
        *err = why;
    }
    return status;
}

enum pay_status pay_callback_input(struct pay_desk *desk, const struct pay_callback *callback,
                                   size_t item, struct pay_err *err)
{
    const struct pay_psp_item *from = &callback->items.items[item];
    char input_id[PAY_ULID_LEN + 1];
    pay_ulid_new(input_id);
    struct pay_payment_input input = {
        .input_id = pay_str_of(input_id),
        .kind = PAY_WIRE_PSP_EVENT,
        .source = PAY_SOURCE_WEBHOOK,
        .evidence_level = PAY_EVIDENCE_WEBHOOK,
        .payment_id = from->payment_id,
        .event = from->event,
        .transport_key = from->transport_key,
        .business_key = from->business_key,
        .occurred_at_us = from->occurred_at_us,
        .received_at_us = callback->received_at_us,
        .traceparent = callback->traceparent,
    };
    const enum pay_status status = pay_keys_seal_evidence(
        desk->ingest->keys, &input, callback->raw.body, callback->verified_by, desk->arena, err);
    pay_buf_reset(&desk->value);
    return status == PAY_OK ? pay_payment_input_encode(desk->codec, &input, &desk->value, err)
                            : status;
}

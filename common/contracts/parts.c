/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/binding.h"

#include "common/contracts/limits.h"
#include "common/contracts/payment_event.h"

#include "common/base/banned.h"

static const struct pay_bind sealed[] = {
    PAY_TEXT("key_id", struct pay_sealed, key_id, 1, PAY_MAX_ID),
    PAY_BYTES("ciphertext", struct pay_sealed, ciphertext, 1, PAY_MAX_SEALED),
    PAY_TEXT("bound_to", struct pay_sealed, bound_to, 1, PAY_SEALED_BOUND_TO_MAX),
};
const struct pay_bind_record pay_bind_sealed = {sealed, PAY_FIELD_COUNT(sealed)};
const struct pay_bind pay_item_sealed = {
    .name = "(sealed)", .kind = PAY_BIND_RECORD, .record = &pay_bind_sealed};

static const struct pay_bind reference[] = {
    PAY_ENUM("kind", struct pay_reference, kind, PAY_REF_OTHER),
    PAY_TEXT("reference", struct pay_reference, reference, 1, PAY_MAX_REFERENCE),
};
static const struct pay_bind_record bind_reference = {reference, PAY_FIELD_COUNT(reference)};
const struct pay_bind pay_item_reference = {
    .name = "(reference)", .kind = PAY_BIND_RECORD, .record = &bind_reference};

static const struct pay_bind action[] = {
    PAY_ENUM("type", struct pay_customer_action, type, PAY_ACTION_OTHER),
    PAY_TEXT("url", struct pay_customer_action, url, 0, PAY_MAX_ACTION_DATA, PAY_OPTIONAL),
    PAY_TEXT("data", struct pay_customer_action, data, 0, PAY_MAX_ACTION_DATA, PAY_OPTIONAL),
    PAY_TIME_OPTIONAL("expires_at", struct pay_customer_action, expires_at_us),
};
const struct pay_bind_record pay_bind_action = {action, PAY_FIELD_COUNT(action)};

/* Indexes of UNRECOGNIZED. */
#define DISPUTE_STATUS_UNRECOGNIZED 6
#define DISPUTE_FUNDS_UNRECOGNIZED 3

static const struct pay_bind dispute[] = {
    PAY_ENUM("status", struct pay_dispute_detail, status, DISPUTE_STATUS_UNRECOGNIZED),
    PAY_ENUM("funds", struct pay_dispute_detail, funds, DISPUTE_FUNDS_UNRECOGNIZED),
    PAY_BOOL("is_inquiry", struct pay_dispute_detail, is_inquiry, false),
    PAY_TEXT("reason_code", struct pay_dispute_detail, reason_code, 0, PAY_MAX_CODE, PAY_OPTIONAL),
    PAY_TIME_OPTIONAL("evidence_due_at", struct pay_dispute_detail, evidence_due_at_us),
};
const struct pay_bind_record pay_bind_dispute = {dispute, PAY_FIELD_COUNT(dispute)};

static const struct pay_bind settlement[] = {
    PAY_LONG("gross_minor", struct pay_settlement, gross_minor, INT64_MIN, INT64_MAX),
    PAY_LONG("fee_minor", struct pay_settlement, fee_minor, INT64_MIN, INT64_MAX),
    PAY_LONG("net_minor", struct pay_settlement, net_minor, INT64_MIN, INT64_MAX),
    PAY_CURRENCY(struct pay_settlement, currency),
    PAY_INT("settled_on", struct pay_settlement, settled_on_days, INT32_MIN, INT32_MAX),
    PAY_TEXT("batch", struct pay_settlement, batch, 0, PAY_MAX_REFERENCE, PAY_OPTIONAL),
};
const struct pay_bind_record pay_bind_settlement = {settlement, PAY_FIELD_COUNT(settlement)};

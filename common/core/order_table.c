/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/order_table.h"

#include "common/base/assert.h"

#include "common/base/banned.h"

#define TEXT_SUCCEEDED                                                                             \
    "SUCCEEDED; if it is final already it stays, with a case DUPLICATE_CHARGE (SUCCEEDED by "      \
    "another attempt) or LATE_SUCCESS (CANCELED, EXPIRED, FAILED) and a proposed refund of *that " \
    "attempt*"
#define TEXT_FAILED                                                                               \
    "intent CANCEL → CANCELED; CHANGE_METHOD → the next attempt with its method; now ≥ "          \
    "expires_at → EXPIRED; else PROCESSING while there is a legal next attempt; else, with "      \
    "`retry_until_expiry` (default), PROCESSING with reason AWAITING_METHOD until START_ATTEMPT " \
    "or expiry; else FAILED"
#define TEXT_CANCELED                                                                        \
    "by intent: CANCEL → CANCELED, CHANGE_METHOD → PROCESSING and the next attempt; by our " \
    "deadline → EXPIRED if now ≥ expires_at, else as FAILED; by customer or PSP → as FAILED"

static const struct pay_order_rule rules[PAY_ATTEMPT_STATUS_COUNT] = {
    [PAY_ATTEMPT_CREATED] = {PAY_ORDER_RULE_BECOMES, PAY_ORDER_PROCESSING, "PROCESSING"},
    [PAY_ATTEMPT_SUBMITTED] = {PAY_ORDER_RULE_BECOMES, PAY_ORDER_PROCESSING, "PROCESSING"},
    [PAY_ATTEMPT_PROCESSING] = {PAY_ORDER_RULE_BECOMES, PAY_ORDER_PROCESSING, "PROCESSING"},
    [PAY_ATTEMPT_UNKNOWN] = {PAY_ORDER_RULE_BECOMES, PAY_ORDER_PROCESSING, "PROCESSING"},
    [PAY_ATTEMPT_REQUIRES_ACTION] = {PAY_ORDER_RULE_BECOMES, PAY_ORDER_REQUIRES_ACTION,
                                     "REQUIRES_ACTION"},
    [PAY_ATTEMPT_AUTHORIZED] = {PAY_ORDER_RULE_BECOMES, PAY_ORDER_AUTHORIZED, "AUTHORIZED"},
    [PAY_ATTEMPT_SUCCEEDED] = {PAY_ORDER_RULE_BECOMES, PAY_ORDER_SUCCEEDED, TEXT_SUCCEEDED},
    [PAY_ATTEMPT_FAILED] = {PAY_ORDER_RULE_ENDED, PAY_ORDER_FAILED, TEXT_FAILED},
    [PAY_ATTEMPT_CANCELED] = {PAY_ORDER_RULE_ENDED, PAY_ORDER_CANCELED, TEXT_CANCELED},
};

static const struct {
    enum pay_fact_type fact;
    bool recurs;
} facts[PAY_ORDER_STATUS_COUNT] = {
    [PAY_ORDER_CREATED] = {PAY_FACT_PAYMENT_CREATED, false},
    [PAY_ORDER_PROCESSING] = {PAY_FACT_PAYMENT_PROCESSING, true},
    [PAY_ORDER_REQUIRES_ACTION] = {PAY_FACT_PAYMENT_ACTION_REQUIRED, true},
    [PAY_ORDER_AUTHORIZED] = {PAY_FACT_PAYMENT_AUTHORIZED, true},
    [PAY_ORDER_SUCCEEDED] = {PAY_FACT_PAYMENT_SUCCEEDED, false},
    [PAY_ORDER_FAILED] = {PAY_FACT_PAYMENT_FAILED, false},
    [PAY_ORDER_CANCELED] = {PAY_FACT_PAYMENT_CANCELED, false},
    [PAY_ORDER_EXPIRED] = {PAY_FACT_PAYMENT_EXPIRED, false},
};

const struct pay_order_rule *pay_order_table_rule(enum pay_attempt_status becomes)
{
    PAY_ASSERT((size_t)becomes < PAY_ATTEMPT_STATUS_COUNT);
    const struct pay_order_rule *rule = &rules[becomes];
    PAY_ASSERT(rule->kind != PAY_ORDER_RULE_UNSET);
    return rule;
}

enum pay_fact_type pay_order_fact(enum pay_order_status status)
{
    PAY_ASSERT((size_t)status < PAY_ORDER_STATUS_COUNT);
    return facts[status].fact;
}

bool pay_order_status_recurs(enum pay_order_status status)
{
    PAY_ASSERT((size_t)status < PAY_ORDER_STATUS_COUNT);
    return facts[status].recurs;
}

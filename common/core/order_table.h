/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file order_table.h
 * @brief The order table of the state machine: what the order becomes when an attempt becomes.
 *
 * order.c applies it. A final order is not in the table: it never moves.
 */
#ifndef PAY_CORE_ORDER_TABLE_H
#define PAY_CORE_ORDER_TABLE_H

#include "common/core/types.h"

enum pay_order_rule_kind {
    PAY_ORDER_RULE_UNSET,
    PAY_ORDER_RULE_BECOMES, /**< The order becomes @c next; a final one stays (a case, if paid). */
    PAY_ORDER_RULE_ENDED    /**< The attempt ended unpaid: intent, expiry, next attempt decide. */
};

struct pay_order_rule {
    enum pay_order_rule_kind kind;
    enum pay_order_status next; /**< BECOMES only. */
    const char *text;           /**< The row as it stands in the document; static. */
};

/** @return the row; borrowed, static. */
const struct pay_order_rule *pay_order_table_rule(enum pay_attempt_status becomes);
/** @return the fact that an order's new status publishes. */
enum pay_fact_type pay_order_fact(enum pay_order_status status);
/** @return whether an order can reach the status more than once, so that its fact needs the
 *          version in its id. */
bool pay_order_status_recurs(enum pay_order_status status);

#endif /* PAY_CORE_ORDER_TABLE_H */

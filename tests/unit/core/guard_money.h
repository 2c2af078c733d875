/* SPDX-License-Identifier: Apache-2.0 */
/** @file guard_money.h @brief The situations of the guards about captures, refunds, disputes and
 * approvals: each returns true when the right thing happened. */
#ifndef PAY_TESTS_CORE_GUARD_MONEY_H
#define PAY_TESTS_CORE_GUARD_MONEY_H

#include "tests/unit/core/world.h"

bool guard_refundable(struct world *w);
bool guard_money_once(struct world *w);
bool guard_money_not_sent(struct world *w);
bool guard_money_not_found(struct world *w);
bool guard_money_reversal(struct world *w);
bool guard_refund_sum(struct world *w);
bool guard_refund_sum_new(struct world *w);
bool guard_dispute_funds_once(struct world *w);
bool guard_approval_own(struct world *w);
bool guard_approval_twice(struct world *w);
bool guard_approval_digest(struct world *w);
bool guard_approval_version(struct world *w);
bool guard_refund_threshold(struct world *w);

#endif /* PAY_TESTS_CORE_GUARD_MONEY_H */

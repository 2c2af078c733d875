/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rule.h
 * @brief The footnotes of the attempt table: from a cell to a ruling. Reads, changes nothing.
 *
 * Internal to common/core.
 */
#ifndef PAY_CORE_RULE_H
#define PAY_CORE_RULE_H

#include "common/core/admit.h"

/** @param is_news the event taught a reference that was not bound before.
 *  @return what the event shall do: the cell, changed by its notes. */
struct pay_ruling pay_rule(const struct pay_turn *turn, int attempt_index,
                           enum pay_attempt_event column, bool is_news);

#endif /* PAY_CORE_RULE_H */

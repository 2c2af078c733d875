/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file write.h
 * @brief From what was decided to statements: the compare-and-set, then everything else.
 */
#ifndef PAY_PROCESSOR_WRITE_H
#define PAY_PROCESSOR_WRITE_H

#include "services/processor/work.h"

/**
 * @brief Step 4 for @p units. @param ret_lost units whose payment moved: nothing of them is
 * written.
 * @return PAY_RETRY also when a gate that was to be closed moved: the whole batch again.
 */
PAY_MUST_CHECK enum pay_status pay_write_lock(struct pay_try *turn, struct pay_list *units,
                                              struct pay_list *ret_lost, struct pay_err *err);
/** @brief Steps 5 and 6 for everything that won. */
PAY_MUST_CHECK enum pay_status pay_write_rest(struct pay_try *turn, struct pay_err *err);

#endif /* PAY_PROCESSOR_WRITE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/** @file input.h @brief What the processor would hand to the core for a step. Static: lives until
 * the next one is built. */
#ifndef PAY_TESTS_MONEY_INPUT_H
#define PAY_TESTS_MONEY_INPUT_H

#include "tests/property/money/step.h"

const struct pay_decide_input *mx_input_of(const struct mx_config *config,
                                           const struct mx_world *world, struct mx_step step);

#endif /* PAY_TESTS_MONEY_INPUT_H */

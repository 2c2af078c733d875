/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file control.h
 * @brief What a person decides against, or before, the PSP's word: whether it may be done, and
 * doing it.
 *
 * Internal to common/core. Only command_control.c carries a request out, after it has counted the
 * approvals.
 */
#ifndef PAY_CORE_CONTROL_H
#define PAY_CORE_CONTROL_H

#include "common/core/turn.h"

/** @return why the request cannot be carried out on the rows as they are (static text;
 *          STALE_REQUEST when they are not as it expects), NULL when it can. */
const char *pay_control_check(const struct pay_turn *turn,
                              const struct pay_approval_request *request);

/** @brief Carry it out, checked before, under CONTROLLED evidence. No attempt begins by itself
 *  after it. */
void pay_control_apply(struct pay_turn *turn, const struct pay_approval_request *request);

/** @return index of the case with that id, -1: none. */
int pay_control_find_case(const struct pay_turn *turn, const char *case_id);
/** @brief The case ends. */
void pay_control_resolve(struct pay_turn *turn, int case_index, const char *principal,
                         const char *resolution_code);

#endif /* PAY_CORE_CONTROL_H */

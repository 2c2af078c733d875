/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file approval.h
 * @brief Requests that wait for two people: how one begins and ends.
 *
 * Internal to common/core. Who may approve is command_control.c's, what is then done control.c's.
 */
#ifndef PAY_CORE_APPROVAL_H
#define PAY_CORE_APPROVAL_H

#include "common/core/turn.h"

/** @return why no request may be made now (static text), NULL when it may. */
const char *pay_approval_blocked(const struct pay_turn *turn);
/** @brief The command waits: row PENDING with its APPROVAL deadline. Its texts were checked to fit.
 *  @param aggregate_id REQUEST_REFUND: the refund; NULL: the command's own. @return its index. */
int pay_approval_begin(struct pay_turn *turn, const char *aggregate_id);
/** @brief The request ends. */
void pay_approval_end(struct pay_turn *turn, int index, enum pay_request_status status,
                      const char *reason_code);
/** @return the request with that id, -1: none. */
int pay_approval_find(const struct pay_turn *turn, struct pay_str request_id);
/** @brief Its time is over: EXPIRED, and a refund that waited for it is withdrawn. */
void pay_approval_due(struct pay_turn *turn, int index);
/** @brief A refund whose request was declined or has expired. Nothing for other requests. */
void pay_approval_withdraw_refund(struct pay_turn *turn, int index, const char *reason_code);

#endif /* PAY_CORE_APPROVAL_H */

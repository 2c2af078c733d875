/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file read.h
 * @brief Internal: a bounded reader of Avro's binary encoding, straight into the C struct.
 *
 * Every length and count is checked against the bytes that are left and against the field's maximum
 * before anything is taken from the arena. Work is linear in the input.
 */
#ifndef PAY_CONTRACTS_READ_H
#define PAY_CONTRACTS_READ_H

#include "common/base/arena.h"
#include "common/contracts/check.h"
#include "common/contracts/plan.h"

#define PAY_SKIP_ITEMS_MAX 65536 /**< Items of an array that the struct does not have. */

/** @param into zeroed by the caller. All of @p body must be used up. */
PAY_MUST_CHECK enum pay_status pay_read_record(const struct pay_check *check,
                                               const struct pay_node *root, struct pay_bytes body,
                                               struct pay_arena *arena, void *into);

#endif /* PAY_CONTRACTS_READ_H */

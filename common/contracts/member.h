/* SPDX-License-Identifier: Apache-2.0 */
/** @file member.h @brief Internal: reading and setting a struct's member by its row. */
#ifndef PAY_CONTRACTS_MEMBER_H
#define PAY_CONTRACTS_MEMBER_H

#include "common/base/str.h"
#include "common/contracts/binding.h"

/* base: start of the struct that the row's offsets belong to. */

/** BOOL, FLAG, INT, LONG, ENUM. */
int64_t pay_member_number(const struct pay_bind *bind, const uint8_t *base);
void pay_member_set_number(const struct pay_bind *bind, uint8_t *base, int64_t value);
/** TEXT, SYMBOL, CHARS. */
struct pay_str pay_member_text(const struct pay_bind *bind, const uint8_t *base);
/** @param text for CHARS: max bytes at most; otherwise stored as it is. */
void pay_member_set_text(const struct pay_bind *bind, uint8_t *base, struct pay_str text);
struct pay_bytes pay_member_bytes(const struct pay_bind *bind, const uint8_t *base);
void pay_member_set_bytes(const struct pay_bind *bind, uint8_t *base, struct pay_bytes bytes);
/** ARRAY, MAP. */
size_t pay_member_count(const struct pay_bind *bind, const uint8_t *base);
const uint8_t *pay_member_items(const struct pay_bind *bind, const uint8_t *base);
/** @param items ignored for arrays inside the struct. */
void pay_member_set_items(const struct pay_bind *bind, uint8_t *base, void *items, size_t count);
/** Is the optional member there? HERE_ALWAYS: true. */
bool pay_member_is_here(const struct pay_bind *bind, const uint8_t *base);
/** Null came. */
void pay_member_set_null(const struct pay_bind *bind, uint8_t *base);
/** The writer's schema lacks the field. */
void pay_member_set_default(const struct pay_bind *bind, uint8_t *base);

#endif /* PAY_CONTRACTS_MEMBER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file str.h
 * @brief Borrowed text and bytes with a length. ptr == NULL means "absent", which differs from
 * empty.
 *
 * A struct pay_str made by this project's decoders is also NUL-terminated and has no NUL inside.
 * Nothing here allocates or owns.
 */
#ifndef PAY_BASE_STR_H
#define PAY_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pay_str {
    const char *ptr; /**< Borrowed; NULL: absent. */
    size_t len;      /**< Bytes, without the terminator. */
};

struct pay_bytes {
    const uint8_t *ptr; /**< Borrowed; NULL: absent. */
    size_t len;
};

/** A string literal as a struct pay_str. */
#define PAY_STR(literal) ((struct pay_str){(literal), sizeof(literal) - 1})

/** @param cstr borrowed, may be NULL (gives an absent string). */
struct pay_str pay_str_of(const char *cstr);
bool pay_str_eq(struct pay_str a, struct pay_str b);
bool pay_str_eq_c(struct pay_str a, const char *b);
bool pay_str_starts(struct pay_str text, const char *prefix);
bool pay_bytes_eq(struct pay_bytes a, struct pay_bytes b);

/**
 * @brief Copy into a fixed array and terminate it.
 * @return false when it does not fit (dst is then "") or @p text is absent (dst is then "").
 */
bool pay_str_copy(char *dst, size_t dst_size, struct pay_str text);

/** @brief Decimal text to integer: digits only, optional leading '-', no white space, checked
 * range. */
bool pay_str_to_i64(struct pay_str text, int64_t *ret_value);

/** @brief Lower-case hex; @p dst has 2 * bytes.len + 1 bytes. */
void pay_hex_encode(struct pay_bytes bytes, char *dst);
/** @brief Both cases; @p dst_size must be exactly text.len / 2. @return false on anything else. */
bool pay_hex_decode(struct pay_str text, uint8_t *dst, size_t dst_size);

/** @return true when the bytes are valid UTF-8 (no surrogates, no overlong forms). */
bool pay_utf8_valid(struct pay_bytes bytes);
/** @return length (1..4) of the well-formed character that @p bytes begin with, 0 when there is
 * none. */
size_t pay_utf8_len(struct pay_bytes bytes);

#endif /* PAY_BASE_STR_H */

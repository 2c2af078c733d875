/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kafka_headers.h
 * @brief Kafka record headers as a small fixed list: the same on the way in and on the way out.
 *
 * Ownership: names and values are borrowed; the list itself is plain memory of the caller.
 * Failure: a list is full at PAY_KAFKA_HEADERS_MAX; pay_kafka_headers_add() then answers false.
 */
#ifndef PAY_IO_KAFKA_KAFKA_HEADERS_H
#define PAY_IO_KAFKA_KAFKA_HEADERS_H

#include "common/base/attr.h"
#include "common/base/str.h"

#define PAY_KAFKA_HEADERS_MAX 32

struct pay_kafka_header {
    const char *name;       /**< Borrowed, NUL-terminated. */
    struct pay_bytes value; /**< ptr NULL: a null header value. */
};

struct pay_kafka_headers {
    struct pay_kafka_header items[PAY_KAFKA_HEADERS_MAX];
    size_t count;
    bool over; /**< The record had more than PAY_KAFKA_HEADERS_MAX; the rest is not here. */
};

/** @return false when the list is full; nothing is then added. */
PAY_MUST_CHECK bool pay_kafka_headers_add(struct pay_kafka_headers *headers, const char *name,
                                          struct pay_bytes value);
/** As pay_kafka_headers_add(), with text. */
PAY_MUST_CHECK bool pay_kafka_headers_add_str(struct pay_kafka_headers *headers, const char *name,
                                              struct pay_str value);
/** @return the first value of @p name, or absent. */
struct pay_bytes pay_kafka_headers_get(const struct pay_kafka_headers *headers, const char *name);
/** As pay_kafka_headers_get(), as text that is not NUL-terminated. */
struct pay_str pay_kafka_headers_get_str(const struct pay_kafka_headers *headers, const char *name);

#endif /* PAY_IO_KAFKA_KAFKA_HEADERS_H */

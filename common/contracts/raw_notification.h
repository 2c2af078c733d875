/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file raw_notification.h
 * @brief One HTTP request of a PSP as an edge gateway received it (topic notifications).
 *
 * Ownership, threads, failure: codec.h. In plain: as sensitive as the PSP's own traffic.
 */
#ifndef PAY_CONTRACTS_RAW_NOTIFICATION_H
#define PAY_CONTRACTS_RAW_NOTIFICATION_H

#include "common/contracts/codec.h"

#define PAY_NOTIFICATION_BODY_MAX ((size_t)256 * 1024)
#define PAY_NOTIFICATION_HEADERS_MAX 100
#define PAY_NOTIFICATION_HEADER_BYTES_MAX ((size_t)32 * 1024) /**< Names and values together. */
#define PAY_NOTIFICATION_PATH_MAX 8192                        /**< Path, and query. */

struct pay_http_header_line {
    struct pay_str name;
    struct pay_bytes value; /**< Bytes: HTTP does not promise UTF-8. */
};

struct pay_raw_notification {
    struct pay_str notification_id; /**< The gateway's, for tracing; never a dedupe key. */
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str method; /**< Upper case. */
    struct pay_str path;   /**< Still percent-encoded. */
    struct pay_str query;  /**< Without the question mark; "" when there is none. */
    const struct pay_http_header_line *headers; /**< In order, duplicates kept. */
    size_t header_count;
    struct pay_bytes body;  /**< Exactly as received. */
    int64_t received_at_us; /**< UTC, the gateway's clock. */
    struct pay_str traceparent;
};

PAY_MUST_CHECK enum pay_status
pay_raw_notification_encode(struct pay_codec *codec, const struct pay_raw_notification *record,
                            struct pay_buf *out, struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_raw_notification_decode(struct pay_codec *codec,
                                                           struct pay_bytes value,
                                                           struct pay_arena *arena,
                                                           struct pay_raw_notification *ret_record,
                                                           struct pay_err *err);

#endif /* PAY_CONTRACTS_RAW_NOTIFICATION_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file approval.h
 * @brief Requests that wait for two people, and their words; only for payments whose CAS was won.
 * All calls are queued. Ownership and threads: store.h.
 */
#ifndef PAY_STORE_APPROVAL_H
#define PAY_STORE_APPROVAL_H

#include "common/core/command.h"
#include "common/core/snapshot.h"
#include "common/store/store.h"

/** A request; of one that is new also the bytes that were signed. */
struct pay_store_request_row {
    struct pay_approval_request request;
    const char *payment_id;
    struct pay_bytes sha256;             /**< 32 bytes. */
    struct pay_bytes command;            /**< New: the Command's value bytes. */
    struct pay_bytes writer_fingerprint; /**< New: 8 bytes, of the schema they were written with. */
    const struct pay_attachment *attachments; /**< New. */
    size_t attachment_count;
    int64_t expected_version;
    bool has_version; /**< false: none is expected. */
};
/** @brief Queue new requests. */
PAY_MUST_CHECK enum pay_status
pay_store_request_add(struct pay_store *store, const struct pay_store_request_row *const *rows,
                      size_t count, struct pay_err *err);
/** @brief Queue the end of pending requests. */
PAY_MUST_CHECK enum pay_status
pay_store_request_update(struct pay_store *store, const struct pay_store_request_row *const *rows,
                         size_t count, struct pay_err *err);

/** One principal's word, signed with that key. */
struct pay_store_approval_row {
    struct pay_approval approval;
    const char *request_id;
    const char *requested_by;
    struct pay_bytes sha256; /**< 32 bytes, of the request. */
    struct pay_str key_id;
};
/** @brief Queue words; the database itself refuses the requester and a second one. */
PAY_MUST_CHECK enum pay_status
pay_store_approval_add(struct pay_store *store, const struct pay_store_approval_row *const *rows,
                       size_t count, struct pay_err *err);

#endif /* PAY_STORE_APPROVAL_H */

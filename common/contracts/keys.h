/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file keys.h
 * @brief The two kinds of idempotency keys (data-model): transport keys of each kind of input, and
 * the business key of an event.
 *
 * Every builder writes NUL-terminated text into the caller's array and returns false (dst is then
 * "") when the result would be longer than PAY_TRANSPORT_KEY_MAX / PAY_BUSINESS_KEY_MAX bytes or a
 * part is absent or empty. Never shortened: two keys that are cut alike would be one fact less.
 */
#ifndef PAY_CONTRACTS_KEYS_H
#define PAY_CONTRACTS_KEYS_H

#include "common/contracts/payment_input.h"

#define PAY_TRANSPORT_KEY_SIZE (PAY_TRANSPORT_KEY_MAX + 1)
#define PAY_BUSINESS_KEY_SIZE (PAY_BUSINESS_KEY_MAX + 1)
#define PAY_SHA256_BYTES 32

/** Callback whose PSP names its event: that id. An id above the maximum: use the digest form. */
PAY_MUST_CHECK bool pay_transport_key_event(char dst[PAY_TRANSPORT_KEY_SIZE],
                                            struct pay_str psp_event_id);
/** Callback without one: "<hex SHA-256 of the signed bytes>:<item's index>". */
PAY_MUST_CHECK bool pay_transport_key_digest(char dst[PAY_TRANSPORT_KEY_SIZE],
                                             const uint8_t sha256[PAY_SHA256_BYTES], size_t index);
/** Answer to a call of ours: "<job_id>:<send_no>"; a further event of the same answer: index > 0
 * appends ":<index>". */
PAY_MUST_CHECK bool pay_transport_key_answer(char dst[PAY_TRANSPORT_KEY_SIZE],
                                             struct pay_str job_id, int send_no, size_t index);
/** SUB, NSN, UNK: "<job_id>:<send_no>:<kind>", kind = the event type's name. */
PAY_MUST_CHECK bool pay_transport_key_local(char dst[PAY_TRANSPORT_KEY_SIZE], struct pay_str job_id,
                                            int send_no, enum pay_event_type type);
/** Deadline: "<kind>:<aggregate_id>:<due_at in microseconds>". */
PAY_MUST_CHECK bool pay_transport_key_deadline(char dst[PAY_TRANSPORT_KEY_SIZE],
                                               struct pay_str kind, struct pay_str aggregate_id,
                                               int64_t due_at_us);
/** Statement: "<hex SHA-256 of the file>:<line>". */
PAY_MUST_CHECK bool pay_transport_key_statement(char dst[PAY_TRANSPORT_KEY_SIZE],
                                                const uint8_t sha256[PAY_SHA256_BYTES],
                                                size_t line);
/** Poison: "<topic>:<partition>:<offset>". */
PAY_MUST_CHECK bool pay_transport_key_poison(char dst[PAY_TRANSPORT_KEY_SIZE], struct pay_str topic,
                                             int partition, int64_t offset);

/**
 * @brief provider_payment_id (else merchant_request_no), "|", provider_action_id (else action_id,
 * else nothing), "|", type, "|", normalized_result.
 *
 * '|' and '%' inside a part are percent-encoded, so that no two facts share a key. An event that
 * names neither reference begins with "|".
 */
PAY_MUST_CHECK bool pay_business_key(char dst[PAY_BUSINESS_KEY_SIZE],
                                     const struct pay_event *event);

#endif /* PAY_CONTRACTS_KEYS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file outgoing.h
 * @brief Values in single-object encoding, framed anew by the ids that a registry gives a subject.
 *
 * Nothing is registered here: that is `payfactctl schemas register`, a decision of the rollout.
 * Ownership: borrows the registry. Threads: one. Only pay_outgoing_refresh() may block.
 */
#ifndef PAY_REGISTRY_OUTGOING_H
#define PAY_REGISTRY_OUTGOING_H

#include "common/contracts/codec.h"
#include "common/registry/client.h"

#define PAY_OUTGOING_REFRESH_MS 2000 /**< Then no further version is asked for in this turn. */

struct pay_outgoing;

/** @param subject "<topic>-value". @return PAY_RETRY when memory is out, PAY_FATAL: subject. */
PAY_MUST_CHECK enum pay_status pay_outgoing_new(struct pay_registry *registry,
                                                enum pay_record record, const char *topic,
                                                struct pay_outgoing **ret_outgoing,
                                                struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_outgoing *pay_outgoing_free(struct pay_outgoing *outgoing);

/**
 * @brief Learn the ids of every version of the subject that is not known yet. Blocks for one call,
 * and one more per new version.
 * @return PAY_RETRY: away; also when the subject does not exist yet. What was learned stays.
 */
PAY_MUST_CHECK enum pay_status pay_outgoing_refresh(struct pay_outgoing *outgoing,
                                                    struct pay_err *err);
/** @return true: values of this schema can be framed. */
PAY_MUST_CHECK bool pay_outgoing_knows(const struct pay_outgoing *outgoing, uint64_t fingerprint);
/**
 * @brief 00, the schema's id (big endian), the body of @p value; replaces what is in @p out.
 * @return PAY_RETRY: the registry has not told an id of that schema, see pay_outgoing_refresh().
 * PAY_REJECT: @p value is not in single-object encoding.
 */
PAY_MUST_CHECK enum pay_status pay_outgoing_frame(const struct pay_outgoing *outgoing,
                                                  struct pay_bytes value, struct pay_buf *out,
                                                  struct pay_err *err);

#endif /* PAY_REGISTRY_OUTGOING_H */

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file incoming.h
 * @brief What a registry's schema ids mean, for values that others framed by them: asked once.
 *
 * A value of a record that may be learned is readable by any compatible schema that the registry
 * has; the codec learns it. A record whose bytes another service must read again (Command, by its
 * signature) is readable only by a schema of this release: see docs/adr.
 *
 * Ownership: borrows registry and codec, and sets the codec's finder. Threads: one, the codec's.
 * Bounds: PAY_INCOMING_IDS_MAX answers are kept; the oldest makes room.
 *
 *     status = pay_incoming_resolve(incoming, record, value, &err);   (may ask the registry)
 *     PAY_RETRY: the registry is away, nothing is known: wait
 *     PAY_OK:    decode; an id without a usable schema is SCHEMA_UNKNOWN there
 */
#ifndef PAY_REGISTRY_INCOMING_H
#define PAY_REGISTRY_INCOMING_H

#include "common/contracts/codec.h"
#include "common/registry/client.h"

#define PAY_INCOMING_IDS_MAX 512
#define PAY_INCOMING_GRACE_MS 1000   /**< An id may be newer than the registry's replica. */
#define PAY_INCOMING_ABSENT_MS 10000 /**< Then it is not asked for again so long. */

struct pay_incoming;

/** @return PAY_RETRY when memory is out. */
PAY_MUST_CHECK enum pay_status pay_incoming_new(struct pay_registry *registry,
                                                struct pay_codec *codec,
                                                struct pay_incoming **ret_incoming,
                                                struct pay_err *err);
/** Takes the finder out of the codec. @return always NULL; copes with NULL. */
struct pay_incoming *pay_incoming_free(struct pay_incoming *incoming);

/**
 * @brief Know the id that frames @p value, if one does. May block for one call of the registry.
 * @return PAY_RETRY: it cannot be said now. PAY_OK otherwise, also for an id that is of no use.
 */
PAY_MUST_CHECK enum pay_status pay_incoming_resolve(struct pay_incoming *incoming,
                                                    enum pay_record record, struct pay_bytes value,
                                                    struct pay_err *err);

#endif /* PAY_REGISTRY_INCOMING_H */

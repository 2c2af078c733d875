/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file client.h
 * @brief A schema registry by Confluent's REST API: fetch, list, check, register.
 *
 * Ownership: buffers given are appended to. Credentials are files, read again for each call.
 * Threads: one client per thread. May block up to timeout_ms per call. Failure: PAY_RETRY when it
 * is away, refuses the credentials or does not speak this API (nothing of that says that a schema
 * is absent); PAY_REJECT with a code for what it says of a schema; PAY_FATAL for options.
 */
#ifndef PAY_REGISTRY_CLIENT_H
#define PAY_REGISTRY_CLIENT_H

#include "common/base/buf.h"
#include "common/base/err.h"

#define PAY_REGISTRY_SCHEMA_BYTES_MAX ((size_t)64 * 1024) /**< A longer one is UNSUPPORTED. */
#define PAY_REGISTRY_VERSIONS_MAX 256                     /**< Of a subject; more: UNSUPPORTED. */
#define PAY_REGISTRY_SUBJECT_MAX 260                      /**< Bytes, terminator included. */
#define PAY_REGISTRY_COMPATIBILITY "FULL_TRANSITIVE"      /**< Of every public subject. */

struct pay_registry;

/** pay_err.code of a call that failed. */
enum pay_registry_code {
    PAY_REGISTRY_NONE,
    PAY_REGISTRY_AWAY,         /**< RETRY: no answer, 429, 5xx. */
    PAY_REGISTRY_DENIED,       /**< RETRY: 401 or 403; the file may be rotated. */
    PAY_REGISTRY_ODD,          /**< RETRY: an answer that is none of this API. */
    PAY_REGISTRY_NOT_FOUND,    /**< REJECT: it says itself that there is no such thing. */
    PAY_REGISTRY_INCOMPATIBLE, /**< REJECT: 409. */
    PAY_REGISTRY_INVALID,      /**< REJECT: 422, it does not take what was sent. */
    PAY_REGISTRY_UNSUPPORTED,  /**< REJECT: not Avro, with references, or above a maximum. */
    PAY_REGISTRY_CODE_COUNT
};
/** @return static name such as "AWAY"; never NULL. */
const char *pay_registry_code_name(enum pay_registry_code code);

/** Borrowed for ever; empty texts count as NULL. */
struct pay_registry_options {
    const char *url; /**< Of the API's root, "https://host/apis/ccompat/v7". http:// only without
                        credentials, or to this machine. */
    const char *user;
    const char *password_file; /**< With user. */
    const char *token_file;    /**< A bearer token; not with user. */
    const char *ca_file;       /**< PEM; NULL: the system's. */
    unsigned timeout_ms;       /**< Of one call; 0: 1500. */
};

/** @return PAY_FATAL: options that cannot work together, or an unreadable CA file. */
PAY_MUST_CHECK enum pay_status pay_registry_new(const struct pay_registry_options *options,
                                                struct pay_registry **ret_registry,
                                                struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_registry *pay_registry_free(struct pay_registry *registry);

/** @brief The schema of an id, appended to @p schema. */
PAY_MUST_CHECK enum pay_status pay_registry_fetch(struct pay_registry *registry, uint32_t id,
                                                  struct pay_buf *schema, struct pay_err *err);

struct pay_registry_versions {
    int numbers[PAY_REGISTRY_VERSIONS_MAX]; /**< Ascending. */
    size_t count;
};
/** @brief The versions of @p subject. A subject that does not exist is NOT_FOUND. */
PAY_MUST_CHECK enum pay_status pay_registry_versions(struct pay_registry *registry,
                                                     const char *subject,
                                                     struct pay_registry_versions *ret_versions,
                                                     struct pay_err *err);
/** @brief One of them. */
PAY_MUST_CHECK enum pay_status pay_registry_version(struct pay_registry *registry,
                                                    const char *subject, int version,
                                                    uint32_t *ret_id, struct pay_buf *schema,
                                                    struct pay_err *err);
/** @brief Would the registry take @p schema? True for a subject that does not exist. */
PAY_MUST_CHECK enum pay_status
pay_registry_is_compatible(struct pay_registry *registry, const char *subject,
                           struct pay_str schema, bool *ret_is_compatible, struct pay_err *err);
/** @brief Register; the same text again gives the same id. May be repeated after PAY_RETRY. */
PAY_MUST_CHECK enum pay_status pay_registry_register(struct pay_registry *registry,
                                                     const char *subject, struct pay_str schema,
                                                     uint32_t *ret_id, struct pay_err *err);
/** @brief Set the compatibility level of a subject, which need not exist yet. */
PAY_MUST_CHECK enum pay_status pay_registry_set_compatibility(struct pay_registry *registry,
                                                              const char *subject,
                                                              const char *level,
                                                              struct pay_err *err);
/** @brief A subject's own level, NOT_FOUND when it has none. */
PAY_MUST_CHECK enum pay_status pay_registry_compatibility(struct pay_registry *registry,
                                                          const char *subject, char level[32],
                                                          struct pay_err *err);

/**
 * @brief "<topic>-value" (TopicNameStrategy).
 * @return false when it is too long or has a character that no topic has.
 */
PAY_MUST_CHECK bool pay_registry_subject(char dst[PAY_REGISTRY_SUBJECT_MAX], const char *topic);

#endif /* PAY_REGISTRY_CLIENT_H */
